# Every recipe works on a fresh Debian or Ubuntu machine with Python >= 3.11.
# CI calls the same names.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
GEN    := nri_proto/_gen
CRI    := tests/real_host/_gen

# Whole folders that `make check` does not even read; what else it leaves out is marked.
LONG   := containerd faults fuzz qemu soak

# Tests start hundreds of Pythons; each would compile all of us again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup packages run run-containerd test check lint types layers proto proto-check docs structure bench bench-paired fuzz soak image format clean

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

$(READY): pyproject.toml
	@PYTHON=$(PYTHON) VENV=$(VENV) tests/real_host/make-venv.sh
	@touch $@

setup: $(READY) ## a virtual environment with everything pip brings

packages: ## Debian packages that the end-to-end tests use (root)
	@tests/real_host/install-packages.sh

run: setup ## register with this machine's NRI socket, else run the demo
	@$(BIN)/nri-resmgr demo --unless-socket

run-containerd: setup packages ## a real containerd, the plugin and two pods
	@$(BIN)/python -m tests.real_host.showcase

test: setup packages lint types layers proto-check ## everything, end to end included
	@# Many tests wait for timers: three workers keep two CPUs busy. They take tests in
	@# the order of tests/conftest.py, whatever the size of a group.
	@$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder

check: setup lint types layers ## the fast subset: no containerd, QEMU or processes
	@HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n 2 --dist worksteal \
	  -m "not (containerd or qemu or process or slow)" $(LONG:%=--ignore=tests/%)

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy
	@for plugin in plugins/*/__main__.py; do $(BIN)/mypy $$plugin || exit 1; done

layers: setup
	@$(BIN)/lint-imports

proto: setup ## regenerate the _gen folders from the proto folders
	@# The mapped path keeps our file names unique in protobuf's one global pool.
	@$(BIN)/python -m grpc_tools.protoc --proto_path=$(GEN)=nri_proto/proto \
	  --python_out=. --pyi_out=. $(GEN)/nri.proto $(GEN)/ttrpc.proto
	@# Field.None is the schema's name, but no stub can spell it.
	@sed -i '/^ *None: /d' $(GEN)/nri_pb2.pyi
	@$(BIN)/python -m grpc_tools.protoc --proto_path=$(CRI)=tests/real_host/proto \
	  --python_out=. --pyi_out=. $(CRI)/cri.proto

proto-check: proto
	@git diff --exit-code --stat -- $(GEN) $(CRI) || { \
	  echo "generated code differs from its .proto files: commit what 'make proto' wrote"; exit 1; }

bench: setup ## measure; prints the tables of docs/benchmarks.md
	@$(BIN)/python -m tests.benchmarks

bench-paired: setup ## compare with another commit in one run: make bench-paired BASE=v0.1
	@$(BIN)/python -m tests.benchmarks.paired $(BASE)

docs: setup ## regenerate the tables of docs/ that come from the code
	@$(BIN)/python -m tests.docs

structure: setup ## measure the code's structure; writes its table in docs/architecture.md
	@$(BIN)/python -m tests.structure

fuzz: setup ## the laws of tests/fuzz for an hour; with atheris installed, that, too
	@HYPOTHESIS_PROFILE=long $(BIN)/pytest -n 2 --timeout 0 tests/fuzz tests/laws/test_wire_long.py
	@$(BIN)/python -m tests.fuzz

soak: setup ## a million events through the socket; prints the table of docs/soak.md
	@$(BIN)/python -m tests.soak

image: setup ## build/nri-resmgr-VERSION.oci.tar: the image, of Debian packages (root)
	@PYTHON=$(BIN)/python deploy/image/build.sh build

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
