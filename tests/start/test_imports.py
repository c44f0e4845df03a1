"""What a start imports, and that no request imports anything more."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.process


def printed(code: str) -> list[str]:
    """Run *code* in a Python of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_without_the_library_of_datetime_there_is_a_sentence(tmp_path: Path) -> None:
    """As without memory for it: Python has another one, with which msgspec crashes."""
    # Also where it is a part of the interpreter, as in Debian 13.
    hidden = "import sys; sys.modules['_datetime'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    done = subprocess.run(
        (*(sys.executable, "-m", "nri_resmgr", "check"), "conf.d/none.conf"),
        cwd=ROOT,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("nri-resmgr: ModuleNotFoundError: import of _datetime")


LEFT_OUT = """
import sys, {module}
print(*({left_out!r} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        pytest.param(
            "nri_resmgr.stub",
            {"structlog", "yaml", "argparse", "nri_resmgr.policy"},
            id="a plugin on the stub imports nothing of ours but the stub",
        ),
        pytest.param(
            "nri_resmgr.daemon.run",
            {
                *("difflib", "tarfile", "opentelemetry", "grpc"),
                "nri_resmgr.scenario",
                *("grpclib", "h2", "nri_resmgr.recordings"),
                *("nri_resmgr.daemon.insight", "nri_resmgr.control.routes"),
                *("nri_resmgr.config.balloons", "nri_resmgr.policy.balloons"),
                "nri_resmgr.policy.simple",
            },
            id="the daemon imports nothing that only some flag or document needs",
        ),
        pytest.param(
            "nri_resmgr.cli.inspect_chain",
            {
                *("nri_resmgr.app", "nri_resmgr.policy", "nri_resmgr.scenario"),
                *("nri_resmgr.testing", "nri_resmgr.daemon.run", "yaml"),
            },
            id="an inspection of plugins imports no policy, and no test runtime",
        ),
        pytest.param(
            "nri_resmgr.cli.try_plugin",
            {
                *("nri_resmgr.app", "nri_resmgr.daemon.run"),
                *("nri_resmgr.policy.topology_aware", "nri_resmgr.policy.balloons"),
            },
            id="a trial of a plugin imports no policy, and not the daemon",
        ),
    ],
)
def test_a_start_imports_little(module: str, left_out: set[str]) -> None:
    assert printed(LEFT_OUT.format(module=module, left_out=left_out)) == []


STUB = """
import sys
before = set(sys.modules)
import nri_resmgr.stub
print(*(set(sys.modules) - before))
"""
# What the package of each installs besides, and what it imports on older Pythons.
OF_STUB = {"attr", "attrs", "google", "msgspec", "typing_extensions"}


def test_the_import_of_the_stub_is_about_as_small_as_that_of_its_libraries() -> None:
    """On two CPUs it took 0.8 of the time of the import of what the package requires.

    That is 132 ms of CPU time, and 171 ms of protobuf, attrs, msgspec and structlog; of
    those that it imports, with asyncio and the messages of NRI, 1.2 of it.
    """
    names = printed(STUB)
    tops = {name.partition(".")[0] for name in names}

    ours = [name for name in names if name.partition(".")[0] in OURS]
    assert 0 < len(ours) <= 65
    assert tops - OURS - sys.stdlib_module_names <= OF_STUB


SDK = """
import importlib, pkgutil, sys
for name in ("stub", "sdk", "testing"):
    package = importlib.import_module(f"nri_resmgr.{name}")
    for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # It has an extra of its own.
        if not one.name.startswith("nri_resmgr.testing.kubelet"):
            importlib.import_module(one.name)
ours = [one for name, one in sys.modules.items() if name.startswith("nri_")]
print(*(one.__file__ for one in ours))
"""
# Others have the names of their packages.
PACKAGES = {"google": "protobuf", "yaml": "pyyaml"}


def imported_by(path: str) -> Iterator[str]:
    """Name the modules that a file imports, also late, by their first parts."""
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_a_bare_installation_has_what_the_sdk_imports_and_nothing_else() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    required = tomllib.loads(text)["project"]["dependencies"]

    files = printed(SDK)
    tops = {name for path in files for name in imported_by(path)}
    others = tops - OURS - sys.stdlib_module_names
    assert {PACKAGES.get(name, name) for name in others} == {
        canonicalize_name(Requirement(one).name) for one in required
    }


IMPORTED = """
import os, sys
before = set(sys.modules)
shown, sys.stdout = sys.stdout, open(os.devnull, "w")
from nri_resmgr.__main__ import main
try:
    main({words!r})
except SystemExit:
    pass
