"""docs/hardware-new-unit.md shows code: it is that of the tree."""

import re

import pytest

from annex_lab import paths

PAGE = (paths.ROOT / "docs/hardware-new-unit.md").read_text()
FILES = (
    "sim/machine/parameters.h",
    "sim/hardware/fixed_time.h",
    "sim/hardware/units.cpp",
    "sim/presets/hardware/fixed-time.toml",
    "tests/sim/fixed_time_test.cpp",
)
BLOCKS = re.findall(r"```(?:cpp|toml)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("file", "block"), list(zip(FILES, BLOCKS, strict=True)))
def test_what_is_shown_is_what_is_there(file, block):
    there = (paths.ROOT / file).read_text()
    for part in block.split("  // ...\n"):
        lines = [line.strip() for line in part.splitlines()]
        shown = "\n".join(line for line in lines if line and line != "};")
        assert shown in "\n".join(line.strip() for line in there.splitlines() if line.strip() not in ("", "};"))
