"""python3: parsers, containers, threads, forks; on its own small-object allocator and with every object on malloc."""

from harness import INPUTS, main


def work(on):
    script = INPUTS / "records.py"
    return {
        "own allocator": on.run(["python3", "-I", script]).out,
        "all on malloc": on.run(["python3", script], env={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "1"}).out,
        "json.tool": on.run(
            ["python3", "-m", "json.tool", "--sort-keys"], "[" + '{"b": [1, 2.5, "x"], "a": {}},' * 999 + "0]"
        ).out,
    }


main(work, ["python3"], processes=3)
