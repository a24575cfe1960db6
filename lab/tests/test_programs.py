"""The lists of programs, and the inputs they are given."""

import dataclasses
import hashlib
import os
import re
import subprocess

import pytest

from annex_lab import paths, programs, sample, stats
from annex_lab.programs import inputs, model, servers


def test_names_are_unique_and_at_least_half_are_real():
    everything = programs.all_programs()
    names = [program.name for program in everything]
    assert len(names) == len(set(names)) >= 16
    for suite in ("single", "multi"):
        kinds = [program.kind for program in programs.choose(suite)]
        assert kinds.count("program") >= len(kinds) / 2 - 1


def test_choosing_by_suite_and_by_name():
    assert {p.suite for p in programs.choose("single")} == {"single"}
    everywhere = {p.name for p in programs.choose("all")}
    assert everywhere == {p.name for p in programs.all_programs() if not p.by_name_only}
    assert programs.choose("single", ["redis-io-threads"])[0].by_name_only
    assert [p.name for p in programs.choose("single", ["larson", "sqlite3"])] == ["larson", "sqlite3"]
    assert {p.kind for p in programs.choose("real")} == {"program"}
    with pytest.raises(programs.UnknownProgram, match="nonesuch"):
        programs.choose("all", ["nonesuch"])
    with pytest.raises(programs.UnknownProgram, match=r"no suite is called nonesuch.*speedmalloc"):
        programs.choose("nonesuch")


def test_a_paper_is_a_suite_and_papers_are_all_of_them():
    papers = {p.name for p in programs.choose("papers")}
    assert papers == {p.name for group in programs.GROUPS for p in programs.choose(group)}
    for program in programs.all_programs():
        assert set(program.groups) <= set(programs.GROUPS), program.name
    assert {p.name for p in programs.choose("speedmalloc")} >= {"larson", "gap-bfs", "gap-bc", "nas-dc", "redis-spop"}
    mallacc = {"tp", "tp-small", "sized-deletes", "gauss", "gauss-free", "antagonist", "perl-hashes", "xalan", "xapian"}
    assert {p.name for p in programs.choose("mallacc")} == mallacc
    assert [p.name for p in programs.choose("nextgen")] == ["xalan"]


def test_the_quick_suite_is_a_fair_sample():
    quick = programs.choose("quick")
    for suite in ("single", "multi"):  # enough of each for a mean, and half of them real
        kinds = [p.kind for p in quick if p.suite == suite]
        assert len(kinds) >= stats.LEAST and abs(kinds.count("program") - kinds.count("workload")) <= 1


def test_the_quick_suite_has_smaller_structures_and_says_so(context):
    quick = {p.name: p.command(context) for p in programs.choose("quick")}
    assert quick["hashmap"] == "hashmap --scale 1.0 --entries=75000 --maps=20"
    assert quick["larson"] == "larson --scale 1.0 --threads 2"
    (whole,) = programs.choose("quick", ["hashmap"])
    assert whole.command(context) == "hashmap --scale 1.0"


def test_every_workload_of_the_build_is_a_program():
    lists = (paths.ROOT / "workloads" / "CMakeLists.txt").read_text()
    for suite in ("single", "multi"):
        built = re.search(rf"set\(annex_{suite}_workloads([^)]*)\)", lists)
        assert built is not None
        listed = (p for p in programs.all_programs() if not p.by_name_only)  # those are some with options
        here = {p.name for p in listed if p.kind == "workload" and p.suite == suite}
        assert here == set(built.group(1).split())


def test_every_program_can_say_how_it_is_run(context):
    for program in programs.all_programs():
        task = program.run(context)
        argv = task.command.argv if isinstance(task, model.Server) else task.argv
        assert all(isinstance(part, str) for part in argv), program.name


def test_a_program_says_what_is_typed_without_this_machines_folders(context, tmp_path):
    for program in programs.all_programs():
        line = program.command(context)
        assert str(tmp_path) not in line and str(paths.ROOT) not in line, line
    by_name = {p.name: p.command(context) for p in programs.all_programs()}
    assert by_name["larson"] == "larson --scale 1.0 --threads 2"
    assert by_name["sqlite3"] == "sqlite3 -batch :memory: < sqlite3-60000.sql"
    assert by_name["python-hello"] == "PYTHONMALLOC=malloc PYTHONHASHSEED=0 python3 -c 'print(1)'"
    assert by_name["ls"] == "ls -l /usr/lib"  # the system's own folders tell nothing
    server, client = by_name["redis-spop"].split(" <- ")
    assert server.startswith("redis-server ") and client.startswith("redis-benchmark -s redis.sock -t sadd,spop ")


def test_paths_are_shortened_and_nothing_else(context, tmp_path):
    (tmp_path / "my file").touch()
    cases = {
        f"{tmp_path}/my file": "'my file'",
        f"--input={tmp_path}/new": "--input=new",
        f"-I{tmp_path}": f"-I{tmp_path.name}",
        str(context.scratch / "gone" / "x"): "x",
        "/dev/null": "/dev/null",
        "a/b": "a/b",
        "/x/{print}": "'/x/{print}'",
        "/": "/",
        "/" + "x" * 5000: "/" + "x" * 5000,
    }
    for argument, shown in cases.items():
        command = model.Command(["/opt/bin/tool", argument], {"SECRET": "1"})
        program = model.Program("p", "own", "", lambda _context, command=command: command)
        assert program.command(context) == f"tool {shown}"


