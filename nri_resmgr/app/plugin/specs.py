"""Reads `ContainerSpec`s from events, annotations, requests and hints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from nri_resmgr.app.adjustments.decided_amounts import Amounts
from nri_resmgr.app.adjustments.in_force import AdjustmentsInForce
from nri_resmgr.app.adjustments.override import in_record, unadjusted
from nri_resmgr.app.annotations import (
    ProblemLog,
    Reading,
    Refused,
    read_preferences,
)
from nri_resmgr.app.plugin.hints import ContainerHints
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, HintFinder, PluginOptions
from nri_resmgr.app.plugin.pod_budget import budget_of, divided, updated_budget
from nri_resmgr.app.plugin.pod_overhead import (
    PodOverheads,
    is_overhead,
    overhead_of,
    reported_overhead,
)
from nri_resmgr.app.plugin.reading_budget import is_read_ahead, unread_pods
from nri_resmgr.app.plugin.translate import (
    KUBELET_NAME,
    KnownFacts,
    expected_specs,
    is_alive,
    living_specs,
    spec_of,
)
from nri_resmgr.app.requests import (
    AnnotationSource,
    RequestSource,
    RequestSources,
)
from nri_resmgr.app.requests.claim_environment import claims_in, unknown_claims
from nri_resmgr.app.requests.static_pools import read_pool_request
from nri_resmgr.host.tree import Tree
from nri_resmgr.kubelet.pod_resources import ContainerResources, PodName
from nri_resmgr.log import Logger
from nri_resmgr.policy.claims import PreparedClaim
from nri_resmgr.policy.events import (
    ContainerSpec,
    PodBudget,
    PodCreated,
    PodOverhead,
    Updated,
)
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.stub.contents import EMPTY
from nri_resmgr.stub.model import Container, LinuxResources, Pod
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions, HintSource
from nri_resmgr.topology.hints import Hint, complete_hints, pod_resource_hints
from nri_resmgr.values import Bytes

# In the keys of annotations that select hints.
_HINT_OPTIONS: Final = "topologyhints"

# Their first containers follow within a second or so.
_MOST_UNPLACED: Final = 64
log = Logger(__name__)


class _Hintless(Struct, frozen=True):
    """A container whose devices the kubelet has yet to report."""

    pod: PodName
    uid: str
    sandbox: str
    name: str


class PodUpdate(Struct, frozen=True):
    """The consequences of other sums of a pod.

    Attributes:
        budget: Those of its containers; None where they are not known.
        parts: Its containers whose parts of these change.
        overhead: Its changed overhead.
    """

    pod: str
    budget: PodBudget | None
    parts: tuple[Updated, ...] = ()
    overhead: PodOverhead | None = None


class SpecReader:
    """Reads specs, and keeps the resource requests of pods for later events.

    Args:
        machine: The model of the host.
        known: Finds a container of an earlier event by its id.
        in_pod: Returns the present containers of a pod.
        tree: The host; None for a simulated one.
        plugin_options: Whether annotations may pass hints, and the finder of hints.

    Attributes:
        adjustments: Those in force.
        overheads: Those of present pods.
    """

    def __init__(
        self,
        machine: Machine,
        known: Callable[[str], Entry | None],
        in_pod: Callable[[str], Sequence[ContainerSpec]],
        tree: Tree | None = None,
        plugin_options: PluginOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._problems = ProblemLog()
        self._known = known
        self._claims: Callable[[], Mapping[str, PreparedClaim]] = dict
        self._in_pod = in_pod
        self.adjustments = AdjustmentsInForce()
        self.overheads = PodOverheads()
        # Runtimes keep the resources that a pod was created with: containers that were
        # resized since may exceed them, and ask for the same by themselves.
        self._resized: set[str] = set()
        self._budgets: dict[str, PodBudget] = {}  # of pods that were resized
        self._testing = plugin_options.testing
        self._finder: HintFinder | None = plugin_options.hints
        if self._finder is None and tree is not None:
            self._finder = ContainerHints(tree)
        # New pods without containers whose requests were not known.
        self._unplaced: dict[str, Pod] = {}
        self._has_late_source = False
        self._pod_resources = plugin_options.pod_resources
        # Containers whose devices the kubelet has yet to report, by id.
        self._hintless: dict[str, _Hintless] = {}
        self._machine = machine
        self._requests = RequestSources(
            (AnnotationSource(),), capacity=_memory_of(machine)
        )

    def use_requests(self, source: RequestSource) -> None:
        """Query *source* before all others from now on; it may know pods later."""
        self._has_late_source = True
        self._requests.prepend(source)

    def use_claims(self, claims: Callable[[], Mapping[str, PreparedClaim]]) -> None:
        """Recognise prepared claims, which *claims* returns by UID."""
        self._claims = claims

    def change_machine(self, machine: Machine) -> None:
        """Use another model of the host from now on."""
        if machine is not self._machine:
            self._machine = machine
            self._requests.change_capacity(_memory_of(machine))

    def of_new(
        self, pod: Pod, container: Container, refuse: Refused = Refused.ALL
    ) -> ContainerSpec:
        """Read a container that is being created.

        Args:
            pod: Its pod.
            container: The container.
            refuse: Which mistakes in its annotations refuse it.

        Raises:
            BadAnnotation: An annotation that must not be ignored is invalid.
            HostError: The place of a device is unreadable, and hints are strict.
        """
        self._unplaced.pop(pod.id, None)
        known = self._read_known(pod, container, refuse)
        return spec_of(pod, container, requests=self._requests, facts=known)

    def of_late(self, pod: Pod, container: Container) -> ContainerSpec:
        """Read a container that runs already and was not placed at its creation."""
        known = self._read_known(pod, container, Refused.NONE)
        spec = spec_of(pod, container, requests=self._requests, facts=known)
        return self.in_budget(pod, spec)[0]

    def of_present(
        self, pod: Pod, container: Container, wanted: LinuxResources
    ) -> ContainerSpec:
        """Read a container as it would be with other resources."""
        facts = self._known_of(pod, container)
        spec = spec_of(pod, container, wanted, requests=self._requests, facts=facts)
        known = facts.known
        if known and (known.request, known.limit) != (spec.request, spec.limit):
            self._resized.add(pod.id)
        return spec

    def of_all(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> tuple[ContainerSpec, ...]:
        """Read all containers that have not stopped, and forget pods that are gone."""
        if self._finder is not None:
            self._finder.pods_come()
        present = {pod.id for pod in pods}
        self._requests.keep_only(present)
        self._resized &= present
        self._hintless.clear()
        for gone in self._budgets.keys() - present:
            del self._budgets[gone]
        self.overheads.keep_only(present)
        new = [one for one in containers if is_alive(one) and not self._known(one.id)]
        counts = Counter(one.pod_sandbox_id for one in new)
        overheads = [
            (pod, found)
            for pod in pods
            if pod.id not in self.overheads and (found := reported_overhead(pod))
        ]
        counts.update(pod.id for pod, _ in overheads)
        unread = unread_pods(pods, counts)
        for pod, found in overheads:
            self._note_overhead(pod, found, is_read=pod.id not in unread)
        # A resize may have been missed.
        facts = partial(self._known_of, may_be_resized=True, unread=unread)
        specs = living_specs(pods, containers, self._requests, facts)
        specs = self._within_budgets(pods, specs)
        return self.adjustments.adjust_all(specs, self._known_spec)

    def in_budget(
        self, pod: Pod, spec: ContainerSpec
    ) -> tuple[ContainerSpec, tuple[ContainerSpec, ...]]:
        """Limit a container to its part of its pod's resources, and adjust it.

        Returns:
            The container, and those others of the pod whose parts change with it.
        """
        budget = self._budget_of(pod)
        if budget is None:
            return self._adjusted(spec), ()
        others = [
            one
            for one in map(unadjusted, self._in_pod(pod.id))
            # Its predecessor is gone, even if its end was not reported.
            if one.id != spec.id and (one.slot != spec.slot or not spec.slot)
        ]
        names = {spec.name, *(one.name for one in others)}
        expected = [one for one in self._expected(pod) if one.name not in names]
        detects = pod.id not in self._resized
        found, *rest = self._divided(
            pod, (spec, *others, *expected), budget, detects=detects
        )
        changed = [
            new
            for new, old in zip(rest, (*others, *expected), strict=True)
            if new != old
        ]
        return self._adjusted(found), tuple(
            self._adjusted(one) for one in changed if one.id
        )

    def corrected(self, pod: str) -> tuple[ContainerSpec, ...]:
        """Read the containers of a pod of which a source knows more by now.

        Returns:
            Those whose amounts, or their origin, have changed.
        """
        present = self._in_pod(pod)
        adjusted = {one.name: one for one in present if one.adjusted is not None}
        if (found := self._requests.corrections(pod, adjusted)) is None:
            return ()
        bare, requests = found
        mine = [
            _with_requests(one, requests[one.name]) if one.name in requests else one
            for one in map(unadjusted, present)
            if one.id
        ]
        if budget := self._budget_of(bare):
            names = {one.name for one in mine}
            expected = [one for one in self._expected(bare) if one.name not in names]
            detects = pod not in self._resized
            parts = divided((*mine, *expected), budget, detects=detects)
            mine = list(parts[: len(mine)])
        specs = map(self._adjusted, mine)
        return tuple(one for one in specs if one != self._known_spec(one.id))

    def of_new_pod(self, pod: Pod, *, in_vm: bool = False) -> PodCreated:
        """Read the containers that a new pod will have, where a source has them."""
        if self._finder is not None:
            self._finder.pods_come()

        def preferences_of(name: str) -> Preferences:
            # Invalid annotations are refused when the container itself is created.
            return self._read(pod, name, Refused.NONE).preferences

        declared, budget = self._requests.declared(pod), self._budget_of(pod)
        specs, overhead = expected_specs(pod, declared), reported_overhead(pod)
        count = len(specs) + bool(overhead)
        is_read = count > 0 and is_read_ahead(pod, count)
        if is_read:
            specs = tuple(
                replace(one, preferences=preferences_of(one.name)) for one in specs
            )
        if budget and specs:
            specs = divided(specs, budget)
        specs = tuple(map(self._adjusted, specs))
        if self._has_late_source and not specs:
            while len(self._unplaced) >= _MOST_UNPLACED:
                del self._unplaced[next(iter(self._unplaced))]
            self._unplaced[pod.id] = pod
        own = None
        if overhead is not None:
            own = self._note_overhead(pod, overhead, is_read=is_read)
        return PodCreated(pod.id, specs, declared.names, own, in_vm)

    def _note_overhead(
        self, pod: Pod, resources: LinuxResources, *, is_read: bool
    ) -> ContainerSpec:
        found = self._overhead_of(pod, resources, is_read=is_read)
        self.overheads.note(pod.id, found)
        return found

    def _overhead_of(
        self, pod: Pod, resources: LinuxResources, *, is_read: bool
    ) -> ContainerSpec:
        preferences = NO_PREFERENCES
        if is_read:
            preferences = self._read(pod, OVERHEAD_NAME, Refused.NONE).preferences
        return overhead_of(pod, resources, preferences)

    def of_updated_pod(
        self, pod: Pod, overhead: LinuxResources, resources: LinuxResources
    ) -> PodUpdate:
        """Read other sums of a pod; those that are 0 stay as they are.

        They are in force once they are accepted: see `accept`.
        """
        before = self._budget_of(pod)
        budget = updated_budget(resources, before)
        own = None
        if is_overhead(overhead):
            found = self._overhead_of(pod, overhead, is_read=is_read_ahead(pod, 1))
            own = PodOverhead(pod.id, found)
        if budget is None or budget == before:
            return PodUpdate(pod.id, budget, overhead=own)
        entries = self._in_pod(pod.id)
        members = [replace(one, budget=budget) for one in map(unadjusted, entries)]
        # By how much they exceed other sums says nothing before they are updated, too.
        parts = divided(members, budget, detects=False, before=before)
        changed = (
            Updated(new)
            for old, one in zip(entries, parts, strict=True)
            if one.shares_budget and (new := self._adjusted(one)) != old
        )
        return PodUpdate(pod.id, budget, tuple(changed), own)

    def accept(self, update: PodUpdate) -> None:
        """Use other sums of a pod from now on."""
        if update.budget is not None:
            self._budgets[update.pod] = update.budget
            # What was resized before is in these.
            self._resized.discard(update.pod)
        if update.overhead is not None:
            self.overheads.note(update.pod, update.overhead.spec)

    def _budget_of(self, pod: Pod) -> PodBudget | None:
        if found := self._budgets.get(pod.id):
            return found
        # Of an earlier process.
        resized = (one.budget for one in self._in_pod(pod.id) if one.budget)
        return next(resized, None) or budget_of(pod)

    def _divided(
        self,
        pod: Pod,
        specs: Sequence[ContainerSpec],
        budget: PodBudget,
        *,
        detects: bool,
    ) -> tuple[ContainerSpec, ...]:
        found = divided(specs, budget, detects=detects)
        if budget == budget_of(pod):
            return found
        return tuple(
            replace(one, budget=budget) if one.shares_budget else one for one in found
        )

    def of_late_pod(self, pod: str) -> PodCreated | None:
        """Read a pod that has no container yet, and whose requests were not known.

        Returns:
            None where they are still not known, and for other pods.
        """
        if (found := self._unplaced.pop(pod, None)) is None:
            return None
        event = self.of_new_pod(found)
        return event if event.expected else None

    def _within_budgets(
        self, pods: Sequence[Pod], specs: tuple[ContainerSpec, ...]
    ) -> tuple[ContainerSpec, ...]:
        """Divide the resources of each pod among its containers; keeps their order."""
        by_pod: dict[str, list[ContainerSpec]] = {}
        for spec in specs:
            by_pod.setdefault(spec.pod, []).append(spec)
        parts: dict[str, ContainerSpec] = {}
        for pod in pods:
            mine = by_pod.get(pod.id)
            if mine and (budget := self._budget_of(pod)):
                # Known ones were divided at their creation, if at all.
                detects = not any(self._known(one.id) for one in mine)
                found = self._divided(pod, mine, budget, detects=detects)
                parts |= {one.id: one for one in found}
        return tuple(parts.get(one.id, one) for one in specs)

    def _adjusted(self, spec: ContainerSpec) -> ContainerSpec:
        return self.adjustments.adjust(spec, self._known_spec(spec.id))

    def _known_spec(self, container: str) -> ContainerSpec | None:
        entry = self._known(container)
        return entry.spec if entry else None

    def _expected(self, pod: Pod) -> tuple[ContainerSpec, ...]:
        return expected_specs(pod, self._requests.declared(pod))

    def forget(self, pod: str) -> None:
        """Drop the requests of a pod that is gone."""
        self._requests.forget(pod)
        for key in [key for key, one in self._hintless.items() if one.sandbox == pod]:
            del self._hintless[key]
        self._resized.discard(pod)
        self._unplaced.pop(pod, None)
        self._budgets.pop(pod, None)
        self.overheads.note(pod, None)

    def _known_of(
        self,
        pod: Pod,
        container: Container,
        *,
        may_be_resized: bool = False,
        unread: frozenset[str] = frozenset(),
    ) -> KnownFacts:
        if entry := self._known(container.id):
            if may_be_resized and not _has_devices(entry.spec):
                self._await_devices(pod, container)
            # Neither annotations nor devices change in a container's life.
            known = unadjusted(entry.spec)
            last_sent = entry.last_sent if may_be_resized else None
            return KnownFacts(
                known.preferences,
                known.hints,
                known.pool_request,
                self._prepared(known.claims),
                known,
                last_sent,
                self._decided(container, entry.spec),
            )
        if pod.id in unread:
            pod = replace(pod, annotations=EMPTY)
        return self._read_known(pod, container, Refused.NONE)

    def _decided(
        self, container: Container, spec: ContainerSpec
    ) -> tuple[Amounts, ...]:
        """Return the amounts of an adjusted container that the runtime may have."""
        amounts = self.adjustments.decided
        if decided := amounts.of(spec.id):
            decided = in_record(container, decided)
            amounts.keep(spec, decided)
        return decided

    def _read_known(
        self, pod: Pod, container: Container, refuse: Refused
    ) -> KnownFacts:
        name = _name_of(container)
        reading = self._read(pod, name, refuse)
        strict = refuse is Refused.ALL and reading.preferences.strict_hints
        hints: tuple[Hint, ...] = ()
        devices = self._devices_of(pod, container.id, name, reading.hints)
        if self._finder is not None:
            hints = self._finder.of(
                container,
                self._machine,
                reading.hints,
                pod_resources=devices,
                strict=strict,
            )
        elif devices:
            hints = complete_hints(devices, self._machine)
        is_new = refuse is not Refused.NONE
        asked = read_pool_request(container.env, container.args, is_new=is_new)
        claims = claims_in(container.env, self._claims())
        if is_new and (unknown := unknown_claims(container.env, claims)):
            title = f"{pod.namespace}/{pod.name}/{name}"
            log.warning("claim.unknown", title=title, variables=unknown)
        return KnownFacts(reading.preferences, hints, asked, claims)

    def _prepared(self, uids: Sequence[str]) -> tuple[PreparedClaim, ...]:
        claims = self._claims() if uids else {}
        return tuple(claims[uid] for uid in uids if uid in claims)

    def with_devices(self, pod: PodName, uid: str) -> Iterator[ContainerSpec]:
        """Yield the running containers of a pod whose devices have become known.

        Their specs have hints of these.
        """
        for key, one in tuple(self._hintless.items()):
            if (one.pod, one.uid) != (pod, uid) or self._pod_resources is None:
                continue
            answer = self._pod_resources.of(pod, uid)
            entry = self._known(key)
            if answer is None:
                continue
            del self._hintless[key]
            resources = answer.get(one.name)
            if entry is None or resources is None:
                continue
            found = complete_hints(_hints_of(resources), self._machine)
            if found:
                others = [hint for hint in entry.spec.hints if hint not in found]
                yield replace(entry.spec, hints=(*found, *others))

    def _devices_of(
        self, pod: Pod, container: str, name: str, options: HintOptions
    ) -> tuple[Hint, ...]:
        """Return the hints of a container's devices, or note that they are unknown."""
        book = self._pod_resources
        if book is None or not book.asks_all:
            return ()
        if HintSource.POD_RESOURCES not in options.sources:
            return ()
        found, uid = PodName(pod.namespace, pod.name), pod.uid or pod.id
        answer = book.of(found, uid)
        if answer is None:
            self._hintless[container] = _Hintless(found, uid, pod.id, name)
            return ()
        resources = answer.get(name)
        return _hints_of(resources) if resources is not None else ()

    def _await_devices(self, pod: Pod, container: Container) -> None:
        """Note a known container whose devices an earlier process did not know."""
        if self._pod_resources is None:
            return
        name, options = _name_of(container), ALL_HINTS
        # Few pods have it, and reading all annotations takes a part of a millisecond.
        if any(_HINT_OPTIONS in key for key in pod.annotations):
            options = self._read(pod, name, Refused.NONE).hints
        self._devices_of(pod, container.id, name, options)

    def _read(self, pod: Pod, name: str, refuse: Refused) -> Reading:
        title = f"{pod.namespace}/{pod.name}"
        reading = read_preferences(
            pod.annotations, name, pod=title, testing=self._testing, refuse=refuse
        )
        if reading.problems:
            self._problems.report(title, name, reading.problems)
        return reading


def _memory_of(machine: Machine) -> Bytes:
    # The kubelet computes OOM scores, a source of requests, from the node's memory.
    return Bytes(sum(node.memory for node in machine.nodes))


def _with_requests(spec: ContainerSpec, found: Requests) -> ContainerSpec:
    return replace(
        spec,
        request=found.cpu,
        limit=found.cpu_limit,
        memory_request=found.memory,
        memory_limit=found.memory_limit,
        hugepages=found.hugepages,
        extended=found.extended,
        source=found.source,
        priority=spec.priority if found.priority is None else found.priority,
    )


def _name_of(container: Container) -> str:
    return container.name or container.labels.get(KUBELET_NAME, "")


def _has_devices(spec: ContainerSpec) -> bool:
    return any(one.is_pod_resource for one in spec.hints)


def _hints_of(resources: ContainerResources) -> tuple[Hint, ...]:
    """Make a hint of each device that has nodes."""
    return pod_resource_hints(
        {
            f"{one.resource}:{one.id}": one.nodes
            for one in resources.devices
            if one.nodes
        }
    )
