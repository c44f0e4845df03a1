"""Drawn Speed Select facts for a given machine."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from nri_resmgr.topology import Machine
from nri_resmgr.topology.speed_select import (
    Clos,
    ClosOrder,
    Feature,
    Punit,
    TurboBucket,
)
from nri_resmgr.values import NO_CPUS, CpuSet, KiloHertz

_FREQUENCIES = st.none() | st.integers(1, 50).map(lambda n: KiloHertz(n * 100_000))
_BUCKETS = st.lists(
    st.builds(TurboBucket, st.integers(1, 64), st.just(KiloHertz(3_500_000))),
    max_size=3,
)


@st.composite
def punits_of(draw: st.DrawFn, machine: Machine, *, by_die: bool = False) -> Machine:
    """Draw what a punit in each die, or one or two in each package, could report."""
    if by_die:
        dies = [_punit(die.package, die.id, list(die.cpus)) for die in machine.dies]
        return msgspec.structs.replace(machine, speed_select=draw(st.tuples(*dies)))
    punits: list[Punit] = []
    for package in machine.packages:
        members = list(package.cpus)
        cut = draw(st.integers(0, len(members) - 1))
        parts = [part for part in (members[:cut], members[cut:]) if part]
        punits += [
            draw(_punit(package.id, number, part)) for number, part in enumerate(parts)
        ]
    return msgspec.structs.replace(machine, speed_select=tuple(punits))


@st.composite
def _punit(draw: st.DrawFn, package: int, number: int, members: list[int]) -> Punit:
    features = st.sampled_from(Feature)
    power = draw(features)
    classes: tuple[Clos, ...] = ()
    if power is not Feature.UNSUPPORTED:
        homes = {cpu: draw(st.integers(0, 3)) for cpu in members}
        classes = tuple(
            Clos(
                weight=draw(st.sampled_from([0, 0, 4, 15])),
                min=draw(_FREQUENCIES),
                max=draw(_FREQUENCIES),
                cpus=CpuSet.from_iterable(cpu for cpu, n in homes.items() if n == clos),
            )
            for clos in range(4)
        )
    faster = draw(st.sets(st.sampled_from(members)))
    return Punit(
        package=package,
        id=number,
        cpus=CpuSet.from_iterable(members),
        level=draw(st.integers(0, 4)),
        levels=tuple(sorted(draw(st.sets(st.integers(0, 4))))),
        is_locked=draw(st.booleans()),
        base=draw(features),
        base_cpus=CpuSet.from_iterable(faster) if faster else NO_CPUS,
        turbo=draw(features),
        buckets=tuple(draw(_BUCKETS)),
        power=power,
        order=draw(st.sampled_from(ClosOrder)),
        clos=classes,
    )
