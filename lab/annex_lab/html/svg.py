"""A matplotlib figure as SVG that stands inside the page: small, in the page's font and colours, the same every time.

matplotlib writes a file of its own, with a header, metadata, ids that several pictures would share, and fixed colours.
Only tags are changed here, never the text between them, which may hold anything that a user called a program.
"""

import io
import re
import warnings

import matplotlib
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from annex_lab.html import palette

SETTINGS = {
    "svg.fonttype": "none",  # text stays text: to be found, copied and read aloud
    "svg.hashsalt": "annex-lab",
    "text.parse_math": False,  # a $ in a name is a $
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), "#010101"),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), "#020202"),
    "grid.color": "#030303",
}

_VARIABLES = {stand_in: f"var(--{name})" for name, stand_in in palette.STAND_INS.items()}
_COLOUR = re.compile("|".join(_VARIABLES))
_REFERENCE = re.compile(r'(?:xlink:href="|url\()#([\w.-]+)')


def settings():
    """The context that figures are made and drawn in."""
    return matplotlib.rc_context(SETTINGS)


def inline(figure: Figure, name: str, label: str) -> Markup:
    """`name` keeps the ids of one picture apart from another's; `label` is what it is called to those who can't see."""
    text = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser has more fonts than matplotlib
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawing = text.getvalue()
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing).groups()
    body = drawing[drawing.index("</metadata>") + len("</metadata>") : drawing.rindex("</svg>")]
    body = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    referenced = set(_REFERENCE.findall(body))
    body = re.sub(r"<[^>]*>", lambda tag: _tag(tag.group(), name, referenced), body)
    body = re.sub(r">\s+<", "><", body)
    while "<g></g>" in body:
        body = body.replace("<g></g>", "")
    size = f'style="max-width:{1.3 * float(width):.0f}px"'  # larger than drawn only as far as the letters stay letters
    head = f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" {size}>'
    return Markup(f"{head}{body.strip()}</svg>")


def _tag(tag: str, name: str, referenced: set[str]) -> str:
    tag = re.sub(r' id="([\w.-]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in referenced else "", tag)
    tag = re.sub(r'xlink:href="#', f'href="#{name}-', tag).replace("url(#", f"url(#{name}-")
    tag = _COLOUR.sub(lambda colour: _VARIABLES[colour.group()], tag)
    tag = re.sub(r"font(-family)?: ?([\d.]+px )?'DejaVu Sans'[^;\"]*(; )?", _without_family, tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", tag)
    tag = re.sub(r"(\d+\.\d\d)\d+", r"\1", tag)
    return re.sub(r"\s+", " ", tag)


def _without_family(font: re.Match) -> str:
    """The size, where the shorthand gives it with the family; the page gives the family."""
    return f"font-size: {font[2].strip()}{font[3] or ''}" if font[2] else ""
