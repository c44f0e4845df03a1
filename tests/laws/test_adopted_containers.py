"""A container that was adopted is never placed worse than a new one would be."""

from __future__ import annotations

from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.policy.events import NO_PIN, Created, Pin, Stopped
from nri_resmgr.values import NO_CPUS, ONE_CPU, PolicyError
from tests.laws.histories import FELL_BACK, History, Restart
from tests.laws.history_draws import DOCUMENTS, begin, containers, go_on

AGES: Final = (0, 1, 5, 50)
# A pool is what containers ask for; its CPUs are theirs together.
BY_POOL: Final = ("BalloonsPolicy", "PodpoolsPolicy", "DynamicPoolsPolicy")
# Without a restart they leave a container where it is, too: a pod that had no room in
# its pool, and one that asks for more CPUs than its list has since a resize.
NEVER_MOVING: Final = ("PodpoolsPolicy", "StaticPoolsPolicy")
_UNLIMITED: Final = 1_000_000


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_an_adopted_container_has_the_grant_of_a_new_one(
    kind: str, data: st.DataObject
) -> None:
    history = begin(kind, data)
    go_on(history, kind, data)
    for _ in range(data.draw(st.integers(1, 3))):
        history.create_unseen(data.draw(containers(len(history.events))))

    check_adopted(history)


def check_adopted(history: History) -> None:
    """Check that no container would be better off if it were created anew."""
    unseen = [key for key, pin in history.pins.items() if pin == NO_PIN]
    for age in AGES:
        after = history.restart(age)
        for key in history.there.keys() - set(after.refused):
            # All that came before it have their final places when it gets its own.
            last = unseen == [key] and not age
            if found := better_anew(history, after, key, last=last):
                lines = (*history.events, f"{age} decisions are lost", key, found)
                raise AssertionError("\n".join(lines))


def better_anew(history: History, after: Restart, key: str, *, last: bool) -> str:
    """Say what a container would have if it were released and created anew.

    Empty if that is no more than it has. CPUs beyond its request are compared for one
    that was placed after all others: how many there are depends on these.
    """
    policy, spec = history.policy, history.there[key]
    left = policy.decide(after.state, Stopped(key)).state
    # Without a slot, since it would be offered the place that was just left.
    new = replace(spec, slot="")
    try:
        fresh = policy.decide(left, Created(new))
    except PolicyError:
        return ""
    rule, runs = fresh.reasons[0].rule, history.pins[key].cpus
    stays = runs and after.pins[key].cpus == runs
    if rule in FELL_BACK or (stays and policy.kind in NEVER_MOVING):
        return ""
    if after.why.get(key) in FELL_BACK:
        return f"a place by {rule}"
    if policy.kind in BY_POOL:
        was, now = (_pool(policy, one, key) for one in (after.state, fresh.state))
        return f"a place in {now} instead of {was}" if was != now else ""
    own, more = (_exclusive(policy, one, key) for one in (after.state, fresh.state))
    if own < more:
        return f"{more} exclusive CPUs instead of {own}"
    most = (spec.limit or _UNLIMITED) if last else spec.request
    has, could = (_usable(one, most) for one in (after.pins[key], fresh.pin))
    return f"{could}m of {most}m instead of {has}m" if has < could else ""


def _pool(policy: Any, state: Any, key: str) -> str:
    """Return the kind of pool that a container is in."""
    pools = (one.name for one in policy.pools(state) if key in one.containers)
    return next(pools, "").partition("[")[0]


def _exclusive(policy: Any, state: Any, key: str) -> int:
    return len(policy.exclusive_parts(state).get(key, NO_CPUS))


def _usable(pin: Pin, most: int) -> int:
    return min(len(pin.cpus) * ONE_CPU, most)
