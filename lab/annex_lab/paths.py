"""Where things lie: the repository, its build folder, what the lab compiles and generates there."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent.parent
BUILD = ROOT / "build"
RELEASE = BUILD / "release"
PEERS = BUILD / "peers"
BENCH = BUILD / "bench"  # what the lab compiles: the runner, the workloads
DATA = BUILD / "bench-data"  # inputs, generated once, the same on every machine
