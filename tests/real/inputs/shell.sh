# Loops, arrays, subshells and pipelines; run in a directory with some C files.
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
seq 1 30000 | grep -E '7.*3' | sed -e 's/\(.\)7/[\1]/g' | tr '0-9' 'a-j' | sort -u | sed -n 1,300p | cksum
text=$(seq 1 20000); echo "${#text} ${text//1/one}" | cksum
find . -name '*.c' | sort | xargs -n 3 wc -l
tar -cf - --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner *.c | gzip -n | gunzip | tar -tf - | sort
