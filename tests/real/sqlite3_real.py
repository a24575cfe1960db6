"""sqlite3: a database of ten thousands of rows built, indexed, searched, changed, vacuumed and dumped."""

from harness import INPUTS, main


def work(on):
    results = {}
    results["queries on disk"] = on.run(["sqlite3", "-batch", "items.db"], (INPUTS / "items.sql").read_bytes()).out
    results["dump"] = on.run(["sqlite3", "items.db", ".dump item"]).out
    results["restored"] = on.run(
        ["sqlite3", ":memory:"], results["dump"] + b"SELECT count(*), max(note) FROM item;"
    ).out
    return results


main(work, ["sqlite3"], processes=3)
