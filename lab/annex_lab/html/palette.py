"""Colours: of the tables' cells by ratio, and of the pictures' lines, each for a light page and a dark one.

Better is blue and worse is orange, which the colour-blind tell apart too. A cell's text is black or white, whichever
is easier to read on it. Pictures are drawn with stand-in colours that svg.py turns into the variables made here.
"""

import bisect

# How far a ratio may be from 1, either way, to be level and in each step from there: about even in its logarithm.
STEPS = (1.01, 1.03, 1.07, 1.15, 1.3, 1.6)

CELLS = {
    "light": {
        "l0": "#f3f3f1",
        "b": ["#e0edf8", "#c0daf0", "#93c1e4", "#62a5d6", "#2a74b2", "#0f4d8c"],
        "w": ["#fdecdd", "#fbd5b3", "#f6b580", "#ee934f", "#b8500f", "#8f3604"],
    },
    "dark": {
        "l0": "#2a2d34",
        "b": ["#1c3046", "#1d3f60", "#1f517d", "#25659f", "#5fa6e2", "#a3d1f8"],
        "w": ["#3c2b1e", "#573720", "#74431a", "#945012", "#e48a3a", "#ffc38a"],
    },
}

# Lines of pictures. Ours has a colour for itself.
OURS = ("#d0480a", "#ff8b4a")
SERIES = [
    ("#1f6fb4", "#62aef0"),
    ("#1a8a5f", "#4ccb98"),
    ("#8a5cb8", "#b995e6"),
    ("#b03a78", "#ec86ba"),
    ("#7d6a14", "#cdb654"),
    ("#0e8a96", "#4fc8d4"),
    ("#6b6f76", "#a9aeb6"),
]
DASHES = ["solid", "dashed", "dotted"]  # the names that both CSS and matplotlib know

STAND_INS = {"ink": "#010101", "muted": "#020202", "grid": "#030303", "ours": "#040404", "tint": "#050505"}
STAND_INS |= {f"s{number}": f"#0600{number:02x}" for number in range(len(SERIES))}
# The colours for a picture that is a file of its own, on white.
ON_PAPER = {"ink": "#1c1e22", "muted": "#62666d", "grid": "#b9bdc4", "ours": OURS[0]}
ON_PAPER |= {f"s{number}": pair[0] for number, pair in enumerate(SERIES)}


def step(ratio: float) -> str:
    """The class of a cell: l0 where level, b1 to b6 the better, w1 to w6 the worse."""
    if ratio <= 0:
        return "b6"
    number = min(bisect.bisect_left(STEPS, max(ratio, 1 / ratio)), len(STEPS))
    return f"{'w' if ratio > 1 else 'b'}{number}" if number else "l0"


def line(index: int) -> tuple[str, str]:
    """Name of the colour and dash of the index-th of the others; all differ for the first 21."""
    return f"s{index % len(SERIES)}", DASHES[index // len(SERIES) % len(DASHES)]


def luminance(colour: str) -> float:
    """WCAG's relative luminance of #rrggbb."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """WCAG's contrast ratio; 4.5 is its demand for small text."""
    dark, light = sorted([luminance(a), luminance(b)])
    return (light + 0.05) / (dark + 0.05)


def text_on(colour: str) -> str:
    return max("#111111", "#ffffff", key=lambda text: contrast(colour, text))


def cell_colours(theme: str) -> dict[str, str]:
    """Class -> background."""
    cells = CELLS[theme]
    numbered = {f"{side}{n}": colour for side in "bw" for n, colour in enumerate(cells[side], 1)}
    return {"l0": cells["l0"]} | numbered


def _variables(theme: str) -> str:
    found = [f"--{n}:{colour};--{n}t:{text_on(colour)}" for n, colour in cell_colours(theme).items()]
    which = 0 if theme == "light" else 1
    found += [f"--ours:{OURS[which]}", *(f"--s{n}:{pair[which]}" for n, pair in enumerate(SERIES))]
    return ";".join(found)


def css() -> str:
    """The variables of both themes and the cells' classes. Paper is light."""
    rules = [f":root{{{_variables('light')}}}"]
    rules += [f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables('dark')}}}}}"]
    rules += [f".{name}{{background:var(--{name});color:var(--{name}t)}}" for name in cell_colours("light")]
    return "\n".join(rules)
