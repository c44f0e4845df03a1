"""CPUs that come back take no place from a container that has one."""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import CpuSet, MilliCpus, QosClass
from tests.examples import examples
from tests.laws.histories import FELL_BACK, History, policy_of
from tests.laws.history_draws import DOCUMENTS, Events, go_on

# All CPUs, and fewer each time.
_MACHINES: Final = ("1s1n10c1t", *(f"1s1n10c1t offline={n}-9" for n in (9, 8, 7)))
_TWO: Final = st.sets(st.integers(0, len(_MACHINES) - 1), min_size=2, max_size=2)
_EVENTS: Final = Events(
    st.sampled_from((*["create"] * 6, *["resize"] * 4, *["stop"] * 2)),
    st.integers(1, 10),
)


@pytest.mark.parametrize("kind", DOCUMENTS)
@examples(0.4)
@given(data=st.data())
def test_no_place_is_lost_to_an_older_container_without_one(
    kind: str, data: st.DataObject
) -> None:
    spec = data.draw(st.sampled_from(DOCUMENTS[kind]))
    more, fewer = sorted(data.draw(_TWO))
    whole, reduced = (policy_of(kind, spec, _MACHINES[one]) for one in (more, fewer))
    history = History(whole, _MACHINES)
    go_on(history, kind, data, _EVENTS)
    history.switch(reduced)
    go_on(history, kind, data, _EVENTS)
    # Those that ask for nothing give way to what others ask for.
    placed = {
        key
        for key, one in history.there.items()
        if one.request and history.why[key] not in FELL_BACK
    }

    history.switch(whole)

    assert not [key for key in placed if history.why[key] in FELL_BACK]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_pool_does_not_grow_for_one_that_takes_the_place_of_another(
    lost: int,
) -> None:
    kind, spec = "DynamicPoolsPolicy", DOCUMENTS["DynamicPoolsPolicy"][0]
    machines = ("1s1n6c1t", "1s1n6c1t offline=5", "1s1n6c1t offline=4-5")
    history = History(policy_of(kind, spec, machines[0]), machines)
    history.create(_guaranteed("old", 4000, pool="db", created=0))
    history.create(_guaranteed("web", 1000, created=1))
    history.switch(policy_of(kind, spec, machines[2]))
    assert history.why["old"] is Rule.FELL_BACK
    history.create(_guaranteed("log", 2000, created=2))
    before = dict(history.pins)

    history.die(lost)
    assert history.pins == before
    history.switch(policy_of(kind, spec, machines[1]))

    assert history.pins["log"].cpus == CpuSet.parse("1-4")
    assert history.why["old"] is Rule.FELL_BACK
    assert history.why["log"] not in FELL_BACK


def _guaranteed(
    name: str, amount: int, *, created: int, pool: str = ""
) -> ContainerSpec:
    """Return a Guaranteed container of a pool."""
    spec = ContainerSpec(id=name, pod=name, name=name, qos=QosClass.GUARANTEED)
    return msgspec.structs.replace(
        spec,
        created=created,
        request=MilliCpus(amount),
        limit=MilliCpus(amount),
        preferences=Preferences(dynamic_pool=pool),
    )
