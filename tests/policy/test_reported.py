"""What a report of the runtime says about what is known, and the other way."""

from __future__ import annotations

import pytest

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.policy.reported import Reported
from nri_resmgr.values import CpuSet, MilliCpus, NodeSet, QosClass

TWO = MilliCpus(2000)
# It runs on 0-1, and asks for that many CPUs.
OWNER = ContainerSpec(
    id="owner",
    qos=QosClass.GUARANTEED,
    request=TWO,
    limit=TWO,
    present=Pin(CpuSet.parse("0-1")),
)


@pytest.mark.parametrize(
    ("reported", "sent", "known"),
    [
        ("2-7", "2-7", True),
        ("4-7", "2-7", False),
        ("2-7", "4-7", False),
        ("0-7", "2-7", True),  # the record does not follow where partitions hold
        ("0-7", "3-7", False),
        ("", "2-7", True),
        ("2-7", "", True),
    ],
)
def test_other_cpus_than_those_sent_were_decided_later(
    reported: str, sent: str, *, known: bool
) -> None:
    report = Reported.of([OWNER])
    entry = Entry(ContainerSpec(id="log"), Pin(CpuSet.parse(sent)))

    assert report.is_known(Pin(CpuSet.parse(reported)), entry) is known


@pytest.mark.parametrize(
    ("reported", "sent", "known"),
    [
        ("0", "0", True),
        ("0-1", "0", False),
        ("0", "0-1", True),  # the record follows later, and nodes are only added
        ("1", "0", True),  # not of a decision
        ("", "0", True),
        ("0", "", True),
    ],
)
def test_more_memory_nodes_than_those_sent_were_decided_later(
    reported: str, sent: str, *, known: bool
) -> None:
    report = Reported.of([OWNER])
    entry = Entry(ContainerSpec(id="log"), Pin(mems=NodeSet.parse(sent)))

    assert report.is_known(Pin(mems=NodeSet.parse(reported)), entry) is known


def test_a_container_of_whole_cpus_that_runs_on_others_owns_none() -> None:
    unpinned = ContainerSpec(
        id="web",
        qos=QosClass.GUARANTEED,
        request=TWO,
        limit=TWO,
        present=Pin(CpuSet.parse("0-7")),
    )

    assert not Reported.of([unpinned]).owned
    assert Reported.of([unpinned, OWNER]).owned == CpuSet.parse("0-1")


def test_a_container_that_shares_has_no_cpus_of_owners_in_force() -> None:
    report = Reported.of([OWNER])

    assert report.shared_part(CpuSet.parse("0-7")) == CpuSet.parse("2-7")
    assert report.shared_part(CpuSet.parse("1")) == CpuSet.parse("1")
