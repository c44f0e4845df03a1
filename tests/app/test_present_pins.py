"""What is taken to be in force where record, checkpoint and kernel differ."""

from __future__ import annotations

import pytest

from nri_resmgr.app.plugin.present_pins import with_present_pins
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, NodeSet

MACHINE = parse_spec("1s2n4c1t memory=4Gi")
# As a kernel has it after CPU 7 went.
SMALLER = parse_spec("1s2n4c1t memory=4Gi offline=7")


def pin(text: str) -> Pin:
    """Return the pin of ``CPUS`` or ``CPUS of NODES``."""
    cpus, _, nodes = text.partition(" of ")
    return Pin(CpuSet.parse(cpus), NodeSet.parse(nodes), 512)


def present(record: str, sent: str, kernel: str, *, smaller: bool = False) -> Pin:
    """Return what is taken to be in force."""
    spec = ContainerSpec(id="web", present=pin(record))
    in_force = {} if kernel == "not found" else {"web": pin(kernel)}
    machine = SMALLER if smaller else MACHINE
    entry = Entry(ContainerSpec(id="web"), pin(sent))
    [found] = with_present_pins([spec], {"web": entry}.get, in_force, machine)
    return found.present


@pytest.mark.parametrize(
    ("record", "sent", "kernel", "holds"),
    [
        pytest.param("0-3", "4-7", "4-7", "4-7", id="the record is behind"),
        pytest.param("4-7", "0-3", "4-7", "4-7", id="the checkpoint is behind"),
        pytest.param("0-3", "4-7", "0-3", "0-3", id="it was not written any more"),
        pytest.param("0-3", "0-3", "4-7", "0-3", id="another program wrote it"),
        pytest.param("0-3", "4-7", "2-5", "0-3", id="neither is in force"),
        pytest.param("0-3", "4-7", "not found", "0-3", id="it has no cgroup"),
        pytest.param("0-3", "4-7", "", "0-3", id="nothing is in force"),
        pytest.param("0-3", "", "", "0-3", id="it is not pinned"),
        pytest.param("", "4-7", "4-7", "4-7", id="the record has none"),
        pytest.param("0-3", "0-3", "0-3", "0-3", id="all agree"),
    ],
)
def test_the_kernel_decides_between_record_and_checkpoint(
    record: str, sent: str, kernel: str, holds: str
) -> None:
    assert present(record, sent, kernel) == pin(holds)


@pytest.mark.parametrize(
    ("record", "sent", "kernel", "holds"),
    [
        ("0-3 of 0", "4-7 of 1", "4-7 of 1", "4-7 of 1"),
        # Its memory follows later.
        ("0-3 of 0", "4-7 of 1", "4-7 of 0", "4-7 of 0"),
        ("0-3 of 0", "0-3 of 0-1", "0-3 of 0-1", "0-3 of 0-1"),
        ("0-3 of 0", "0-3", "0-3 of 1", "0-3 of 0"),
    ],
)
def test_memory_nodes_are_compared_apart(
    record: str, sent: str, kernel: str, holds: str
) -> None:
    assert present(record, sent, kernel) == pin(holds)


@pytest.mark.parametrize(
    ("record", "sent", "kernel", "holds"),
    [
        ("0-3", "4-7", "4-6", "4-7"),
        ("4-7", "0-3", "4-6", "4-7"),
        ("0-3", "7", "", "0-3"),
    ],
)
def test_offline_cpus_are_in_no_cgroup(
    record: str, sent: str, kernel: str, holds: str
) -> None:
    assert present(record, sent, kernel, smaller=True) == pin(holds)


def test_of_an_unknown_container_the_record_counts() -> None:
    spec = ContainerSpec(id="web", present=pin("0-3"))

    found = with_present_pins([spec], lambda _: None, {"web": pin("4-7")}, MACHINE)

    assert found == [spec]
