"""Bans are read from a running irqbalance, sent to it, and removed again."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.classes.irq.irqbalance import Bans
from nri_resmgr.host.irqbalance import (
    Irqbalance,
    IrqbalanceClient,
    IrqbalanceResult,
    find_irqbalance,
)
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.host.irqbalance_double import Balancer

PID = 77
SOCKET = f"run/irqbalance/irqbalance{PID}.sock"
FILES = {
    "proc/1/comm": "systemd\n",
    f"proc/{PID}/comm": "irqbalance\n",
    f"proc/{PID}/environ": "PATH=/bin\0IRQBALANCE_BANNED_CPULIST=0\0",
    f"proc/{PID}/cmdline": "/usr/sbin/irqbalance\0--foreground\0--banirq=5\0",
}


def bans(cpus: str = "", *interrupts: int) -> Bans:
    return Bans(CpuSet.parse(cpus), frozenset(interrupts))


OWN = bans("0", 5)


@pytest.fixture
def root() -> Iterator[Path]:
    # pytest's own folders have longer names than sockets may have.
    with tempfile.TemporaryDirectory(prefix="irqb") as folder:
        for name, text in FILES.items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (Path(folder) / SOCKET).parent.mkdir(parents=True)
        yield Path(folder)


@pytest.fixture
def balancer(root: Path) -> Iterator[Balancer]:
    made = Balancer(root / SOCKET)
    yield made
    made.close()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    opened = StateDir.open(f"{tmp_path}/state")
    yield opened
    opened.close()


def test_a_running_irqbalance_is_found_with_its_bans(
    root: Path, balancer: Balancer
) -> None:
    found = find_irqbalance(HostTree(root))

    assert found == Irqbalance(PID, OWN, f"/{SOCKET}")
    assert balancer.bans == OWN
    assert balancer.requests == []


def test_without_a_list_isolated_and_nohz_full_cpus_are_banned(root: Path) -> None:
    (root / f"proc/{PID}/environ").write_text("PATH=/bin\0")
    cpus = root / "sys/devices/system/cpu"
    cpus.mkdir(parents=True)
    (cpus / "isolated").write_text("4-5\n")
    (cpus / "nohz_full").write_text(" (null)\n")

    assert find_irqbalance(HostTree(root)) == Irqbalance(PID, bans("4-5", 5))


def test_an_irqbalance_with_a_hidden_environment_has_no_socket(
    root: Path, balancer: Balancer
) -> None:
    environ = root / f"proc/{PID}/environ"
    environ.unlink()
    environ.mkdir()  # root may read any file

    assert find_irqbalance(HostTree(root)) == Irqbalance(PID, bans("", 5))
    assert balancer.requests == []


def test_without_a_socket_nothing_can_be_sent(root: Path, state: StateDir) -> None:
    tree = HostTree(root)
    found = find_irqbalance(tree)
    result = IrqbalanceClient(tree, state).send_bans(bans("", 9, 8))

    assert found == Irqbalance(PID, OWN)
    assert result == IrqbalanceResult(
        PID, (8, 9), "irqbalance has no control socket, or its own bans cannot be read"
    )


def test_where_none_runs_nothing_is_sent(tmp_path: Path, state: StateDir) -> None:
    tree = HostTree(tmp_path)

    assert find_irqbalance(tree) is None
    assert IrqbalanceClient(tree, state).send_bans(bans("4")) == IrqbalanceResult()
    assert state.read("irqbalance") is None


def test_a_socket_without_a_listener_is_reported(root: Path, state: StateDir) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(f"{root}/{SOCKET}")
    result = IrqbalanceClient(HostTree(root), state).send_bans(bans("4"))

    assert result == IrqbalanceResult(PID, (), "connection refused")


def test_bans_are_sent_once_in_addition_to_its_own(
    root: Path, balancer: Balancer, state: StateDir
) -> None:
    client = IrqbalanceClient(HostTree(root), state)
    requested = [bans(), bans("4-5", 31), bans("4-5", 31)]
    results = [client.send_bans(wanted) for wanted in requested]

    assert results == [IrqbalanceResult(PID)] * 3
    assert balancer.requests == ["settings cpus 0,4-5", "settings ban irqs 5 31"]
    assert balancer.bans == bans("0,4-5", 5, 31)
    assert state.read("irqbalance") == f"{PID}"


@pytest.mark.parametrize("is_new", [False, True], ids=["the same", "the next process"])
def test_all_bans_are_removed(
    root: Path, balancer: Balancer, state: StateDir, *, is_new: bool
) -> None:
    client = IrqbalanceClient(HostTree(root), state)
    client.send_bans(bans("4-5", 31))
    last = IrqbalanceClient(HostTree(root), state) if is_new else client
    results = [last.restore(), last.restore()]

    assert results == [IrqbalanceResult(PID), IrqbalanceResult(PID)]
    assert balancer.requests[2:] == ["settings cpus NULL", "settings ban irqs 5"]
    assert state.read("irqbalance") is None


def test_the_next_irqbalance_gets_them_again(
    root: Path, balancer: Balancer, state: StateDir
) -> None:
    state.write("irqbalance", "76")
    client = IrqbalanceClient(HostTree(root), state)
    client.restore()
    requests = list(balancer.requests)
    client.send_bans(bans("4"))

    assert requests == []
    assert balancer.requests == ["settings cpus 0,4", "settings ban irqs 5"]
    assert state.read("irqbalance") == f"{PID}"
