"""perl: hashes, strings, regular expressions, sorting, closures, and forks with pipes."""

from harness import INPUTS, main


def work(on):
    return {"script": on.run(["perl", INPUTS / "words.pl"], env={"PERL_HASH_SEED": "0"}).out}


main(work, ["perl"], processes=9)
