"""An independent reading of the advice in refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Self

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    PodCreated,
    PodStopped,
    Stopped,
    Updated,
)
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.values import Bytes, MilliCpus, PolicyError, QosClass

Edit = Callable[[ContainerSpec], ContainerSpec]

UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
STOP: Final = re.compile(r"stop containers (on this node|that have memory there)")
CPUS: Final = re.compile(r"ask for at most (\d+) CPUs?")
MEMORY: Final = re.compile(r"ask for at most (\d+) (\w+)")
PAGES: Final = re.compile(r"ask for at most (\d+) (\w+) of (\d+) (\w+) huge pages")
SHARED: Final = 'set "onFailure: shared" to run it on shared CPUs'
SOFT: Final = 'set "placePods: soft" to place its containers one by one'
TO_HELP: Final = "; to help, "
NOTHING: Final = "; no single change of it helps on this node"
ANNOTATIONS: Final = {
    "annotate it with prefer-shared-cpus": {"shared": True},
    "annotate it with prefer-isolated-cpus": {"isolated": True},
    "do not require isolated CPUs": {"require_isolated": False},
    "do not make its topology hints strict": {"strict_hints": False},
}


class Case(msgspec.Struct):
    """A refused event, and the node that it came to."""

    policy: Any
    state: Any
    event: Created | Updated | PodCreated

    def accepts(self, **changes: Any) -> bool:
        """Return whether it is accepted, not counting a place for lack of another."""
        settings = self.policy.settings
        if hasattr(settings, "on_failure"):
            changes = {"on_failure": OnFailure.REFUSE, **changes}
        policy = type(self.policy)(self.policy.machine, replace(settings, **changes))
        return decided(policy, self.state, self.event) is not None

    def edited(self, edit: Edit) -> Self:
        event: Any = self.event
        if isinstance(event, PodCreated):
            event = replace(event, expected=tuple(map(edit, event.expected)))
        else:
            event = replace(event, spec=edit(event.spec))
        return type(self)(self.policy, self.state, event)

    def alone(self) -> Self:
        """All others stop, and so do other pods."""
        event, state = self.event, self.state
        own = event.spec.id if isinstance(event, Updated) else ""
        pod = event.pod if isinstance(event, PodCreated) else event.spec.pod
        for key in state.ledger.entries.keys() - {own}:
            state = self.policy.decide(state, Stopped(key)).state
        for other in {"p", "q"} - {pod}:
            state = self.policy.decide(state, PodStopped(other)).state
        return type(self)(self.policy, state, event)

    def with_cpus(self, count: int) -> Self:
        amount = MilliCpus(1000 * count)

        def edit(spec: ContainerSpec) -> ContainerSpec:
            assert 0 < amount < spec.request
            limit = amount if spec.qos is QosClass.GUARANTEED else spec.limit
            return replace(spec, request=amount, limit=limit)

        return self.edited(edit)


class TopologyAwareCase(Case):
    """One of the topology-aware policy."""

    def preferring(self, **preferences: bool) -> Self:
        return self.edited(
            lambda spec: replace(
                spec, preferences=replace(spec.preferences, **preferences)
            )
        )

    def follows(self, text: str) -> bool:
        """Return whether it is accepted after what a text advises.

        Raises:
            AssertionError: The text is unknown.
        """
        if text in ANNOTATIONS:
            return self.preferring(**ANNOTATIONS[text]).accepts()
        if text == SHARED:
            return self.accepts(on_failure=OnFailure.SHARED)
        if text == SOFT:
            return self.accepts(place_pods=PodPlacement.SOFT)
        return self.after(text).accepts()

    def after(self, text: str) -> Self:
        if STOP.fullmatch(text):
            return self.alone()
        if found := CPUS.fullmatch(text):
            return self.with_cpus(int(found[1]))
        if found := MEMORY.fullmatch(text):
            return self.with_memory(int(found[1]) * UNITS[found[2]])
        found = PAGES.fullmatch(text)
        assert found, f"unknown advice: {text}"
        most = int(found[1]) * UNITS[found[2]]
        return self.with_pages(most, int(found[3]) * UNITS[found[4]])

    def with_memory(self, most: int) -> Self:
        def edit(spec: ContainerSpec) -> ContainerSpec:
            request, limit = spec.memory_request, spec.memory_limit
            assert 0 < most < (request or limit or 0)
            if not request or limit == request:
                limit = Bytes(most)
            return replace(
                spec, memory_request=Bytes(most if request else 0), memory_limit=limit
            )

        return self.edited(edit)

    def with_pages(self, most: int, size: int) -> Self:
        return self.edited(
            lambda spec: replace(
                spec,
                hugepages=tuple(
                    replace(one, count=most // size) if one.size == size else one
                    for one in spec.hugepages
                ),
            )
        )


def decided(policy: Any, state: Any, event: Event) -> Any:
    """Return the state after an event; None if it is refused."""
    try:
        return policy.decide(state, event).state
    except PolicyError:
        return None


def advice_of(sentence: str) -> list[str]:
    before, found, helps = sentence.partition(TO_HELP)
    if not found:
        assert before.endswith(NOTHING)
        return []
    return helps.split(", or ")


def check(case: TopologyAwareCase, sentence: str) -> None:
    helps = advice_of(sentence)
    assert len(set(helps)) == len(helps)
    for text in helps:
        assert case.follows(text), text
    if isinstance(case.event, PodCreated):
        return
    # What would help is not concealed.
    stops = any(map(STOP.fullmatch, helps))
    assert stops == case.alone().accepts()
    others = {*ANNOTATIONS, SHARED} - set(helps)
    if case.policy.settings.on_failure is OnFailure.SHARED:
        others -= {SHARED}
    assert not [text for text in others if case.follows(text)]
    for found in filter(None, map(CPUS.fullmatch, helps)):
        more = int(found[1]) + 1
        if 1000 * more < case.event.spec.request:
            assert not case.with_cpus(more).accepts()
