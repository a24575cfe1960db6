"""The packages that peers come from, one class a kind of package. All can say whether they are here, fetch, and unpack.

What is fetched is checked against the sha256 in pins.json and kept in build/peers/vendor (crates) or
build/peers/packages (the rest), so a second run needs no network. Only the kind `deb` has neither a version nor a hash:
it is what the distribution ships today, as a user's would be, and the manifest records which version that was.
"""

import hashlib
import json
import re
import shutil
import subprocess
import zipfile

from steps import OUT, ROOT, Failed, run

PACKAGES = OUT / "packages"
LOG = OUT / "fetch.log"


class Crate:
    """A package of Rust's registry that carries the upstream sources."""

    def __init__(self, name, version, sha256):
        self.name, self.version, self.sha256 = name, version, sha256
        self.folder = OUT / "vendor" / f"{name}-{version}"
        self.title = f"crate {name} {version.split('+')[0]}"

    def is_here(self):
        checksum = self.folder / ".cargo-checksum.json"
        return checksum.exists() and json.loads(checksum.read_text())["package"] == self.sha256

    def fetch(self):
        project = OUT / "fetch" / self.name
        (project / "src").mkdir(parents=True, exist_ok=True)
        (project / "src" / "lib.rs").write_text("")
        lines = ["[package]", 'name = "fetch"', 'version = "0.0.0"', 'edition = "2021"', "[dependencies]"]
        lines += [f'{self.name} = "={self.version.split("+")[0]}"', "[workspace]"]
        (project / "Cargo.toml").write_text("\n".join(lines) + "\n")
        run(["cargo", "vendor", "--quiet", "--no-delete", "--versioned-dirs", self.folder.parent], project, LOG)

    def unpack(self, into):
        shutil.copytree(self.folder, into)

    def upstream_version(self):
        return None  # the crate's own number says nothing of it: pins.json does

    def identity(self):
        return self.sha256


class _OneFile:
    """A package that is one file with a known name and hash."""

    def __init__(self, file, sha256):
        self.file, self.sha256 = PACKAGES / file, sha256

    def is_here(self):
        return self.file.exists() and sha256_of(self.file) == self.sha256

    def upstream_version(self):
        return None

    def identity(self):
        return self.sha256


class Wheel(_OneFile):
    """A package of Python's registry that carries the libraries, compiled by upstream itself."""

    def __init__(self, name, version, file, sha256):
        super().__init__(file, sha256)
        self.name, self.version, self.title = name, version, f"wheel {name} {version}"

    def fetch(self):
        pip = shutil.which(ROOT / ".venv" / "bin" / "pip") or shutil.which("pip3")
        if pip is None:
            raise Failed("pip is needed to fetch wheels (`make venv`, or Debian's package python3-pip)")
        wanted = f"{self.name}=={self.version}"
        run([pip, "download", "--no-deps", "--only-binary=:all:", "--dest", PACKAGES, wanted], PACKAGES, LOG)

    def unpack(self, into):
        with zipfile.ZipFile(self.file) as archive:
            archive.extractall(into)


class DebSource(_OneFile):
    """Upstream's source as Debian keeps it, of a named release of Debian, whatever release this machine runs."""

    def __init__(self, name, version, release, file, sha256):
        super().__init__(file, sha256)
        self.name, self.version, self.release = name, version, release
        self.title = f"Debian {release}'s source {name} {version}"

    def fetch(self):
        download_source(f"{self.name}={self.version}", self.release, PACKAGES, OUT / "fetch" / "apt", LOG)

    def unpack(self, into):
        into.mkdir(parents=True)
        run(["tar", "--extract", "--strip-components=1", "--file", self.file], into, LOG)


class Deb:
    """A binary package of the distribution that this machine runs."""

    def __init__(self, name):
        self.name = name

    @property
    def file(self):
        return max(PACKAGES.glob(f"{self.name}_*.deb"), key=lambda file: file.stat().st_mtime, default=None)

    @property
    def title(self):
        return f"Debian's package {self.name} {self._debian_version()}"

    def is_here(self):
        return self.file is not None

    def fetch(self):
        run(["apt-get", "-q", "download", self.name], PACKAGES, LOG)

    def unpack(self, into):
        run(["dpkg-deb", "--extract", self.file, into], PACKAGES, LOG)

    def _debian_version(self):
        if self.file is None:
            return ""
        return subprocess.run(["dpkg-deb", "-f", self.file, "Version"], capture_output=True, text=True).stdout.strip()

    def upstream_version(self):
        return re.sub(r"^\d+:|-[^-]*$", "", self._debian_version())

    def identity(self):
        return sha256_of(self.file)


KINDS = {"crate": Crate, "wheel": Wheel, "deb-source": DebSource, "deb": Deb}


def package(pin):
    """The package that a pin of pins.json describes."""
    fields = dict(pin)
    return KINDS[fields.pop("kind")](**fields)


def obtain(wanted):
    """Fetches the package unless it is here; raises Failed."""
    if wanted.is_here():
        return
    PACKAGES.mkdir(parents=True, exist_ok=True)
    wanted.fetch()
    if not wanted.is_here():
        raise Failed(f"{wanted.title}: fetched, but it is not the pinned package (version or sha256 differs)")


def download_source(wanted, release, into, apt, log):
    """Upstream's source of a package of a named release of Debian. Index and source list are this call's own, in
    `apt`: this machine's apt must not learn of another release."""
    (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (apt / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    sources = apt / "sources.list"
    sources.write_text(f"deb-src {debian_mirror()} {release} main\n")
    options = ["-q", "-o", f"Dir::Etc::SourceList={sources}", "-o", "Dir::Etc::SourceParts=/dev/null"]
    options += ["-o", f"Dir::State::Lists={apt / 'lists'}", "-o", f"Dir::Cache={apt / 'cache'}"]
    run(["apt-get", *options, "update"], into, log)
    run(["apt-get", *options, "source", "--download-only", "--tar-only", wanted], into, log)


def sha256_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def debian_mirror():
    """Where this machine's own apt has Debian from."""
    if shutil.which("apt-get") is None:
        raise Failed("apt-get is needed to fetch Debian's sources")
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"]
    command += ["Created-By: Packages", "Origin: Debian"]
    listed = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    # A release's security updates lie elsewhere, under a release name such as bookworm-security.
    plain = [line.split()[0] for line in listed if "-" not in line.split()[1]]
    if not plain:
        raise Failed("apt knows no mirror of Debian (apt-get update first?)")
    return plain[0]
