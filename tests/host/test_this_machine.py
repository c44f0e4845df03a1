"""Our model of this machine is the one that other programs have."""

from __future__ import annotations

import json
import subprocess

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology import Machine
from tests.host.peers import (
    LSCPU,
    NUMACTL,
    lscpu_groups,
    model_groups,
    model_nodes,
    numactl_nodes,
)

pytestmark = pytest.mark.machine


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def machine() -> Machine:
    return read_machine(HostTree("/"))


def test_lscpu_groups_cpus_as_we_do(machine: Machine) -> None:
    assert model_groups(machine) == lscpu_groups(run(*LSCPU))


def test_lscpu_counts_cpus_as_we_do(machine: Machine) -> None:
    rows = json.loads(run("lscpu", "-J", "-b", "-e=CPU,ONLINE"))["cpus"]

    assert {int(row["cpu"]) for row in rows} == set(machine.online)


def test_lscpu_has_the_same_cache_sizes(machine: Machine) -> None:
    rows = json.loads(run("lscpu", "-B", "-J", "-C=LEVEL,TYPE,ONE-SIZE"))["caches"]

    assert {(int(r["level"]), r["type"], int(r["one-size"])) for r in rows} == {
        (cache.level, str(cache.kind), cache.size) for cache in machine.caches
    }


@pytest.mark.containerd
def test_numactl_has_the_same_nodes() -> None:
    # A balloon may change the size between two looks: ask until it holds still.
    for _ in range(10):
        before = model_nodes(read_machine(HostTree("/")))
        shown = numactl_nodes(run(*NUMACTL))
        if before == model_nodes(read_machine(HostTree("/"))):
            break

    assert shown == before
