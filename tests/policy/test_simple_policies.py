"""Small policies: what the base class does for their four methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy import (
    NO_CLASSES,
    NO_HOST_USE,
    BadRecord,
    ContainerSpec,
    CpuSet,
    Created,
    Decision,
    Event,
    Ledger,
    MilliCpus,
    NodeSet,
    Pin,
    Placed,
    PodStopped,
    PolicyError,
    Removed,
    Resources,
    Rule,
    SimplePolicy,
    SimpleState,
    Started,
    StateRecords,
    Stopped,
    Synchronized,
    Updated,
)

ALL: Final = CpuSet.parse("0-7")


class OwnState(SimpleState, frozen=True):
    """CPUs by container."""

    own: Mapping[str, CpuSet] = {}


class OwnPolicy(SimplePolicy[OwnState]):
    """One CPU for each container that asks for anything; CPU 0 is shared by all."""

    kind: ClassVar[str] = "OwnPolicy"

    def start(self) -> OwnState:
        return OwnState()

    def place(
        self, state: OwnState, spec: ContainerSpec, earlier: CpuSet
    ) -> Placed[OwnState]:
        if not spec.request:
            return Placed(state, Rule.NOT_GUARANTEED)
        free = ALL - CpuSet.parse("0") - CpuSet.union(state.own.values())
        if not free:
            raise PolicyError("no CPU is free")
        cpus = earlier if len(earlier) == 1 and earlier <= free else free.lowest(1)
        own = {**state.own, spec.id: cpus}
        return Placed(msgspec.structs.replace(state, own=own), Rule.WHOLE_CPUS)

    def vacate(self, state: OwnState, container: str) -> OwnState:
        own = {key: cpus for key, cpus in state.own.items() if key != container}
        return msgspec.structs.replace(state, own=own)

    def pins(self, state: OwnState) -> Mapping[str, Pin]:
        shared = Pin(ALL - CpuSet.union(state.own.values()))
        own = {key: Pin(cpus) for key, cpus in state.own.items()}
        return {key: own.get(key, shared) for key in state.ledger.entries}


POLICY: Final = OwnPolicy()


def one(
    name: str, request: int = 0, present: str = "", slot: str = ""
) -> ContainerSpec:
    pin = Pin(CpuSet.parse(present))
    amount = MilliCpus(request)
    return ContainerSpec(name, pod="pod", request=amount, present=pin, slot=slot)


def after(*events: Event) -> Decision[OwnState]:
    decision = Decision(POLICY.start(), ())
    for event in events:
        decision = POLICY.decide(decision.state, event)
    return decision


def cpus_of(state: OwnState) -> dict[str, str]:
    return {key: str(pin.cpus) for key, pin in POLICY.pins(state).items()}


def updates_of(decision: Decision[Any]) -> dict[str, str]:
    return {update.container: str(update.pin.cpus) for update in decision.updates}


def test_others_are_updated_and_the_created_container_is_not() -> None:
    decision = after(Created(one("a")), Created(one("b", 1000)))

    assert str(decision.pin.cpus) == "1"
    assert updates_of(decision) == {"a": "0,2-7"}


def test_cpus_of_a_stopped_container_are_free_again() -> None:
    decision = after(Created(one("a", 1000)), Created(one("b")), Stopped("a"))

    assert [reason.rule for reason in decision.reasons] == [Rule.RELEASED]
    assert updates_of(decision) == {"b": "0-7"}


def test_the_next_container_of_a_slot_replaces_the_last_one() -> None:
    decision = after(
        Created(one("a", 1000, slot="app")), Created(one("b", 1000, slot="app"))
    )

    assert cpus_of(decision.state) == {"b": "1"}


def test_a_resized_container_stays_where_it_is() -> None:
    decision = after(
        Created(one("a", 1000)),
        Created(one("b", 1000)),
        Stopped("a"),
        Updated(one("b", 2000)),
    )

    assert str(decision.pin.cpus) == "2"


def test_a_container_that_was_unknown_is_taken_in_where_it_runs() -> None:
    decision = after(Updated(one("a", 1000, present="5")))

    assert cpus_of(decision.state) == {"a": "5"}


@pytest.mark.parametrize("event", [Removed("b"), PodStopped("pod")])
def test_after_a_loss_all_pins_are_sent_again(event: Event) -> None:
    # Where c is has not changed.
    first = one("a"), one("b", 1000), one("c", 1000)
    lost = after(*map(Created, first), event)
    kept = [] if isinstance(event, PodStopped) else ["a", "c"]

    assert [*lost.state.ledger.entries] == kept
    assert [*updates_of(lost)] == kept
    assert POLICY.decide(lost.state, Stopped("x")).updates == ()


@pytest.mark.parametrize("event", [Stopped("x"), Removed("x")])
def test_an_unknown_container_is_only_noted(event: Event) -> None:
    decision = after(event)

    assert [reason.rule for reason in decision.reasons] == [Rule.UNKNOWN_CONTAINER]
    assert decision.state == POLICY.start()


def test_running_containers_precede_known_ones() -> None:
    known = after(Created(one("b", 1000))).state
    running = (one("a", 1000, present="1"), one("b", 1000, present="6"), one("c"))
    decision = POLICY.decide(known, Synchronized(running))

    assert cpus_of(decision.state) == {"b": "6", "a": "1", "c": "0,2-5,7"}
    assert updates_of(decision) == {"c": "0,2-5,7"}


def test_a_container_that_is_where_it_was_is_kept() -> None:
    decision = after(Synchronized((one("a", 1000, present="5"), one("b", 1000))))

    assert [reason.rule for reason in decision.reasons] == [Rule.KEPT, Rule.WHOLE_CPUS]
    assert updates_of(decision) == {"b": "1"}


def test_running_containers_are_never_refused() -> None:
    running = tuple(one(f"c{number}", 1000) for number in range(8))
    decision = after(Synchronized(running))
    refused = [reason for reason in decision.reasons if reason.detail]

    assert [(r.container, r.rule, r.detail) for r in refused] == [
        ("c7", Rule.FELL_BACK, "no CPU is free")
    ]
    assert cpus_of(decision.state)["c7"] == "0"


def test_a_refusal_changes_nothing() -> None:
    full = after(*(Created(one(f"c{number}", 1000)) for number in range(7))).state

    with pytest.raises(PolicyError, match="no CPU is free"):
        POLICY.decide(full, Created(one("more", 1000)))


def test_nothing_is_shown_by_default() -> None:
    state = after(Created(one("a", 1000)), Started("a")).state

    assert not POLICY.publishes(state, "a")
    assert POLICY.resources_of(state, "a") is None
    assert (POLICY.pools(state), POLICY.candidates(state, "a")) == ((), ())
    assert POLICY.host_use(state) is NO_HOST_USE
    assert POLICY.classes_of(state, "a") is NO_CLASSES


def test_published_resources_follow_the_pins() -> None:
    class Publishing(OwnPolicy):
        def publishes(self, state: OwnState, container: str) -> bool:
            return container in state.ledger

    state, policy = (
        after(*map(Created, (one("a", 1000), one("b"), one("c")))).state,
        Publishing(),
    )

    assert policy.resources_of(state, "a") == Resources(exclusive=CpuSet.parse("1"))
    assert policy.resources_of(state, "b") == Resources(shared=CpuSet.parse("0,2-7"))
    assert policy.resources_of(state, "x") is None


NAMES = st.sampled_from("abcdefghij")
SPECS = st.builds(
    one, NAMES, st.sampled_from((0, 500, 1000)), st.sampled_from(("", "3"))
)
EVENTS = st.one_of(
    SPECS.map(Created),
    SPECS.map(Updated),
    NAMES.map(Stopped),
    NAMES.map(Removed),
    st.lists(SPECS, max_size=10).map(lambda specs: Synchronized(tuple(specs))),
)


@given(st.lists(EVENTS, max_size=30))
def test_the_runtime_knows_all_pins_after_each_event(events: list[Event]) -> None:
    state = POLICY.start()
    for event in events:
        try:
            decision = POLICY.decide(state, event)
        except PolicyError:
            continue
        state = decision.state
        sent = {key: entry.last_sent for key, entry in state.ledger.entries.items()}
        assert sent == POLICY.pins(state) or isinstance(event, Removed)
        records = StateRecords(OwnState)
        assert records.state_from(records.tables_of(state), POLICY).state == state


class AnyState(SimpleState, frozen=True):
    """A field of each kind."""

    slots: Mapping[tuple[str, str], NodeSet] = {}
    count: int = 0
    names: tuple[str, ...] = ()


def test_fields_are_tables_by_their_types() -> None:
    records = StateRecords(AnyState)
    state = AnyState(slots={("pod", "app"): NodeSet.parse("1")}, count=2, names=("a",))

    assert dict(records.TABLES) | {"container": 0, "last_sent": 0} == {
        "container": 0,
        "last_sent": 0,
        "slots": NodeSet,
        "count": int,
        "names": tuple[str, ...],
    }
    assert {"slots": tuple} == records.KEYS
    assert records.tables_of(state) == {
        "container": {},
        "last_sent": {},
        "slots": {("pod", "app"): NodeSet.parse("1")},
        "count": {"": 2},
        "names": {"": ("a",)},
    }
    assert records.state_from(records.tables_of(state), None).state == state


def test_rows_of_no_state_are_refused() -> None:
    class Needy(SimpleState, frozen=True, kw_only=True):
        count: int

    records = StateRecords(Needy)
    empty: dict[str, Any] = {"container": {}, "last_sent": {}, "count": {}}
    with pytest.raises(BadRecord, match="count"):
        records.state_from(empty, None)
    with pytest.raises(BadRecord, match="count x: has a key, expected none"):
        records.state_from(empty | {"count": {"x": 1}}, None)


def test_a_state_has_a_ledger() -> None:
    class Bare(msgspec.Struct, frozen=True):
        count: int

    class Clashing(msgspec.Struct, frozen=True):
        ledger: Ledger
        last_sent: int

    with pytest.raises(TypeError, match="Bare has no field ledger"):
        StateRecords(Bare)
    with pytest.raises(TypeError, match="fields of the ledger"):
        StateRecords(Clashing)
