"""The authors' page: its policy is installed as it says, and runs everywhere."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.values import QosClass
from tests.daemon.restarts import Node, node
from tests.kinds.distributions import install

pytestmark = pytest.mark.process

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "write-a-policy.md").read_text()
BLOCKS: Final = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES: Final = {
    text.partition("\n")[0].removeprefix("# "): text
    for kind, text in BLOCKS
    if kind in {"python", "toml", "yaml"}
}
SHOWN: Final = [
    (command.removeprefix("$ nri-resmgr ").split(), output)
    for (kind, command), (_, output) in pairwise(BLOCKS)
    if kind == "console"
]

WEB = Workload("web", QosClass.BURSTABLE, 500)
DB = Workload("db", QosClass.GUARANTEED, 2000)
ONE = Workload("one", QosClass.GUARANTEED, 1000)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files, from which every process imports."""
    folder = tmp_path / "package"
    install(folder, FILES["pyproject.toml"], packed_policy=FILES["packed_policy.py"])
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def resmgr(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "nri_resmgr", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def packed(some: Node, installed: Path) -> tuple[str, ...]:
    """Flags of a daemon with the page's policy, which listens for `status`."""
    return (
        *("--config-file", str(installed / "packed.yaml")),
        *("--control-socket", str(some.folder / "control")),
    )


async def ask(some: Node, *words: str) -> Any:
    flags = ("--control-socket", str(some.folder / "control"), "-o", "json")
    return json.loads(await asyncio.to_thread(resmgr, some.folder, *words, *flags))


def test_it_imports_from_the_two_public_modules_only() -> None:
    code = [ast.parse(text) for kind, text in BLOCKS if kind == "python"]
    found = {
        node.module
        for one in code
        for node in ast.walk(one)
        if isinstance(node, ast.ImportFrom) and node.module
    }

    ours = {one for one in found if one.startswith("nri_")}
    assert ours == {"nri_resmgr.policy", "nri_resmgr.policies"}


@pytest.mark.parametrize("module", ["nri_resmgr.policy", "nri_resmgr.policies"])
def test_a_public_module_has_the_names_that_it_lists(module: str) -> None:
    public = import_module(module)

    assert [one for one in public.__all__ if not hasattr(public, one)] == []
    assert not hasattr(public, "NothingOfThisName")


def test_the_page_has_no_other_blocks() -> None:
    assert {kind for kind, _ in BLOCKS} == {
        *("python", "toml", "yaml", "console", "text", "sh")
    }
    assert [words[0] for words, _ in SHOWN] == ["check", "simulate"]


@pytest.mark.parametrize(("words", "output"), SHOWN, ids=lambda one: one[0])
def test_commands_print_the_output_of_the_page(
    installed: Path, words: list[str], output: str
) -> None:
    found = resmgr(installed, *words)

    assert [line.rstrip() for line in found.splitlines()] == output.splitlines()


def test_the_tests_of_the_page_pass(installed: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", ".", "test_packed_policy.py"],
        cwd=installed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout


def test_the_policy_of_the_page_passes_mypy_strict(installed: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental"]
    done = subprocess.run(
        [*command, "packed_policy.py", "test_packed_policy.py"],
        cwd=installed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "Success: no issues found in 2 source files\n"


async def test_the_policy_places_containers_and_shows_them(
    tmp_path: Path, installed: Path
) -> None:
    async with (
        node(tmp_path, "1s1n8c1t") as some,
        some.daemon(*packed(some, installed)),
    ):
        web, db = await some.come(WEB), await some.come(DB)
        cpus = some.cpus()
        status = await ask(some, "status")
        explained = await ask(some, "explain", "db")

    assert (cpus[web], cpus[db]) == ("0-1,4-7", "2-3")
    assert status["policy"] == "PackedPolicy"
    assert [pool["name"] for pool in status["pools"]] == ["packed", "rest"]
    (why,) = explained["containers"]
    assert (why["container"]["pool"], why["candidates"]) == ("packed", [])


async def test_the_policy_restores_its_grants_after_a_kill(
    tmp_path: Path, installed: Path
) -> None:
    async with node(tmp_path, "1s1n8c1t") as some:
        flags = packed(some, installed)
        async with some.daemon(*flags) as process:
            first = await some.come(ONE)
            for workload in (WEB, DB):
                await some.come(workload)
            await some.go(first)  # where CPU 2 is free, a new policy would put db there
            before = some.cpus()
            await some.written()
            process.kill()
        checkpoint = some.checkpoint.read_text()
        async with some.daemon(*flags):
            restored = await some.says("state.restored")
            synchronized = await some.says("node.synchronized")
            after = some.cpus()
            again = await some.come(ONE, 1)
            one = some.cpus()[again]

    assert '["own","ctr-db-0","3-4"]' in checkpoint
    assert restored["containers"] == 2
    assert (synchronized["rules"], synchronized["updates"]) == ({"kept": 2}, 0)
    assert (after, one) == (before, "2")


async def test_other_policies_can_be_switched_to_the_policy_and_back(
    tmp_path: Path, installed: Path
) -> None:
    async with node(tmp_path, "1s1n8c1t") as some:
        async with some.daemon():
            db, web = await some.come(DB), await some.come(WEB)
        under_default = some.cpus()
        async with some.daemon(*packed(some, installed)):
            await some.says("node.synchronized")
            assert (await some.says("state.of-other-policy"))["kind"] == "PackedPolicy"
            under_packed = some.cpus()
        async with some.daemon():
            await some.says("node.synchronized")

    # CPU 1 is reserved here; where db went since then is as good as where it was.
    found = [(at[db], at[web]) for at in (under_default, under_packed, some.cpus())]
    assert found == [("1-2", "3-7"), ("2-3", "0-1,4-7"), ("2-3", "1,4-7")]


async def test_decisions_of_the_policy_can_be_replayed(
    tmp_path: Path, installed: Path
) -> None:
    recording = str(tmp_path / "recording")
    async with node(tmp_path, "1s1n8c1t") as some:
        flags = packed(some, installed)
        async with some.daemon(*flags, "--record", recording):
            await some.come(WEB)
            await some.go(await some.come(DB))
        found = resmgr(tmp_path, "replay", recording, "-o", "json")
    assert json.loads(found) | {"requests": 0} == {
        "apiVersion": "cli.nri/v1",
        "kind": "Replay",
        "cut": "",
        "requests": 0,
        "decisions": 4,
        "differences": [],
    }


def test_a_scenario_can_switch_to_the_policy_and_back(installed: Path) -> None:
    (installed / "switch.yaml").write_text("""\
machine: 1s1n8c1t
kind: PackedPolicy
spec: {reservedCPUs: 1}
story:
  - run: db
    containers: [{name: db, limits: {cpu: 2, memory: 1Gi}}]
  - switch: [topology-aware, {reservedResources: {cpu: 1}}]
  - switch: [PackedPolicy, {reservedCPUs: 2, allowLoss: true}]
  - run: big
    containers: [{name: big, limits: {cpu: 9, memory: 1Gi}}]
""")
    found = json.loads(resmgr(installed, "simulate", "switch.yaml", "-o", "json"))

    assert (found["kind"], found["policy"]) == ("Simulation", "PackedPolicy")
    (db,) = found["containers"]
    assert (db["cpus"], db["pool"]) == ("2-3", "packed")
    assert [one["why"] for one in found["refusals"]] == [
        "default/big/big asks for 9 CPUs; 4 are free"
    ]


def test_a_node_without_the_package_reports_the_unknown_kind(tmp_path: Path) -> None:
    (tmp_path / "packed.yaml").write_text(FILES["packed.yaml"])
    found = resmgr(tmp_path, "check", "--topology", "1s1n8c1t", "packed.yaml")

    known = (
        "BalloonsPolicy or DynamicPoolsPolicy or NonePolicy or PodpoolsPolicy or "
        "StaticPlusPolicy or StaticPolicy or StaticPoolsPolicy or "
        "TopologyAwarePolicy"
    )
    assert "packed.yaml:3:1: $.kind: unknown value, " in found
    assert f"expected {known}\n" in found
