# All targets work on a new Debian or Ubuntu machine with Python >= 3.11. CI calls them,
# too.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SITE   := $(VENV)/.ready-site
GEN    := nri_proto/_gen
CRI    := tests/real_host/_gen
KUBELET := nri_resmgr/kubelet/_gen

# Of `make fuzz`, for all targets together.
MINUTES ?= 60

# Test folders that `make check` ignores; it also leaves out tests by their markers.
LONG   := containerd faults fuzz kubernetes qemu soak

# Most tests wait for timers: four workers keep two CPUs busy, also in `make check`. They
# run tests in the order of tests/conftest.py, whatever the size of a group.
WHOLE  := -p tests.gate.alone -p tests.gate.tested_versions \
          -n 4 --dist loadgroup --no-loadscope-reorder

# Tests start hundreds of interpreters; without byte code each would compile the package.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup lock packages run run-containerd test test-newest test-lowest test-bare check lint types layers proto proto-check docs site screenshots quality structure mpolset bench bench-admission bench-cluster bench-cri bench-paired bench-scheduler faults fuzz fuzz-laws fuzz-restarts soak image kubectl-plugin dist format clean crds

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

$(READY): pyproject.toml tests/requirements.txt
	@PYTHON=$(PYTHON) VENV=$(VENV) tests/real_host/make-venv.sh
	@touch $@

# The packages of the site are apart: `make run` is fast without them.
$(SITE): $(READY) deploy/site/requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes \
	  --requirement deploy/site/requirements.txt
	@touch $@

setup: $(READY) ## make a virtual environment with all Python packages, as locked

lock: ## lock the newest packages that pyproject.toml allows
	@PYTHON=$(PYTHON) tests/gate/lock.sh

packages: ## install the Debian packages for end-to-end tests (root)
	@tests/real_host/install-packages.sh

run: setup ## register with the NRI socket of this machine, else run the demo
	@$(BIN)/nri-resmgr demo --unless-socket

run-containerd: setup packages ## run containerd, the plugin and two pods
	@$(BIN)/python -m tests.real_host.showcase

test: setup $(SITE) packages lint types layers proto-check ## run all checks and tests, including end to end
	@$(BIN)/pytest $(WHOLE)

test-newest: setup packages ## run the tests, without QEMU, with the newest packages of today
	@$(BIN)/python -m tests.gate.other_packages newest $(WHOLE) -m "not qemu"

test-lowest: setup packages ## run them with the oldest packages that pyproject.toml allows
	@$(BIN)/python -m tests.gate.other_packages lowest $(WHOLE) -m "not qemu"

# For `make test-bare`: a suite of Debian, or one of Ubuntu with the URL of its archive, a
# command in the clone (those of the README by default), and CACHE=1 to share this machine's
# cache of fetched and built files.
SUITE ?= trixie
UBUNTU ?=
CACHE ?=

test-bare: setup packages ## try HEAD on a bare machine made by debootstrap: SUITE=trixie RUN="make check" (root)
	@$(BIN)/python -m tests.real_host.bare $(if $(CACHE),--share-cache) \
	  $(UBUNTU:%=--ubuntu %) $(SUITE) $${RUN:+"$$RUN"}

