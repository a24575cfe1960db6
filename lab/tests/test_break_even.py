import pytest

from annex_lab import break_even


def test_the_papers_own_numbers():
    model = break_even.estimate(279_759_405)
    assert model.extra_cycles == pytest.approx(75e9, rel=0.001)
    assert model.misses_a_call == pytest.approx(1.25, abs=0.005)


def latencies(allocator: str, ns: float, calls: int = 1000) -> list[dict]:
    return [
        {"workload": "w", "allocator": allocator, "call": call, "calls": calls, "histogram": [[ns, calls]]}
        for call in ("malloc", "free")
    ]


def test_fed_from_a_run():
    document = {"latencies": latencies("annex-offload-handshake", 120.0) + latencies("mimalloc3", 20.0)}
    found = break_even.of_results(document, "annex-offload-handshake", "mimalloc3", ghz=2.0, cycles_a_miss=100.0)
    assert found["w"].calls == 2000
    assert found["w"].cycles_a_call == pytest.approx(200.0)
    assert found["w"].misses_a_call == pytest.approx(2.0)


def test_a_cheaper_call_needs_no_miss_saved():
    document = {"latencies": latencies("annex-offload", 10.0) + latencies("glibc", 20.0)}
    assert break_even.of_results(document, "annex-offload", "glibc", 3.0, 214.0)["w"].misses_a_call == 0


def test_a_program_without_both_is_left_out():
    assert break_even.of_results({"latencies": latencies("glibc", 20.0)}, "annex-offload", "glibc", 3.0, 214.0) == {}
    assert break_even.of_results({}, "annex-offload", "glibc", 3.0, 214.0) == {}


def test_nonsense_is_refused():
    with pytest.raises(ValueError):
        break_even.estimate(-1)
    with pytest.raises(ValueError):
        break_even.estimate(1, 268, 0)
