# Every command of the house: thin calls of CMake, CTest and the scripts in tools/. `make help` lists them.
PRESET ?= release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
PYTHON ?= python3
RUN_SECONDS ?= 45
.DEFAULT_GOAL := build
# One target after the other: they share build folders, apt's lock and .venv. What they call has $(JOBS) jobs, also under -j.
.NOTPARALLEL:

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

build: configure  ## everything, into build/release (PRESET=debug, asan or tsan for another kind)
	@cmake --build --preset $(PRESET) -j $(JOBS)

configure: build-deps
	@cmake --preset $(PRESET) --log-level=WARNING -DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX)) >/dev/null

library: configure  ## the allocator and its launcher alone
	@cmake --build --preset $(PRESET) -j $(JOBS) --target annex-library

run: run-deps  ## real programs on Annex beside the C library's allocator: time, memory, page faults
	@$(MAKE) --no-print-directory library PRESET=release
	@$(PYTHON) -B tools/side_by_side.py --seconds $(RUN_SECONDS)

test: test-deps  ## every test: release, both sanitizer builds, real programs, the lab
	@JOBS=$(JOBS) tools/test

bench: bench-deps venv  ## every allocator on a quick suite, under 10 minutes; report in build/bench/report/
	@$(MAKE) --no-print-directory library PRESET=release
	.venv/bin/annex-lab bench --suite quick --report build/bench/report

ladder: bench-deps venv  ## what each of the offload flavour's protocols saves; build/bench/ladder/ladder.md and .svg
	@$(MAKE) --no-print-directory library PRESET=release
	.venv/bin/annex-lab bench --allocators ladder --workloads hashmap,bintree,larson,python-dicts,xalan --scale 0.3 \
	  --rounds 7 --latency --report build/bench/ladder
	.venv/bin/annex-lab ladder build/bench/ladder/results.json --report build/bench/ladder

sim: sim-deps venv qemu configure  ## the simulator: annex-lab sim runs any program on a simulated machine
	@cmake --build --preset release -j $(JOBS) --target annex-sim annex-machine
	@.venv/bin/annex-lab sim --check

validate: bench-deps sim library  ## the simulator against references; docs/simulator-validation.md
	.venv/bin/annex-lab validate

install: configure  ## into PREFIX (default /usr/local); DESTDIR is honoured
	@cmake --build --preset $(PRESET) -j $(JOBS) --target annex-installed
	cmake --install build/$(PRESET)

uninstall:  ## what install put into PREFIX
	@test -f build/$(PRESET)/install_manifest.txt || \
	  { echo "uninstall: no list of what was installed (build/$(PRESET)/install_manifest.txt); make install first" >&2; exit 1; }
	@cmake -D MANIFEST=build/$(PRESET)/install_manifest.txt -D PREFIX=$(abspath $(PREFIX)) -P cmake/uninstall.cmake

venv: .venv/ready  ## .venv with the lab and the Python tools

.venv/ready: lab/pyproject.toml tools/apt-venv.txt
	@tools/install-deps tools/apt-venv.txt
	@test -x .venv/bin/pip || $(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --editable 'lab[campaign,test]'
	@touch $@

format: lint-deps venv  ## rewrites the sources in the house's format, and figures in documents
	@tools/lint --fix

lint: lint-deps venv qemu  ## format, layers, figures in documents, clang-tidy, ruff: says what is wrong
	@tools/lint

qemu:
	@tools/qemu --jobs $(JOBS)

build-deps:  # without a word where what builds is here, on whatever system
	@for tool in cmake ninja $(CXX); do command -v $$tool >/dev/null || exec tools/install-deps tools/apt.txt; done

run-deps:
	@tools/install-deps tools/apt.txt

test-deps:
	@tools/install-deps tools/apt.txt tools/apt-test.txt tools/apt-sim.txt tools/apt-venv.txt

bench-deps:
	@tools/install-deps tools/apt.txt tools/apt-venv.txt peers/apt.txt lab/apt.txt

sim-deps:
	@tools/install-deps tools/apt.txt tools/apt-sim.txt tools/apt-venv.txt

lint-deps:
	@tools/install-deps tools/apt.txt tools/apt-sim.txt tools/apt-lint.txt

clean:  ## removes what was built (not .venv)
	rm -rf build

.PHONY: qemu help build configure library run test bench ladder sim validate install uninstall venv format lint clean \
	build-deps run-deps test-deps bench-deps sim-deps lint-deps
