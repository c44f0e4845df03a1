"""What a refusal says: what was asked, what there is, what would help."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.mems import (
    MemoryLedger,
    MemoryPriority,
    MemoryRequest,
    MemoryShort,
    allocate_memory,
    resize_memory,
    restore_memory,
)
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, NodeSet, PolicyError

GIB = 1 << 30
MACHINE = parse_spec("2s1c memory=8Gi pmem=1x16Gi:movable hugepages=1Gi:2")
WEB = MemoryRequest(id="c0ffee", title="pod/web", affinity=NodeSet.of(0))
DRAM, PMEM, HBM = MemoryKind.DRAM, MemoryKind.PMEM, MemoryKind.HBM


def filled(**sizes: int) -> MemoryLedger:
    """Return a ledger where containers of these sizes in GiB run on node 0."""
    ledger = MemoryLedger.of(MACHINE)
    for name, size in sizes.items():
        reserved = name == "system"
        request = MemoryRequest(
            id=name,
            affinity=NodeSet.of(0),
            size=Bytes(size * GIB),
            kinds=frozenset({DRAM}),
            strict=name == "db",
            priority=MemoryPriority.RESERVATION
            if reserved
            else MemoryPriority.BURSTABLE,
        )
        ledger = allocate_memory(request, ledger).ledger
    return ledger


def with_pmem_taken(ledger: MemoryLedger) -> MemoryLedger:
    request = MemoryRequest(
        id="pmem",
        affinity=NodeSet.of(2),
        size=Bytes(16 * GIB),
        priority=MemoryPriority.RESERVATION,
    )
    return restore_memory(request, NodeSet.of(2), ledger).ledger


@pytest.mark.parametrize(
    ("ledger", "changes", "sentence"),
    [
        pytest.param(
            filled(),
            {"size": 29 * GIB},
            "pod/web asks for 29 GiB of memory on nodes 0-2; they hold 28 GiB, none of "
            "it granted to others; to help, ask for at most 28 GiB",
            id="more than the machine has",
        ),
        pytest.param(
            filled(db=3, system=2),
            {"size": 8 * GIB + 1, "kinds": frozenset({DRAM}), "strict": True},
            "pod/web asks for 8 GiB of memory on nodes 0-1; they hold 12 GiB, 5 GiB of "
            "it granted to others (2 GiB reserved); to help, ask for at most 7 GiB, or "
            "stop containers that have memory there, or reserve less, or allow other "
            "kinds of memory",
            id="more than the others leave of its kind",
        ),
        pytest.param(
            filled(db=3, cache=4),
            {"size": 10 * GIB, "kinds": frozenset({DRAM}), "strict": True},
            "pod/web asks for 10 GiB of memory on nodes 0-1; they hold 12 GiB, 3 GiB of"
            " it granted to others; to help, ask for at most 9 GiB, or stop containers "
            "that have memory there, or allow other kinds of memory",
            id="those that can go elsewhere are not counted",
        ),
        pytest.param(
            with_pmem_taken(filled(cache=4)),
            {"size": 10 * GIB, "kinds": frozenset({DRAM}), "strict": True},
            "pod/web asks for 10 GiB of memory on nodes 0-2; they hold 28 GiB, 20 GiB "
            "of it granted to others (16 GiB reserved); to help, ask for at most 8 GiB,"
            " or stop containers that have memory there, or reserve less, or allow "
            "other kinds of memory",
            id="those that could go elsewhere if that were not full",
        ),
        pytest.param(
            filled(cache=5),
            {
                "size": 6 * GIB,
                "hugepages": (HugePages(Bytes(GIB), 5),),
                "kinds": frozenset({DRAM}),
                "strict": True,
            },
            "pod/web asks for 5 GiB of 1 GiB huge pages on nodes 0-1; they hold 4 GiB, "
            "none of it granted to others; to help, ask for at most 4 GiB, or allow "
            "other kinds of memory",
            id="the memory that does not fit, not that which others can leave",
        ),
        pytest.param(
            filled(),
            {"hugepages": (HugePages(Bytes(GIB), 5),)},
            "pod/web asks for 5 GiB of 1 GiB huge pages on nodes 0-2; they hold 4 GiB, "
            "none of it granted to others; to help, ask for at most 4 GiB",
            id="more huge pages than there are",
        ),
        pytest.param(
            filled(),
            {"hugepages": (HugePages(Bytes(2 << 20), 1),)},
            "pod/web asks for 2 MiB of 2 MiB huge pages on nodes 0-2; they hold 0, none"
            " of it granted to others; to help, use a node with more memory",
            id="huge pages of a size that is not reserved",
        ),
        pytest.param(
            filled(),
            {"kinds": frozenset({HBM, DRAM}), "strict": True},
            "pod/web asks for hbm memory only; this machine has dram, pmem",
            id="a kind that is not there",
        ),
        pytest.param(
            filled(),
            {"kinds": frozenset({PMEM}), "strict": True},
            "pod/web asks for pmem memory only, and all of it is movable; to help, "
            "allow one of dram too",
            id="no memory for the kernel",
        ),
    ],
)
def test_the_sentence(
    ledger: MemoryLedger, changes: dict[str, object], sentence: str
) -> None:
    request = msgspec.structs.replace(WEB, **changes)

    with pytest.raises(PolicyError) as refusal:
        allocate_memory(request, ledger)
    assert str(refusal.value) == sentence


def test_a_refused_change_counts_only_the_memory_of_others() -> None:
    with pytest.raises(MemoryShort) as refusal:
        resize_memory("db", Bytes(13 * GIB), (), filled(db=3, system=2))
    assert (refusal.value.promised, refusal.value.most) == (2 * GIB, 10 * GIB)


@pytest.mark.parametrize(
    ("size", "pages", "priority"),
    [
        pytest.param(0, (), MemoryPriority.BEST_EFFORT, id="nothing: best effort"),
        pytest.param(1, (), MemoryPriority.BURSTABLE, id="a size: burstable"),
        pytest.param(
            0,
            (HugePages(Bytes(GIB), 1),),
            MemoryPriority.BURSTABLE,
            id="huge pages: burstable",
        ),
    ],
)
def test_the_priority_that_nothing_named(
    size: int, pages: tuple[HugePages, ...], priority: MemoryPriority
) -> None:
    request = MemoryRequest(
        id="a", affinity=NodeSet.of(0), size=Bytes(size), hugepages=pages
    )

    assert request.priority is priority
