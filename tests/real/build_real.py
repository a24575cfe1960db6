"""A small project configured by cmake, built by ninja and used by shell scripts: hundreds of forks and short processes."""

from harness import main

CMAKE = """
cmake_minimum_required(VERSION 3.22)
project(small LANGUAGES C)
enable_testing()
add_library(parts STATIC {sources})
add_executable(small main.c)
target_link_libraries(small parts)
add_test(NAME small COMMAND small 12)
"""

SHELL = r"""
set -euo pipefail
total=0
declare -A seen
for n in $(seq 1 1500); do
  word=$(printf 'w%d' $((n * 7919 % 211)))
  seen[$word]=$((${seen[$word]:-0} + n))
  total=$((total + ${#word}))
done
echo "$total ${#seen[@]}"
for word in "${!seen[@]}"; do echo "$word ${seen[$word]}"; done | sort | awk '{ sum[$1 % 7] += $2; all = all " " $0 } END { for (i in sum) print i, sum[i]; print length(all) }'
seq 1 30000 | grep -E '7.*3' | sed -e 's/\(.\)7/[\1]/g' | tr '0-9' 'a-j' | sort -u | head -300 | cksum
text=$(seq 1 20000); echo "${#text} ${text//1/one}" | cksum
find . -name '*.c' | sort | xargs -n 3 wc -l
tar -cf - --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner *.c | gzip -n | gunzip | tar -tf - | sort
"""


def work(on):
    names = [f"part{n}" for n in range(12)]
    for n, name in enumerate(names):
        (on.dir / f"{name}.c").write_text(f"#include <math.h>\nint {name}(int x) {{ return x * {n} + (int)sqrt(x); }}\n")
    calls = " + ".join(f"{name}(x)" for name in names)
    (on.dir / "main.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n" + "".join(f"int {name}(int);\n" for name in names)
        + f'int main(int n, char** a) {{ int x = n > 1 ? atoi(a[1]) : 1; printf("%d\\n", {calls}); }}\n')
    (on.dir / "CMakeLists.txt").write_text(CMAKE.format(sources=" ".join(f"{name}.c" for name in names)).replace(
        "target_link_libraries(small parts)", "target_link_libraries(small parts m)"))
    (on.dir / "script.sh").write_text(SHELL)
    on.run(["cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release"])
    on.run(["ninja", "-C", "build", "-j2"])
    return {
        "program": on.run(["build/small", "1000"]).out,
        "binary": (on.dir / "build/small").read_bytes(),
        "tests": b"100% tests passed" in on.run(["ctest", "--test-dir", "build"]).out,
        "shell": on.run(["bash", "script.sh"]).out,
    }


main(work, ["cmake", "ninja", "gcc", "bash", "awk", "tar"], processes=100)