check: setup lint types layers ## run the fast subset, without containerd, Kubernetes, QEMU or processes
	@HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n 4 --dist worksteal \
	  -m "not (containerd or kubernetes or qemu or process or slow)" $(LONG:%=--ignore=tests/%)

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup $(SITE)
	@$(BIN)/mypy
	@for plugin in plugins/*/__main__.py; do $(BIN)/mypy $$plugin || exit 1; done

layers: setup
	@$(BIN)/lint-imports

proto: setup ## regenerate the _gen folders from the proto folders
	@# The mapped path keeps our file names unique in protobuf's one global pool.
	@$(BIN)/python -m grpc_tools.protoc --proto_path=$(GEN)=nri_proto/proto \
	  --python_out=. --pyi_out=. $(GEN)/nri.proto $(GEN)/ttrpc.proto
	@# Field.None is a name of the schema that is no valid Python.
	@sed -i '/^ *None: /d' $(GEN)/nri_pb2.pyi
	@$(BIN)/python -m grpc_tools.protoc --proto_path=$(CRI)=tests/real_host/proto \
	  --python_out=. --pyi_out=. $(CRI)/cri.proto
	@$(BIN)/python -m grpc_tools.protoc --proto_path=$(KUBELET)=nri_resmgr/kubelet/proto \
	  --python_out=. --pyi_out=. $(addprefix $(KUBELET)/,$(notdir $(wildcard nri_resmgr/kubelet/proto/*.proto)))

proto-check: proto
	@git diff --exit-code --stat -- $(GEN) $(CRI) $(KUBELET) || { \
	  echo "generated code differs from its .proto files: commit what 'make proto' wrote"; exit 1; }

bench: setup ## measure; print the tables of docs/benchmarks.md
	@$(BIN)/python -m tests.benchmarks

bench-cri: setup packages ## measure calls of a kubelet on real containerds, with and without us (root)
	@$(BIN)/python -m tests.benchmarks.cri
	@$(BIN)/python -m tests.benchmarks.replies

bench-cluster: setup packages ## measure agents with a real API server (root)
	@$(BIN)/python -m tests.benchmarks.cluster_apply
	@$(BIN)/python -m tests.benchmarks.cluster_load
	@$(BIN)/python -m tests.benchmarks.cluster_idle

bench-scheduler: setup ## print which pods nodes refuse, by what a scheduler knows
	@$(BIN)/python -m tests.benchmarks.scheduled

bench-admission: setup ## measure the webhook with 100 reviews a second
	@$(BIN)/python -m tests.benchmarks.admission

quality: setup ## measure where policies place containers; write docs/placement-quality.md
	@$(BIN)/python -m tests.quality

bench-paired: setup ## compare with another commit in one run: make bench-paired BASE=v0.1
	@$(BIN)/python -m tests.benchmarks.paired $(BASE)

docs: crds ## regenerate what docs/ has of the code, and the schemas; build the site
	@$(BIN)/python -m tests.docs
	@$(MAKE) --no-print-directory site

# Not --quiet: MkDocs then counts no warning. The variable switches off an advertisement.
site: setup $(SITE) ## build the documentation as a site in build/site, strictly
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict \
	  --config-file deploy/site/mkdocs.yml
	@echo "build/site is the documentation: $(BIN)/python -m http.server --directory build/site"

screenshots: setup ## take the screenshots of docs/pictures anew, in a headless Chromium (root, on Debian)
	@$(BIN)/python -m tests.page.screenshots

crds: setup ## regenerate deploy/crds and docs/schema from the readers of documents
	@$(BIN)/python -m tests.schema

structure: setup ## measure the structure; write its table in docs/architecture.md
	@$(BIN)/python -m tests.structure

fuzz: setup ## fuzz all targets for MINUTES=60, by coverage where atheris installs
	@$(BIN)/pip install --quiet --disable-pip-version-check --only-binary atheris \
	  --editable '.[fuzz]' 2>/dev/null || echo "make: no wheel of atheris for this machine"
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

fuzz-restarts: setup ## hold the laws of restarts over 25,000 histories of each policy, for an hour
	@HYPOTHESIS_PROFILE=long $(BIN)/pytest -n 2 --timeout 0 tests/laws/test_old_checkpoints.py

fuzz-laws: setup ## run the laws of tests/fuzz with 5,000 examples each, for an hour
	@HYPOTHESIS_PROFILE=long $(BIN)/pytest -n 2 --timeout 0 tests/fuzz tests/laws/test_wire_long.py

faults: setup ## hold the law of faults over all points, errors and pairs (40 minutes a night)
	@$(BIN)/python -m tests.faults

soak: setup ## run a million events through the socket, and 10,000 races; print the table of docs/soak.md
	@$(BIN)/python -m tests.soak
	@$(BIN)/python -m tests.running

mpolset: ## build build/mpolset, which sets memory policies for runtimes before NRI 0.12
	@deploy/mpolset/build.sh build/mpolset

# ARCH=arm64 or amd64 builds for another machine, with qemu-user-static.
image: setup ## build the image build/nri-resmgr-VERSION.oci.tar from Debian packages (root)
	@PYTHON=$(BIN)/python deploy/image/build.sh build

# URL=... is where the archive will be, for krew's manifest.
kubectl-plugin: ## make build/kubectl-nri_resmgr, one file; with URL=... krew's manifest, too
	@$(PYTHON) deploy/kubectl/build.py build $(URL)

# IMAGE=no leaves the image out, ARCH="amd64 arm64" builds two; URL=... is as for kubectl-plugin.
dist: setup ## build a release of the last commit into dist/; its image needs root and Debian
	@PYTHON=$(BIN)/python deploy/dist/build.sh dist $(URL)

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
