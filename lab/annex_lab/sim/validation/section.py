"""A section of the page: a table of what was found, each row with its verdict."""

from dataclasses import dataclass, field

MET, NOT_MET = "met", "**not met**"
NO_BOUND = "-"


@dataclass
class Section:
    title: str
    text: str
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    judged: bool = False  # by a bound
    left_out: str = ""  # why nothing was measured

    def verdict(self, met: bool, what: str) -> str:
        """The cell; `what` says which bound it was, for those that are not met."""
        self.judged = True
        if not met:
            self.failed.append(what)
        return MET if met else NOT_MET

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", self.text, ""]
        if self.left_out:
            return "\n".join([*lines, f"Not measured: {self.left_out}.", ""])
        lines += ["| " + " | ".join(self.head) + " |", "|" + "---|" * len(self.head)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        if self.failed:
            lines += ["", f"**Not met:** {'; '.join(self.failed)}."]
        elif self.judged:
            lines += ["", "All within their bounds."]
        return "\n".join([*lines, ""])
