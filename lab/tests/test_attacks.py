"""The scorecard of attacks: verdicts of made-up endings, counts and tables; and some attacks, really made."""

import re
import shutil

import pytest
from typer.testing import CliRunner

from annex_lab import allocators, cli, native
from annex_lab.attacks import program as attack_program
from annex_lab.attacks import randomness, score, tables
from annex_lab.attacks.program import CONTROL, ODDS, Attack, Ending
from annex_lab.attacks.verdict import Inconclusive, Outcome, Verdict, judge

run = CliRunner().invoke

# --- verdicts --------------------------------------------------------------------------------------------------------

ENDINGS = [
    (["call"], -6, "free(): twice", Verdict(Outcome.STOPPED, "SIGABRT in the wrong call: free(): twice")),
    (["call"], -4, "", Verdict(Outcome.STOPPED, "SIGILL in the wrong call")),
    (["call"], 1, "", Verdict(Outcome.STOPPED, "exit status 1 in the wrong call")),
    (["call"], -11, "", Verdict(Outcome.STOPPED, "SIGSEGV in the wrong call", by_fault=True)),
    (["access"], -7, "", Verdict(Outcome.STOPPED, "SIGBUS in the wrong access", by_fault=True)),
    (["access"], -11, "bad", Verdict(Outcome.STOPPED, "SIGSEGV in the wrong access: bad")),
    (["call", "after", "refused: NULL"], 0, "", Verdict(Outcome.STOPPED, "NULL")),
    (["call", "after"], -6, "bad", Verdict(Outcome.FOUND, "SIGABRT in correct use afterwards: bad")),
    (["access", "after"], -5, "", Verdict(Outcome.FOUND, "SIGTRAP in correct use afterwards")),
    (
        ["access", "gain: data", "after"],
        -6,
        "",
        Verdict(Outcome.FOUND, "SIGABRT in correct use afterwards", after_gain=True),
    ),
    (["access", "call"], -6, "", Verdict(Outcome.STOPPED, "SIGABRT in the wrong call")),
    (["call", "after"], -11, "", Verdict(Outcome.CRASHED, "SIGSEGV in correct use afterwards")),
    (["call"], -9, "", Verdict(Outcome.CRASHED, "it went in circles in the wrong call")),
    (["call", "after", "survived: nothing"], 0, "", Verdict(Outcome.SURVIVED, "nothing")),
    (["call", "after", "survived: nothing"], 0, "a warning", Verdict(Outcome.FOUND, "it went on after: a warning")),
    (["access", "exploited: a secret"], 0, "", Verdict(Outcome.EXPLOITED, "a secret")),
    (["access", "exploited: a secret"], 0, "a warning", Verdict(Outcome.EXPLOITED, "a secret")),
    (["access", "exploited: a secret"], -11, "", Verdict(Outcome.EXPLOITED, "a secret")),
]


@pytest.mark.parametrize(("lines", "status", "words", "verdict"), ENDINGS)
def test_what_an_ending_means(lines, status, words, verdict):
    assert judge(Ending(tuple(lines), status, words)) == verdict


@pytest.mark.parametrize(
    ("lines", "status"),
    [([], -11), ([], 0), (["call"], 0), (["broken: no thread"], 3), (["call", "broken: no block"], 3)],
)
def test_a_trial_that_says_nothing_is_no_verdict(lines, status):
    with pytest.raises(Inconclusive):
        judge(Ending(tuple(lines), status))


# --- the scorecard ---------------------------------------------------------------------------------------------------

ATTACKS = [
    Attack("twice", "double free", "a block", "freed twice"),
    Attack("next", "neighbour", "a place", "the next block"),
    Attack("correct", CONTROL, "nothing", "correct use"),
]
WORDS = {"s": ("call",), "f": ("call", "after"), "v": ("call", "after", "survived: x"), "x": ("call", "exploited: y")}


@pytest.fixture
def scorecard():
    """Makes one from letters: attack -> allocator -> what its trials come to."""

    def make(letters: dict[str, dict[str, str]]) -> score.Scorecard:
        names = list(next(iter(letters.values())))
        made = score.Scorecard(ATTACKS, names)
        trials = {(attack, name): iter(text) for attack, row in letters.items() for name, text in row.items()}

        def ending(_program, allocator, attack) -> Ending:
            letter = next(trials[attack.name, allocator.name])
            return Ending(WORDS[letter], 0 if letter in "vx" else -6)

        found = [allocators.Allocator(name, None, "1") for name in names]
        list(score.fill(made, None, found, 4, ending))
        return made

    return make


