"""An allocator without what a hardware unit needs of it is refused before the run, with the reason."""

import subprocess
import sys

import pytest
import simulator

from annex_lab import paths
from annex_lab.sim import machines, run, suited
from annex_lab.sim.asked import Asked, Failed, ready

MARKERS = f'#include "{paths.ROOT}/src/experiments/mallacc_markers.h"\n'
PLAIN = "#include <stddef.h>\nvoid* malloc(size_t n) { return 0; }\nvoid free(void* p) {}\n"
# As Annex is marked, which has no list to push to, and takes no samples.
SIZE_AND_POP = """
void* marked(unsigned long n, unsigned long* list) {
  MALLACC_SIZE_BEGIN(n); unsigned c = n / 16; MALLACC_SIZE_ALONE(c);
  MALLACC_POP_BEGIN(c); unsigned long first = *list, next = first + 1; MALLACC_POP_END(first, next);
  return (void*)(first + next);
}
"""
ALL = (
    SIZE_AND_POP
    + """
void marked_free(unsigned c, unsigned long block) { MALLACC_PUSH_BEGIN(c, block); MALLACC_PUSH_END(); }
void marked_count(unsigned long n) { MALLACC_SAMPLE_BEGIN(n); MALLACC_SAMPLE_END(); }
"""
)
SOURCES = {
    "unmarked": PLAIN,
    "marked": MARKERS + PLAIN + ALL,
    "marked-without-push": MARKERS + PLAIN + SIZE_AND_POP,
    "begins-alone": MARKERS + PLAIN + "void begun(unsigned c) { MALLACC_POP_BEGIN(c); }\n",
    "no-free": "#include <stddef.h>\nvoid* malloc(size_t n) { return 0; }\n",
    "nothing": "int answer(void) { return 42; }\n",
    "calls-it-only": "#include <stdlib.h>\nvoid* mine(void) { return malloc(1); }\nvoid other(void* p) { free(p); }\n",
}
WITH_MARKERS = [name for name in machines.hardware() if name.startswith("mallacc")]
ALLOCATORS = ["unmarked", "marked", "marked-without-push"]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    found = {}
    for name, source in SOURCES.items():
        (folder / f"{name}.c").write_text(source)
        found[name] = folder / f"lib{name}.so"
        command = ["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", folder / f"{name}.c", "-o", found[name]]
        subprocess.run(command, check=True)
    return found


def mallacc(entries=16, **steps):
    usual = dict.fromkeys(("size_class", "pop", "push", "sampling"), "unit")
    return {"mallacc": {"entries": entries, **usual, **steps}}


def refusal(library, machine):
    try:
        suited.check_library(library)
        suited.check_markers(library.stem, [library], machine)
    except suited.Unsuited as why:
        return str(why)
    return ""


def test_a_library_that_is_no_allocator(libraries):
    assert refusal(libraries["no-free"], {}) == "libno-free.so defines no free: it is not an allocator"
    for name in ("nothing", "calls-it-only"):
        assert refusal(libraries[name], {}) == f"lib{name}.so defines no malloc and no free: it is not an allocator"


def test_a_file_that_is_no_library_of_this_processor(libraries, tmp_path):
    text, arm = tmp_path / "text.so", tmp_path / "arm.so"
    text.write_text("no library")
    foreign = bytearray(libraries["unmarked"].read_bytes())
    foreign[18] = 183
    arm.write_bytes(foreign)
    assert "text.so is not an ELF library" in refusal(text, {})
    assert refusal(arm, {}) == "arm.so is a library for AArch64, not for x86-64"


def test_markers_are_found_in_the_code(libraries):
    found = {name: suited.marked_steps(libraries[name]) for name in ("unmarked", "begins-alone", *ALLOCATORS)}
    assert found["unmarked"] == found["begins-alone"] == frozenset()
    assert found["marked"] == {"size_class", "pop", "push", "sampling"}
    assert found["marked-without-push"] == {"size_class", "pop"}


def test_no_markers_at_all(libraries):
    why = refusal(libraries["unmarked"], mallacc())
    assert why.startswith("mallacc does nothing for libunmarked, which has no markers for it")
    assert refusal(libraries["unmarked"], mallacc(0, push="free")) == why
    everything_in_software = dict.fromkeys(("size_class", "pop", "push", "sampling"), "software")
    assert refusal(libraries["unmarked"], mallacc(**everything_in_software)) == why


def test_no_markers_for_what_the_unit_does(libraries):
    only_pushes = dict.fromkeys(("size_class", "pop", "sampling"), "software")
    why = refusal(libraries["marked-without-push"], mallacc(**only_pushes))
    assert "it is to do push, and the markers there are for pop, size_class" in why
    assert not refusal(libraries["marked"], mallacc(**only_pushes))
    assert not refusal(libraries["marked-without-push"], mallacc())  # some of its steps are there


def test_a_machine_without_a_malloc_cache_needs_no_markers(libraries):
    for machine in ({}, mallacc(0)):
        assert not refusal(libraries["unmarked"], machine)


needs_tool = pytest.mark.skipif(not run.OURS.tool.exists(), reason="annex-machine is not built")


@needs_tool
@pytest.mark.parametrize("hardware", machines.hardware())
@pytest.mark.parametrize("allocator", SOURCES)
def test_every_unit_with_every_kind_of_allocator(libraries, hardware, allocator, tmp_path):
    """As `annex-lab sim --hardware` does it."""
    asked = Asked(str(libraries[allocator]), command=("true",), hardware=hardware)
    refused = allocator in ("no-free", "nothing", "calls-it-only")
    refused = refused or (hardware in WITH_MARKERS and allocator in ("unmarked", "begins-alone"))
    if refused:
        with pytest.raises(Failed) as failed:
            ready(asked, tmp_path)
        assert failed.value.status == 2 and "\n" not in str(failed.value)
    else:
        assert ready(asked, tmp_path)[0].library == str(libraries[allocator])


@simulator.needed
@pytest.mark.parametrize("hardware", machines.hardware())
def test_glibc_has_malloc_and_no_markers(hardware, tmp_path):
    if hardware in WITH_MARKERS:
        with pytest.raises(Failed, match="mallacc does nothing for glibc, which has no markers for it"):
            ready(Asked("glibc", command=("true",), hardware=hardware), tmp_path)
    else:
        assert ready(Asked("glibc", command=("true",), hardware=hardware), tmp_path)


@simulator.needed
def test_a_program_may_bring_a_marked_allocator_along(tmp_path):
    source, program = tmp_path / "own.c", tmp_path / "own"
    source.write_text(SOURCES["marked"] + "int main(void) { return 0; }\n")
    subprocess.run(["cc", "-O1", "-fno-builtin", source, "-o", program], check=True)
    assert ready(Asked("glibc", command=(str(program),), hardware="mallacc"), tmp_path)


@simulator.needed
def test_the_command_says_it_in_one_line(tmp_path):
    command = [sys.executable, "-m", "annex_lab.cli", "sim", "--hardware", "mallacc", "--json", tmp_path / "out.json"]
    done = subprocess.run([*map(str, command), "--", "true"], capture_output=True, text=True)
    assert done.returncode == 2 and not (tmp_path / "out.json").exists()
    assert done.stderr.splitlines() == [
        "annex-lab sim: mallacc does nothing for glibc, which has no markers for it: "
        "gperftools-marked, annex-marked, annex-solo-marked have"
    ]
