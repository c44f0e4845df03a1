"""Checkpoints: one that is not all there is refused, whatever is wrong with it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest

from nri_resmgr.checkpoint.decode import (
    BadCheckpoint,
    NewerCheckpoint,
    read_checkpoint,
)
from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policy.events import Created
from nri_resmgr.policy.records import BadRecord
from tests.app.checkpoints import KINDS, busy, policy_of, sealed, spec, text_of


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_checkpoint_is_refused(kind: str) -> None:
    policy = policy_of(kind)
    text = text_of(policy, busy(policy))

    for length in range(len(text)):
        with pytest.raises(BadCheckpoint):
            read_checkpoint(text[:length])
    assert read_checkpoint(text).kind == kind


def test_a_checkpoint_with_a_changed_byte_is_refused_or_equal() -> None:
    policy = policy_of("StaticPolicy")
    text = text_of(policy, busy(policy))
    rows = read_checkpoint(text).rows

    for at in range(len(text)):
        for other in ("0", '"', "\udcff"):
            changed = text[:at] + other + text[at + 1 :]
            with suppress(BadCheckpoint, NewerCheckpoint):
                assert read_checkpoint(changed).rows == rows  # only words for people


def test_only_lines_of_changed_records_are_rendered_again() -> None:
    policy, draft = policy_of("TopologyAwarePolicy"), Draft()
    state = busy(policy)
    before = {id(line) for line in draft.lines_of(policy, state)}
    state = policy.decide(state, Created(spec("new"))).state
    lines = draft.lines_of(policy, state)
    new = [json.loads(line)[:2] for line in lines if id(line) not in before]

    assert new == [["container", "new"], ["last_sent", "new"], ["grant", "new"],
                   ["memory", "new"]]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("", "line 1 is not JSON", id="nothing"),
        pytest.param("[" * 100_000, "line 1 is not JSON", id="too deep"),
        pytest.param("{}\n", "it has no header", id="something else"),
        pytest.param("[1]\n", "it has no header", id="a list"),
        pytest.param(sealed({"format": "1"}, []), "line 1 has no format", id="format"),
        pytest.param(sealed({"crc32": 1}, []), "it was cut off or changed", id="sum"),
        pytest.param(
            sealed({}, [["last_sent"]]), "line 2 is not a record", id="half a record"
        ),
        pytest.param(
            sealed({}, [["last_sent", ["a"], {}]]),
            "line 2 is not a record",
            id="a short key",
        ),
    ],
)
def test_an_invalid_checkpoint_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadCheckpoint) as refusal:
        read_checkpoint(text)

    assert str(refusal.value) == f"the checkpoint is unreadable: {sentence}"


def test_a_newer_format_is_reported_by_its_version() -> None:
    with pytest.raises(NewerCheckpoint) as refusal:
        read_checkpoint(sealed({"format": 2, "version": "9.1"}, []))

    assert str(refusal.value) == (
        "the checkpoint is of version 9.1, in format 2; "
        "this version reads formats up to 1"
    )


OWN: Final = {"id": "a"}
GRANT: Final = {"container": "a", "kind": "shared", "pool": 0}
MEMORY: Final = {
    "request": {"id": "a", "affinity": "0", "priority": 0, "title": "a"},
    "zone": "0",
    "kinds": ["dram"],
    "age": 1,
}
GOOD: Final = [
    ["pool", 0, "root"],
    ["container", "a", OWN],
    ["last_sent", "a", {}],
    ["grant", "a", GRANT],
    ["memory", "a", MEMORY],
]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        pytest.param(
            ["container", "a", {"id": "b"}],
            "container a: is of 'b'",
            id="a container that is another one",
        ),
        pytest.param(
            ["container", "a", {"id": "a", "qos": "Best"}],
            "container a: Invalid enum value 'Best' - at `$.qos`",
            id="a word that is none",
        ),
        pytest.param(
            ["last_sent", "b", {}], "last_sent b: has no container", id="a stray pin"
        ),
        pytest.param(
            ["grant", "b", GRANT], "grant b: has no container", id="a stray grant"
        ),
        pytest.param(
            ["grant", "a", {**GRANT, "pool": 7}],
            "grant a: pool 7 has no name",
            id="a pool without a name",
        ),
        pytest.param(
            ["grant", "a", {**GRANT, "cpus": "3-1"}],
            "grant a: not a CPU or node list: '3-1' (at '3-1') - at `$.cpus`",
            id="CPUs that are none",
        ),
        pytest.param(
            ["former_place", "a", GRANT],
            "former_place a: is not a key of this table",
            id="a slot that is none",
        ),
        pytest.param(
            ["reserved_place", ["p", "b"], {"id": "a", "pod": "p", "name": "c"}],
            "reserved_place ('p', 'b'): is of p/c",
            id="a place for another one",
        ),
        pytest.param(
            ["seat", "a", {}],
            "seat: TopologyAwarePolicy has no such records",
            id="a table of another policy",
        ),
    ],
)
def test_an_inconsistent_record_is_named(row: list[Any], sentence: str) -> None:
    saved = read_checkpoint(sealed({}, [*GOOD, row]))
    with pytest.raises(BadRecord) as refusal:
        saved.state_for(policy_of("TopologyAwarePolicy"))

    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("machine", "dropped"),
    [
        pytest.param("2s2n2c1t", {}, id="all is there"),
        pytest.param(
            "1s2n4c1t",
            {
                "b": "memory on nodes 2 near 2 does not exist",
                "c": "memory on nodes 3 near 3 does not exist",
            },
            id="a socket is gone",
        ),
        pytest.param(
            "2s1n4c1t",
            {
                "a": "there is no pool NUMA node #1",
                "b": "memory on nodes 2 near 2 does not exist",
                "c": "memory on nodes 3 near 3 does not exist",
                "d": "there is no pool NUMA node #0",
            },
            id="sockets have one node each",
        ),
    ],
)
def test_grants_in_pools_that_no_longer_exist_are_discarded(
    machine: str, dropped: dict[str, str]
) -> None:
    policy = policy_of("TopologyAwarePolicy", "2s2n2c1t")
    state = policy.start()
    for name in ("a", "b", "c", "d"):
        state = policy.decide(state, Created(spec(name, 1))).state
    saved = read_checkpoint(text_of(policy, state))
    restored = saved.state_for(policy_of("TopologyAwarePolicy", machine))

    assert restored.dropped == dropped
    assert restored.state.ledger.entries.keys() == set("abcd") - dropped.keys()
