"""Replays a recording with the present plugin and finds differing decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from google.protobuf.message import Message

from nri_resmgr.app.plugin.changes.rebalancing import rebalance
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine
from nri_resmgr.policy.decision import PinUpdate, Reason
from nri_resmgr.policy.events import Rebalance
from nri_resmgr.recordings.entries import (
    Answered,
    Called,
    Configured,
    Decided,
    Entry,
    Header,
    MachineChanged,
    Rebalancing,
    RecordedCheckpoint,
    RecordedRefusal,
)
from nri_resmgr.scenario.compare import REFUSED
from nri_resmgr.scenario.differences import (
    AS_RECORDED,
    Differences,
    Outcome,
    Replacements,
    ReplayDifference,
)
from nri_resmgr.scenario.replayed import ReplayedPlugin, ReplayedReply
from nri_resmgr.scenario.sent_values import (
    NOTHING,
    ContainerMessage,
    SentValues,
    containers_in,
    sent_values_in,
)
from nri_resmgr.scenario.timeline import Timeline
from nri_resmgr.values import ResmgrError

# Events without a request: no reply carries their updates.
_WITHOUT_REQUEST: Final = ("ColdStartEnded", "Rebalance", "Synchronized")


class Replay:
    """Replays a recording once.

    It needs all entries at once: hints and answers are used before their time.

    Args:
        header: That of the recording.
        entries: Its entries.
        replacements: Parts that replace those of the recording.
        timeline: Takes where containers are at each time, if given.
    """

    def __init__(
        self,
        header: Header,
        entries: Sequence[Entry],
        replacements: Replacements = AS_RECORDED,
        timeline: Timeline | None = None,
    ) -> None:
        self._entries = entries
        self._timeline = timeline
        self._replacements = replacements
        self._differences = Differences()
        self._requests = self._decisions = 0
        self._titles: dict[str, str] = {}
        self._replies: dict[int, tuple[Message, ReplayedReply]] = {}
        self._unplaced: set[str] = set()  # refused now, but not in the recording
        self._suspects: list[ReplayDifference] = []
        self._refusals = dict(_refusals(entries))
        machine = replacements.machine or header.machine
        hints = {
            container: found
            for entry in entries
            if isinstance(entry, Decided)
            for container, found in entry.hints
        }
        # With other parts the plugin makes other calls.
        answered = entries if replacements == AS_RECORDED else ()
        answers = [
            entry
            for entry in answered
            if isinstance(entry, Answered) and entry.method == "UpdateContainers"
        ]
        self._plugin = ReplayedPlugin(header, machine, hints, answers)

    async def run(self) -> Outcome:
        """Replay it.

        Raises:
            ResmgrError: The configuration does not fit the machine.
        """
        if self._replacements.document is not None:
            self._plugin.configure(self._replacements.document)
        for entry in self._entries:
            await self._pass_until(entry.time)
            self._take(entry)
            await self._plugin.settle()
            self._note_places()
        self._report_suspects(())
        if self._timeline is not None:
            self._timeline.finish(self._plugin.clock.now)
        found = tuple(self._differences.found)
        return Outcome(self._requests, self._decisions, found)

    async def _pass_until(self, time: int) -> None:
        clock = self._plugin.clock
        if self._timeline is not None:  # which has the times of timers, too
            while (due := clock.next_due) is not None and due < time:
                clock.pass_until(due)
                await self._plugin.settle()
                self._note_places()
        clock.pass_until(time)
        await self._plugin.settle()
        self._note_places()

    def _note_places(self) -> None:
        if self._timeline is not None:
            self._plugin.add_to(self._timeline)

    def _take(self, entry: Entry) -> None:
        if not isinstance(entry, Decided):
            self._report_suspects(())
        match entry:
            case Called(is_ours=False, body=request) if request is not None:
                self._call(entry, request)
            case Answered(is_ours=True):
                self._compare_answer(entry)
            case Decided():
                self._compare_decision(entry)
            case Rebalancing(event=event):
                self._rebalance(entry.time, event)
            case RecordedCheckpoint(text=text):
                self._plugin.restore(text)
            case Configured(text=text) if self._replacements.document is None:
                change = partial(self._plugin.configure, text)
                self._try(entry.time, "configuration", change)
            case MachineChanged(machine=machine) if self._replacements.machine is None:
                # `policy` builds a missing one, which may fail as well.
                plugin = self._plugin
                self._try(
                    entry.time,
                    "machine",
                    lambda: change_machine(plugin.policy, machine),
                )

    def _rebalance(self, time: int, event: Rebalance) -> None:
        plugin = self._plugin
        self._try(time, "rebalance", lambda: rebalance(plugin.policy, event))

    def _try(self, time: int, what: str, change: Callable[[], object]) -> None:
        try:
            change()
        except ResmgrError as error:
            self._differences.compare(time, "node", what, ("accepted", error))

    def _call(self, entry: Called, request: Message) -> None:
        self._requests += 1
        for container in containers_in(request):
            self._titles.setdefault(container.id, _title(request, container))
        request = self._without_unplaced(request)
        about = [one.id for one in containers_in(request)]
        if entry.method != "Synchronize" and self._unplaced.intersection(about):
            return  # the replay refused its creation
        reply = self._plugin.answer(entry.method, request)
        self._replies[entry.number] = request, reply

    def _without_unplaced(self, request: Message) -> Message:
        """Remove containers that would not run from the list of a request."""
        if "containers" not in request.DESCRIPTOR.fields_by_name or not self._unplaced:
            return request
        changed: Any = type(request)()
        changed.CopyFrom(request)
        kept = [one for one in changed.containers if one.id not in self._unplaced]
        del changed.containers[:]
        changed.containers.extend(kept)
        return changed  # type: ignore[no-any-return] # it is of the class of request

    def _compare_answer(self, entry: Answered) -> None:
        request, reply = self._replies.pop(entry.number, (None, None))
        if request is None or reply is None:
            return
        created = ""
        if entry.method == "CreateContainer":
            created = next(one.id for one in containers_in(request))
        title = _request_title(request)
        # In a dry run, replies have no errors.
        then_why = entry.why or self._refusals.get(entry.number, "")
        pair = then_why, reply.why or self._plugin.refusal
        if created and pair[1] and not pair[0]:
            self._unplaced.add(created)
        # A sentence with other numbers is no difference.
        if entry.method != "Configure" and not all(pair):
            self._differences.compare(entry.time, title, REFUSED, pair)
        if not (entry.code or reply.code):
            then = sent_values_in(entry.body, created)
            self._suspect(entry.time, then, sent_values_in(reply.body, created))

    def _suspect(
        self, time: int, then: Mapping[str, SentValues], now: Mapping[str, SentValues]
    ) -> None:
        for key in {**then, **now}:
            pair = str(then.get(key, NOTHING)), str(now.get(key, NOTHING))
            if pair[0] != pair[1]:
                self._suspects.append(ReplayDifference(time, key, "sent", *pair))

    def _report_suspects(self, explained: Sequence[str]) -> None:
        """Report differing sent values, unless a differing decision explains them."""
        for one in self._suspects:
            if one.title not in explained:
                title = self._titles.get(one.title, one.title)
                pair = one.recorded, one.now
                self._differences.compare(one.time, title, one.what, pair)
        self._suspects.clear()

    def _compare_decision(self, entry: Decided) -> None:
        if entry.updates or entry.event in _WITHOUT_REQUEST:
            now_sent = _pins(self._plugin.updates.get(entry.event, ()))
            self._suspect(entry.time, _pins(entry.updates), now_sent)
        explained = []
        for reason in entry.reasons:
            if reason.container in self._unplaced:
                continue
            self._decisions += 1
            now = self._plugin.reasons.get(reason.container)
            if self._compare_reasons(entry.time, reason, now):
                explained.append(reason.container)
        self._report_suspects(explained)

    def _compare_reasons(self, time: int, then: Reason, now: Reason | None) -> bool:
        title = then.title or self._titles.get(then.container, then.container)
        differs = False
        for what in ("cpus", "mems", "pool"):
            pair = getattr(then, what), "" if now is None else getattr(now, what)
            differs |= self._differences.compare(time, title, what, pair)
        return differs


def _pins(updates: Iterable[PinUpdate]) -> dict[str, SentValues]:
    return {
        one.container: SentValues(str(one.pin.cpus), str(one.pin.mems), one.pin.shares)
        for one in updates
    }


def _refusals(entries: Sequence[Entry]) -> Iterator[tuple[int, str]]:
    """Yield the request of each refusal, which is recorded after the reply."""
    last = 0
    for entry in entries:
        if isinstance(entry, Answered) and entry.is_ours:
            last = entry.number
        elif isinstance(entry, RecordedRefusal):
            yield last, entry.why


def _title(request: Any, container: ContainerMessage) -> str:
    pods = request.pods if hasattr(request, "pods") else [request.pod]
    for pod in pods:
        if pod.id in ("", container.pod_sandbox_id) or len(pods) == 1:
            return f"{pod.namespace}/{pod.name}/{container.name or container.id}"
    return str(container.name or container.id)


def _request_title(request: Any) -> str:
    for container in containers_in(request):
        if not hasattr(request, "containers"):
            return _title(request, container)
    if hasattr(request, "pod"):
        return f"{request.pod.namespace}/{request.pod.name}"
    return "node"