def test_a_cell_is_the_worst_that_happened_with_the_odds_beside_it(scorecard):
    made = scorecard(
        {"twice": {"a": "ssss", "b": "sxvs"}, "next": {"a": "vvvv", "b": "xxvv"}, "correct": {"a": "vvvv", "b": "vvvv"}}
    )
    cell = made.cell("twice", "b")
    assert cell.worst is Outcome.EXPLOITED and cell.share(Outcome.STOPPED) == 0.5
    assert [text for _, text in tables.in_words(cell)] == ["exploited 25 %", "survived 25 %", "stopped 50 %"]
    assert [text for _, text in tables.in_words(made.cell("twice", "a"))] == ["stopped"]
    assert made.worst(made.mistakes, "b") == {Outcome.EXPLOITED: 1}
    assert made.shares(made.of_kind(*ODDS), "b")[Outcome.EXPLOITED] == 0.5
    assert made.mistakes == ATTACKS[:1] and made.complaints == []


def test_a_control_that_does_not_survive_is_a_complaint(scorecard):
    made = scorecard({"twice": {"a": "ssss"}, "next": {"a": "vvvv"}, "correct": {"a": "vvfv"}})
    (complaint,) = made.complaints
    assert complaint == "correct, a: does nothing wrong and was found"


def test_odds_that_are_not_certain_do_not_look_so():
    assert [tables.percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == ["0 %", "< 1 %", "50 %", "> 99 %", "100 %"]


def test_the_table_goes_between_the_marks_of_a_document(scorecard, tmp_path):
    made = scorecard({"twice": {"a": "xsss"}, "next": {"a": "vvvv"}, "correct": {"a": "vvvv"}})
    made.absent.append({"allocator": "annex-hardened", "why": "not built"})
    found = [allocators.Allocator("a", None, "1")]
    document = made.as_document(found, {"command": "annex-lab attacks", "trials": 4})
    text = tables.as_markdown(made, document)
    assert "| twice: freed twice | **exploited 25 %**, stopped 75 % |" in text
    assert "Made by: `annex-lab attacks`, 4 trials" in text
    assert "annex-hardened is left out, as it is not here (not built)" in text
    file = tmp_path / "attacks.md"
    file.write_text(f"# Mine\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
    tables.write(text, file)
    assert file.read_text() == f"# Mine\n{tables.BEGIN}\n\n{text}\n{tables.END}\nafter\n"
    tables.write(text, tmp_path / "new.md")
    assert text in (tmp_path / "new.md").read_text()


# --- randomness ------------------------------------------------------------------------------------------------------


def test_entropies_of_samples_that_are_known():
    same = randomness.entropy([5] * 64)
    assert (same.best_guess, same.min_bits, same.shannon_bits, same.collision_bits, same.bits) == (1, 0, 0, 0, 0)
    even = randomness.entropy([0, 16, 32, 48] * 16)
    assert (even.best_guess, even.min_bits, even.shannon_bits, even.bits) == (0.25, 2, 2, 2)
    assert even.collision_bits == pytest.approx(2, abs=0.1) and not even.collision_is_bound
    other = randomness.entropy(range(64))
    assert other.shannon_bits == 6 and other.bits == 6
    assert other.collision_is_bound and other.collision_bits == pytest.approx(10.98, abs=0.01)


def test_directly_behind_is_counted_by_what_a_block_really_has():
    places = randomness.parse("0x7f00\n64 0x1000 72\n64 0x1050 72\n64 0x2000 64\n64 0x2040 64\n64 0x1000 64\n")
    assert places.libc == 0x7F00
    found = randomness.of_places(64, [places, places], [places])
    assert found.behind == 0.5  # twice after a gap of 8 bytes or none, once far ahead, once before
    assert found.first.best_guess == 1 and found.distance.samples == 4


# --- the program -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program():
    if not all(map(shutil.which, ("cmake", "ninja", "c++"))):
        pytest.skip("the attack program cannot be built here: cmake, ninja or c++ is missing")
    return native.attack()


def found_or_skip(name: str) -> allocators.Allocator:
    try:
        return allocators.find(name)
    except allocators.Unavailable as why:
        pytest.skip(str(why))


def outcomes(program, name: str, attack: str, trials: int = 3) -> set[Outcome]:
    allocator = found_or_skip(name)
    attack_program.check_served(program, allocator)
    (chosen,) = [one for one in attack_program.listed(program) if one.name == attack]
    return {judge(attack_program.trial(program, allocator, chosen)).outcome for _ in range(trials)}


def test_there_are_enough_attacks_and_each_has_a_name_of_its_own(program):
    listed = attack_program.listed(program)
    names = [attack.name for attack in listed]
    assert len(names) == len(set(names))
    assert sum(attack.kind not in (CONTROL, *ODDS) for attack in listed) >= 40
    kinds = {attack.kind for attack in listed}
    assert {CONTROL, *ODDS} <= kinds and not kinds & set(names)
    assert sum(attack.kind == CONTROL for attack in listed) >= 2
    assert all(attack.what and attack.gain for attack in listed)


@pytest.mark.parametrize("name", ["glibc", "mimalloc3-secure", "snmalloc-checks", "scudo", "annex", "annex-hardened"])
def test_what_does_nothing_wrong_survives_everywhere(program, name):
    for attack in attack_program.listed(program):
        if attack.kind == CONTROL:
            assert outcomes(program, name, attack.name) == {Outcome.SURVIVED}, attack.name


@pytest.mark.parametrize("name", ["annex", "annex-solo", "annex-offload", "annex-hardened"])
def test_annex_stops_a_double_free_at_once(program, name):
    for attack in ("double-free", "double-free-late", "double-free-large", "free-inside", "free-static"):
        assert outcomes(program, name, attack) == {Outcome.STOPPED}, attack


def test_what_is_known_of_glibc(program):
    assert outcomes(program, "glibc", "double-free") == {Outcome.STOPPED}  # its tcache's key
    assert outcomes(program, "glibc", "header-grown") == {Outcome.EXPLOITED}  # its headers lie between blocks
    assert outcomes(program, "glibc", "stale-write") == {Outcome.EXPLOITED}


def test_a_library_that_is_not_the_one_is_refused(program, tmp_path):
    (tmp_path / "libnone.so").write_text("no library")
    nothing = allocators.Allocator("none", tmp_path / "libnone.so", "1")
    with pytest.raises(allocators.Unavailable, match="cannot be preloaded"):
        attack_program.check_served(program, nothing)


def test_the_command_from_end_to_end(program, tmp_path):
    arguments = ["attacks", "--trials", "2", "--attack", "huge request", "--attack", "control-correct-use"]
    arguments += ["--allocators", "glibc", "--randomness", "--samples", "4", "--report", str(tmp_path)]
    result = run(cli.app, arguments)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "attacks.md").read_text()
    assert re.search(r"\| calloc-wraps: [^|]* \| stopped \|", text) and "### Randomness" in text
    assert '"attack": "calloc-wraps"' in (tmp_path / "attacks.json").read_text()


def test_an_allocator_that_is_not_built_is_said_and_fails_only_where_it_was_named(program, monkeypatch):
    def find(name: str) -> allocators.Allocator:
        if name != "glibc":
            raise allocators.Unavailable(f"{name} is not built")
        return allocators.Allocator("glibc", None, "1")

    monkeypatch.setattr(allocators, "find", find)
    monkeypatch.setattr(allocators, "build_missing", lambda _names: None)
    quick = ["attacks", "--trials", "1", "--attack", "control-correct-use"]
    result = run(cli.app, quick)
    assert result.exit_code == 0 and "annex-hardened is not built" in result.output
    assert run(cli.app, [*quick, "--allocators", "glibc,annex-hardened"]).exit_code == 1
    assert run(cli.app, [*quick, "--allocators", "annex-hardened"]).exit_code == 1


def test_unknown_attacks_and_allocators_are_refused(program):
    result = run(cli.app, ["attacks", "--attack", "nonesuch"])
    assert result.exit_code == 2 and "nonesuch" in result.output
    result = run(cli.app, ["attacks", "--allocators", "nonesuch", "--attack", "control-correct-use"])
    assert result.exit_code == 2 and "nonesuch" in result.output


def test_the_list_says_what_each_attack_does(program):
    result = run(cli.app, ["attacks", "--list"])
    assert result.exit_code == 0 and "double-free-race" in result.output