MAKERS = [
    (inputs.text, 5000),
    (inputs.sql_script, 100),
    (inputs.json_document, 20),
    (inputs.xml_document, 20),
    (inputs.smt_problem, 10),
    (inputs.postscript, 1),
]


@pytest.mark.parametrize(("make", "work"), MAKERS, ids=lambda value: getattr(value, "__name__", value))
def test_inputs_are_the_same_each_time(tmp_path, make, work):
    digests = set()
    for number in range(2):
        path = tmp_path / str(number)
        make(path, work)
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_an_input_is_made_once_and_never_left_half_made(tmp_path):
    target, calls = tmp_path / "data" / "input", []

    def make(path):
        calls.append(path)
        path.write_text("half")
        if len(calls) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inputs.ensure(target, make)
    assert not target.exists()
    inputs.ensure(target, make)
    inputs.ensure(target, make)
    assert target.exists() and len(calls) == 2


def test_a_changed_generator_has_a_new_folder(tmp_path):
    (tmp_path / "stale").mkdir()
    here = inputs.folder(tmp_path)
    here.mkdir()
    assert inputs.folder(tmp_path) == here and list(tmp_path.iterdir()) == [here]


def test_outputs_are_compared_without_what_may_differ():
    first = b'{"workload":"x","ops":5,"seconds":0.5,"score":1.000000e-01,"checksum":7}\n'
    second = b'{"workload":"x","ops":5,"seconds":0.25,"score":5.000000e-02,"checksum":7}\n'
    assert model.workload_output(first) == model.workload_output(second) == "5 7"
    assert model.workload_score(second) == 0.05
    assert model.sorted_output(b"b\na\n") == model.sorted_output(b"a\nb\n")
    assert model.whole_output(b"a") != model.whole_output(b"b")


def test_a_pack_is_its_objects_and_its_checksum():
    pack = b"PACK" + (2).to_bytes(4, "big") + (3).to_bytes(4, "big") + b"objects"
    checksum = hashlib.sha1(pack).digest()
    assert model.pack_output(pack + checksum) == "3 objects, whole"
    assert model.pack_output(pack + b"!" + checksum) == "3 objects, damaged"


def test_redis_score_is_the_geometric_mean_of_seconds_a_request():
    output = '"test","rps","avg_latency_ms"\n"SADD","100.0","1"\n"SPOP","400.0","1"\n'
    assert servers.redis_score(output) == pytest.approx(1 / 200)
    assert servers.redis_score(output, "spop") == pytest.approx(1 / 400)
    with pytest.raises(ValueError):
        servers.redis_score("")
    with pytest.raises(ValueError):
        servers.redis_score('"test","rps"\n"SPOP","inf"\n')
    with pytest.raises(ValueError, match="lpop"):
        servers.redis_score(output, "lpop")


@pytest.mark.skipif(
    programs.choose("all", ["xapian"])[0].missing() != [], reason="python3-xapian is not installed (lab/apt.txt)"
)
def test_searches_find_the_same_each_time(tmp_path, context):
    inputs.search_index(tmp_path / "index", 300000)
    assert not list(tmp_path.glob("*.txt"))
    script = [inputs.SYSTEM_PYTHON, inputs.SCRIPTS / "xapian_search.py", tmp_path / "index", "60"]
    runs = [subprocess.run(script, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    documents, terms, found, _digest = map(int, runs[0].split())
    assert runs[0] == runs[1]
    assert documents > 200 and terms > 500 and found > 100


def test_redis_is_measured_by_one_command(context):
    program = programs.choose("all", ["redis-lpop"])[0]
    if program.missing() and not os.environ.get("ANNEX_REQUIRE_ALL"):
        pytest.skip("redis is not installed (tools/apt-test.txt)")
    taken = sample.run(program, dataclasses.replace(context, scale=0.001), "")
    assert taken.score is not None and 0 < taken.score < 0.1 and taken.cpu_s > 0


@pytest.mark.parametrize("command", ["lpush", "lpop", "spop"])
def test_redis_replays_a_file_and_ends(context, command):
    program = programs.choose("all", [f"redis-replay-{command}"])[0]
    if program.missing() and not os.environ.get("ANNEX_REQUIRE_ALL"):
        pytest.skip("redis is not installed (tools/apt-test.txt)")
    context = dataclasses.replace(context, scale=0.02)
    context.scratch.mkdir(parents=True)
    program.prepare(context)
    program.prepare(context)  # is there
    argv = program.run(context).argv
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "ready to exit" in done.stdout, done.stdout
    (file,) = context.data.rglob("*.aof")
    assert file.read_text().lower().count("srem" if command == "spop" else command) == 2000
    assert "Bad file format" not in done.stdout
    assert [path.name for path in context.data.iterdir()] == [f"redis-replay-{command}-2000"]
