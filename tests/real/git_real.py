"""git: a history of hundreds of commits made, merged, searched, repacked with threads, checked and cloned."""

from harness import main

CONFIG = """
[user]
	name = A
	email = a@example.org
[gc]
	auto = 0
[maintenance]
	auto = false
[pack]
	threads = 2
[init]
	defaultBranch = main
"""


def history(commits):
    """A stream for git fast-import: files that grow, change and vanish."""
    random = 7
    stream = []
    for n in range(1, commits + 1):
        message = f"Commit {n}\n\nReason number {n * n % 97}.\n"
        stream.append(f"commit refs/heads/main\nmark :{n}\ncommitter A <a@example.org> {1700000000 + n * 60} +0000\n")
        stream.append(f"data {len(message)}\n{message}")
        if n > 1:
            stream.append(f"from :{n - 1}\n")
        for _ in range(6):
            random = (random * 1103515245 + 12345) & 0x7FFFFFFF
            name = f"dir{random % 11}/file{random // 11 % 23}.txt"
            if random % 29 == 0:
                stream.append(f"D {name}\n")
                continue
            lines = "".join(f"line {i} of {name} by {n if i % 9 == random % 9 else 0}\n" for i in range(random % 160))
            stream.append(f"M 100644 inline {name}\ndata {len(lines)}\n{lines}\n")
    return "".join(stream)


def work(on):
    (on.dir / "gitconfig").write_text(CONFIG)
    env = {
        "GIT_CONFIG_GLOBAL": str(on.dir / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "GIT_AUTHOR_DATE": "1700100000 +0000",
        "GIT_COMMITTER_DATE": "1700100000 +0000",
    }

    def git(*arguments, input=None):
        return on.run(["git", "-C", on.dir / "repo", *arguments], input, env=env).out

    on.run(["git", "init", "-q", "repo"], env=env)
    git("fast-import", "--quiet", input=history(600))
    git("checkout", "-q", "-b", "side", "main~40")
    for n in range(5):
        (on.dir / "repo" / f"side{n}.txt").write_text(f"side {n}\n" * 100)
        git("add", "-A")
        git("commit", "-q", "-m", f"Side {n}")
    git("checkout", "-q", "main")
    git("merge", "-q", "-m", "Merge side", "side")
    results = {
        "log": git("log", "--stat", "--format=%H %an %s", "-n", "200"),
        "patches": git("log", "-p", "-n", "60"),
        "grep": git("grep", "-n", "-e", "line 1[0-9] of .* by [1-9]", "HEAD"),
        "blame": git("blame", "-s", "dir3/file4.txt") + git("blame", "-s", "-M", "-C", "dir5/file7.txt"),
        "pickaxe": git("log", "--oneline", "-S", "by 333"),
        "objects": git("rev-list", "--objects", "--all"),
    }
    git("repack", "-q", "-a", "-d", "-f", "--depth=30", "--window=20")
    git("gc", "-q", "--prune=now", "--aggressive")
    results["fsck"] = git("fsck", "--full", "--strict")
    results["sizes"] = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
    on.run(["git", "clone", "-q", "--no-local", "repo", "copy"], env=env)
    results["clone"] = on.run(["git", "-C", "copy", "log", "--format=%H", "--all"], env=env).out
    results["files of the clone"] = on.run(["git", "-C", "copy", "ls-files", "-s"], env=env).out
    git("bundle", "create", "-q", "../all.bundle", "--all")
    results["bundle"] = on.run(["git", "-C", "repo", "bundle", "list-heads", "../all.bundle"], env=env).out
    return results


main(work, ["git"], processes=30)
