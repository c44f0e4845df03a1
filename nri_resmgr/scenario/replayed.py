"""The plugin during a replay: at recorded times, without a socket."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.plugin.status_codes import status_of
from nri_resmgr.checkpoint.decode import Checkpoint, read_checkpoint
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import PinUpdate, Policy, Reason
from nri_resmgr.policy.events import Event
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.recordings.entries import Answered, Header
from nri_resmgr.scenario.clock import Clock
from nri_resmgr.scenario.timeline import Timeline, places_of
from nri_resmgr.stub.errors import CallFailed, UnsolicitedUpdatesUnsafe
from nri_resmgr.stub.handlers import Handlers
from nri_resmgr.stub.model import Container
from nri_resmgr.stub.replies import UpdatesResponse, synchronize_response
from nri_resmgr.stub.routes import ROUTES, EventRoute, route_of_state_change
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.stub.synchronize import SynchronizeChunks, split_updates
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint, complete_hints
from nri_resmgr.values import InputError, ResmgrError

Hints = Mapping[str, tuple[Hint, ...]]


class ReplayedReply(msgspec.Struct, frozen=True):
    """The reply to a request.

    Attributes:
        body: The message; None for an error.
        code: The ttRPC status of an error; 0 for none.
    """

    body: Message | None = None
    code: int = 0
    why: str = ""


class ReplayedPlugin(DecisionObserver):
    """Passes recorded requests to the real plugin.

    The plugin's own calls get *answers*, those of the recorded runtime, in order.

    Attributes:
        clock: Set to the time of each request.
        reasons: The reason of the last decision on each container.
        refusal: Why the last request was refused; empty if it was not.
        updates: Updates of other containers by the last event of each class.
    """

    def __init__(
        self,
        header: Header,
        machine: Machine,
        hints: Hints,
        answers: Iterable[Answered],
    ) -> None:
        self.clock = Clock(header.time)
        self.reasons: dict[str, Reason] = {}
        self.refusal = ""
        self.updates: dict[str, tuple[PinUpdate, ...]] = {}
        self._header, self._hints = header, hints
        self._machine = machine
        self._answers = deque(answers)
        self._snapshot = SynchronizeChunks()
        self._runtime = RuntimeInfo()
        self._policy: ResourcePolicy | None = None
        self._handlers: Handlers | None = None
        self._noted: KnowsContainers | None = None

    @property
    def policy(self) -> ResourcePolicy:
        """The plugin, with the default configuration if it has none."""
        if self._policy is None:
            self.configure("")
        assert self._policy is not None  # noqa: S101 - just made
        return self._policy

    def configure(self, text: str) -> None:
        """Apply a configuration.

        Raises:
            ResmgrError: The text has a mistake, or does not fit the machine.
        """
        # The daemon accepted it, whatever it took from containers.
        config = msgspec.structs.replace(parse_config(text), allow_loss=True)
        if self._policy is not None:
            if config != self._policy.config:
                reconfigure(self._policy, config)
            return
        plugin_options = PluginOptions(
            dry_run=self._header.dry_run, timers=self.clock.timers, hints=self
        )
        self._policy = ResourcePolicy(
            self._machine, config, plugin_options=plugin_options, observers=(self,)
        )
        self._policy.use_update_sender(UpdateSender(self))
        self._handlers = Handlers.of(self._policy)

    def add_to(self, timeline: Timeline) -> None:
        """Note where all containers are now; nothing before a policy is there."""
        policy = self._policy
        if policy is None or policy.state is self._noted:
            return
        self._noted = policy.state
        timeline.know(policy.host_machine)
        timeline.note(self.clock.now, places_of(policy.policy, policy.state))

    def restore(self, text: str) -> None:
        """Restore the checkpoint of an earlier process; ignore an invalid one."""
        with contextlib.suppress(InputError):
            saved = read_checkpoint(text)
            self.policy.engine.restore_from(lambda policy: _state_for(policy, saved))

    def answer(self, method: str, request: Message) -> ReplayedReply:
        """Answer a request as the stub would."""
        self.refusal = ""
        try:
            return ReplayedReply(self._answer(method, request))
        except Exception as error:  # noqa: BLE001 - the stub answers these, too
            return ReplayedReply(None, *status_of(error))

    async def settle(self) -> None:
        """Wait until all other tasks have ended."""
        while True:
            await asyncio.sleep(0)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if not others:
                return
            await asyncio.wait(others)

    @property
    def may_call(self) -> bool:
        """True if the recorded runtime took calls."""
        match self._header.unsolicited_updates:
            case "always":
                return True
            case "never":
                return False
        return self._runtime.is_safe_to_call

    @property
    def quiet_seconds(self) -> float:
        """Without end: a replay does not wait for its time."""
        return math.inf

    async def update_containers(
        self, _updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """Take updates; see `nri_resmgr.stub.update_sender.ContainerUpdater`."""
        if not self.may_call:
            raise UnsolicitedUpdatesUnsafe(self._runtime.level, self._runtime.name)
        if self._answers:
            answered = self._answers.popleft()
            # A call without an answer was repeated, or a new session sent all values.
            if answered.code > 0:
                raise CallFailed(answered.method, answered.code, answered.why)
        return ()

    def of(
        self, container: Container, machine: Machine, *_: object, **__: object
    ) -> tuple[Hint, ...]:
        """Return the hints of a container; see `PluginOptions.hints`."""
        return complete_hints(self._hints.get(container.id, ()), machine)

    def pods_come(self) -> None:
        """Do nothing: hints are given."""

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Keep reasons and updates."""
        self.updates[type(event).__name__] = decision.updates
        self.reasons |= {one.container: one for one in decision.reasons}

    def refused(self, _subject: Subject, error: ResmgrError) -> None:
        """Keep the message: in a dry run, no reply has it."""
        self.refusal = str(error)

    def _answer(self, method: str, request: Any) -> Message:
        match method:
            case "Configure":
                self._runtime = RuntimeInfo.of(request)
                # The configuration in force is an entry of its own.
                self.policy.configure(Configuration("", self._runtime))
            case "Synchronize":
                return self._synchronize(request)
            case "StateChange":
                if (route := route_of_state_change(request.event)) is not None:
                    return self._event(route, request)
            case _ if method in ROUTES:
                return self._event(ROUTES[method], request)
        return PLUGIN_METHODS[method].response()

    def _synchronize(self, request: Any) -> Message:
        self._snapshot.add(request)
        if request.more:
            response: Message = PLUGIN_METHODS["Synchronize"].response(more=True)
            return response
        answer = synchronize_response(self.policy.synchronize(*self._snapshot.take()))
        split_updates(answer)
        return answer

    def _event(self, route: EventRoute, request: Any) -> Message:
        policy, name = self.policy, route.handler
        handler = (
            self._handlers.by_name.get(name) if policy and self._handlers else None
        )
        result = handler(*route.arguments(request)) if handler else None
        response: Message | None = route.encode(result, request)
        updates = policy.updates
        if isinstance(response, UpdatesResponse):
            updates.attach(response, busy=request.container.id)
        if route.ends:
            updates.pending.forget(request.container.id)
        return response or PLUGIN_METHODS[route.method].response()


def _state_for(
    policy: Policy[KnowsContainers], saved: Checkpoint
) -> KnowsContainers | None:
    if saved.kind == policy.kind:
        with contextlib.suppress(InputError):
            return saved.state_for(policy).state
    return None
