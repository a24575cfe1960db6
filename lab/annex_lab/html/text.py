"""Numbers as people read them."""


def ratio(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def significant(value: float) -> str:
    """Three digits: 1.23, 12.3, 123."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _scaled(value: float, units: list[tuple[float, str]]) -> str:
    for size, unit in units:
        if value >= size * 0.9995:
            return f"{significant(value / size)} {unit}"
    return "0" if value <= 0 else f"{value / units[-1][0]:.2g} {units[-1][1]}"


def seconds(value: float) -> str:
    return _scaled(value, [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])


def nanoseconds(value: float) -> str:
    return _scaled(value * 1e-9, [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])


def kib(value: float) -> str:
    return _scaled(value * 1024, [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")])


def count(value: float) -> str:
    if value < 1000:
        return f"{value:.0f}"
    return _scaled(value, [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]).replace(" ", "\N{THIN SPACE}")


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