print(*(set(sys.modules) - before), file=shown)
"""
OURS = {"nri_resmgr", "nri_proto"}
# msgspec imports the other one, where Python is older.
THIRD_PARTIES = {"msgspec", "typing_extensions"}
# Of the standard library: each takes a tenth of the time of a help page, or more.
COSTLY = {"asyncio", "ssl", "logging", "subprocess", "shutil", "tempfile", "difflib"}


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("--help", 19),
        ("--version", 20),
        ("status --help", 27),
        ("status", 27),
        ("events", 27),
        ("log", 28),
        ("reload", 28),
        ("rebalance", 34),
        ("explain web", 34),
    ],
)
def test_a_command_that_asks_imports_little(
    line: str, most: int, tmp_path: Path
) -> None:
    words = line.split()
    if "-" not in words[-1]:
        words += ["--control-socket", str(tmp_path / "none")]
    names = printed(IMPORTED.format(words=words))
    tops = {name.partition(".")[0] for name in names}

    ours = [name for name in names if name.partition(".")[0] in OURS]
    assert 0 < len(ours) <= most
    assert tops - OURS - sys.stdlib_module_names <= THIRD_PARTIES
    assert tops & COSTLY == set()


RUN_READ = """
import sys
from nri_resmgr.cli.main import build_parser
build_parser({}, "run").parse_args(["run"])
print(*({"shutil", "bz2", "lzma"} & sys.modules.keys()))
"""


def test_flags_are_read_without_looking_at_the_terminal() -> None:
    assert printed(RUN_READ) == []


# The runtime waits for each of these answers.
REQUESTS = """
import asyncio
import sys
from nri_resmgr.cli.main import build_parser
from nri_resmgr.daemon.build import build
from nri_resmgr.daemon.log_setup import prepare_log
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import load
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.topology.synthetic import parse_spec

words = ["run", "--state-dir", {state!r}, "--run-dir", {run_dir!r}, *{more!r}]
options = build_parser({{}}, "run").parse_args(words)
prepare_log(options)
observers = DaemonObservers(counts=True, traces=False)
tree, machine = HostTree({state!r}), parse_spec("2s8c2t")
daemon = Daemon(options, tree, {{}}, machine, None, observers)
build(daemon)
policy = daemon.policy
load()
before = set(sys.modules)
async def requests():
    pod = Pod(id="p", name="p", namespace="default")
    container = Container(id="c", name="c")
    policy.configure(Configuration({document!r}, RuntimeInfo()))
    policy.synchronize([], [])
    policy.run_pod_sandbox(pod)
    policy.create_container(pod, container)
    policy.start_container(pod, container)
    policy.stop_container(pod, container)

asyncio.run(requests())
print(*sorted(one for one in set(sys.modules) - before if one.startswith("nri_")))
"""

DOCUMENT = """
apiVersion: config.nri/v1alpha1
kind: {kind}
spec: {{reservedResources: {{cpu: 1}}}}
"""


@pytest.mark.parametrize("kind", ["", "TopologyAwarePolicy"])
def test_no_request_imports_anything(kind: str, tmp_path: Path) -> None:
    document = DOCUMENT.format(kind=kind) if kind else ""
    code = REQUESTS.format(
        state=str(tmp_path), run_dir=str(tmp_path / "run"), document=document, more=[]
    )

    assert printed(code) == []


CLASSES = """
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {cpu: 1}
  isolationAnnotations: true
  controllableInterrupts: ["*eth*"]
  schedulingClasses: [{name: batch, policy: batch}]
  memoryQos: {classes: [{name: bronze, swapLimitRatio: 0.5}]}
  memoryPolicy: {classes: [{name: near, policy: {mode: MPOL_BIND, nodes: cpu-nodes}}]}
  control:
    rdt: {enable: true}
    blockio: {enable: true, classes: {slow: [{Weight: 50}]}}
"""
OF_CLASSES = {
    "nri_resmgr.app.classes.blockio.setter",
    "nri_resmgr.app.classes.governors",
    "nri_resmgr.app.classes.host_scheduling",
    "nri_resmgr.app.classes.interrupts",
    "nri_resmgr.app.classes.memory.requests",
    "nri_resmgr.app.classes.rdt.setter",
}


def test_classes_are_imported_before_the_runtime_connects(tmp_path: Path) -> None:
    path = tmp_path / "document.yaml"
    path.write_text(CLASSES)
    code = REQUESTS.format(
        state=str(tmp_path / "state"),
        run_dir=str(tmp_path / "run"),
        document="",
        more=["--config-file", str(path)],
    )
    known = f"print(*({OF_CLASSES!r} & before))"

    assert printed(code) == []
    assert set(printed(f"{code}{known}\n")) == OF_CLASSES
