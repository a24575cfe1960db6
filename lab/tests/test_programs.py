"""The lists of programs, and the inputs they are given."""

import hashlib

import pytest

from annex_lab import programs
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
    with pytest.raises(programs.UnknownProgram, match="nonesuch"):
        programs.choose("all", ["nonesuch"])


def test_every_program_can_say_how_it_is_run(context):
    for program in programs.all_programs():
        task = program.run(context)
        argv = task.command.argv if isinstance(task, model.Server) else task.argv
        assert all(isinstance(part, str) for part in argv), program.name


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
    first = b'{"workload":"x","ops":5,"seconds":0.5,"score":10.0,"checksum":7}\n'
    second = b'{"workload":"x","ops":5,"seconds":0.25,"score":20.0,"checksum":7}\n'
    assert model.workload_output(first) == model.workload_output(second) == "5 7"
    assert model.workload_score(second) == 20.0
    assert model.sorted_output(b"b\na\n") == model.sorted_output(b"a\nb\n")
    assert model.whole_output(b"a") != model.whole_output(b"b")


def test_redis_score_is_the_geometric_mean_of_the_rates():
    output = '"test","rps","avg_latency_ms"\n"SET","100.0","1"\n"GET","400.0","1"\n'
    assert servers.redis_score(output) == pytest.approx(200.0)
    with pytest.raises(ValueError):
        servers.redis_score("")
