"""Drawn machines of every shape that the short spec can describe."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from hypothesis import strategies as st

from nri_resmgr.topology import ContradictoryMachine, Cpu, Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz

_SHAPES = st.tuples(
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(1, 2),
    st.integers(0, 5),
).filter(lambda shape: shape[3] + shape[5] > 0)

_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "l3": st.integers(1, 5),
        "cluster": st.integers(1, 3),
        "emulated": st.integers(2, 3),
        "memory": st.sampled_from(["1Gi", "1Gi,0", "4Ki,3Gi"]),
        "hugepages": st.sampled_from(["2Mi:3", "2Mi:1,1Gi:2"]),
        "numbering": st.sampled_from(["split", "adjacent"]),
        "hbm": st.sampled_from(["2x1Gi", "4Mi:movable"]),
        "pmem": st.sampled_from(["8Gi", "0"]),
        "cxl": st.just("2x1Gi:movable"),
        "dram": st.sampled_from(["0", "1Gi"]),
        "offline": st.sampled_from(["0", "1-2", "3,5"]),
    },
)

_FREQUENCIES = st.none() | st.integers(1, 4_000_000).map(KiloHertz)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Draw a machine; some have frequencies, isolated CPUs and sparse node ids."""
    counts = draw(_SHAPES)
    shape = "".join(f"{n}{letter}" for n, letter in zip(counts, "sdncte", strict=True))
    options = draw(_OPTIONS)
    sockets, dies, nodes, *_ = counts
    if dies * nodes == 1 and draw(st.booleans()):
        options["around"] = sockets
    words = [f"{name}={value}" for name, value in options.items()]
    try:
        machine = parse_spec(" ".join([shape, *words]))
    except ContradictoryMachine:  # all of it offline
        machine = parse_spec(shape)
    isolated = draw(st.sets(st.sampled_from(list(machine.online)), max_size=3))
    return msgspec.structs.replace(
        machine,
        cpus=draw(st.just(machine.cpus) | _with_facts(machine)),
        isolated=CpuSet.from_iterable(isolated),
        **_renumbered(machine, draw(st.integers(1, 4))),
    )


def _with_facts(machine: Machine) -> st.SearchStrategy[tuple[Cpu, ...]]:
    facts = st.builds(
        Cpu,
        id=st.just(0),
        base=_FREQUENCIES,
        min=st.just(KiloHertz(800_000)),
        max=st.just(KiloHertz(3_500_000)) | st.none(),
        governor=st.sampled_from(["", "performance", "powersave"]),
        epp=st.sampled_from(["", "balance_power", "128"]),
        capacity=st.integers(1, 1024),
    )
    return st.tuples(*(facts.map(partial(_of, cpu.id)) for cpu in machine.cpus))


def _of(number: int, facts: Cpu) -> Cpu:
    return msgspec.structs.replace(facts, id=number)


def _renumbered(machine: Machine, step: int) -> dict[str, Any]:
    """Spread the node ids, which leaves gaps between them."""
    return {
        "nodes": tuple(
            msgspec.structs.replace(n, id=n.id * step + 1) for n in machine.nodes
        )
    }
