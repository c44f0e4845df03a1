"""Records that were tampered with are refused, or do no harm."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from nri_resmgr.checkpoint.decode import read_checkpoint
from nri_resmgr.policy.events import Synchronized
from nri_resmgr.values import InputError
from tests.app.checkpoints import (
    KINDS,
    busy,
    policy_of,
    rows_of,
    sealed,
    spec,
    text_of,
)

WORDS = ["own", "gone", "", -1, 7, None, [], {}, "0-900", True]

ROWS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.lists(
            st.sampled_from(rows_of(text_of(policy_of(kind), busy(policy_of(kind))))),
            max_size=20,
        ),
        st.lists(
            st.tuples(
                st.integers(0, 19),
                st.sampled_from(
                    ["own", "gone", "", -1, 7, None, [], {}, "0-900", True]
                ),
            ),
            max_size=3,
        ),
    )
)


def _spoiled(rows: list[Any], changes: list[tuple[int, Any]]) -> list[Any]:
    """Put words into records where they do not belong."""
    spoiled = json.loads(json.dumps(rows))
    for at, word in changes:
        if at < len(spoiled) and isinstance(spoiled[at][2], dict) and spoiled[at][2]:
            keys = sorted(spoiled[at][2])
            spoiled[at][2][keys[at % len(keys)]] = word
    return spoiled  # type: ignore[no-any-return] # it is what JSON gives


# For a Guaranteed container with whole CPUs and no annotation.
_WITHOUT_EXCLUSIVE = ("BalloonsPolicy", "DynamicPoolsPolicy", "PodpoolsPolicy")


@given(ROWS)
def test_any_records_are_refused_or_restored_consistently(
    drawn: tuple[str, list[Any], list[tuple[int, Any]]],
) -> None:
    kind, rows, changes = drawn
    policy = policy_of(kind)
    try:
        saved = read_checkpoint(sealed({"policy": kind}, _spoiled(rows, changes)))
        state = saved.state_for(policy).state
    except InputError:
        return
    there = Synchronized((spec("own", 2), spec("shares")), frozenset({"p"}))
    decided = policy.decide(state, there).state
    pins = policy.pins(decided)
    if kind == "NonePolicy":
        assert not any(pins.values())
        return
    own, shared = pins["own"].cpus, pins["shares"].cpus
    if kind in _WITHOUT_EXCLUSIVE:
        assert own
        assert shared
        return
    assert len(own) == 2
    assert own.isdisjoint(shared)
