"""The plugin: NRI events to the policy, its decisions back to the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from nri_resmgr.app.build import build_policy
from nri_resmgr.app.report import report_decision
from nri_resmgr.app.translate import (
    adjustment_of,
    living_specs,
    spec_of,
    updates_of,
)
from nri_resmgr.config import PolicyConfig, TopologyAwareConfig, parse_config
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Decision, PinUpdate, Policy
from nri_resmgr.policy.events import (
    Created,
    Event,
    PodStopped,
    Removed,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.stub.model import Container, LinuxResources, Pod
from nri_resmgr.stub.replies import CreateReply
from nri_resmgr.stub.runtime_info import Configuration
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine

log = Logger(__name__)

Updates = tuple[ContainerUpdate, ...]


class ResourcePolicy:
    """Swap the state, then log, then answer.

    There is no lock: nothing awaits between reading and replacing the state, so
    the event loop already makes each decision atomic. Errors pass through to the
    stub, which asks `nri_resmgr.app.status.status_of` what to tell the runtime.

    Args:
        machine: What the CPUs are taken from.
        config: The operator's own; without one, the text in Configure counts, and
            the built-in default where that is blank.
        dry_run: Decide and report, but adjust nothing.
        tree: The host, whose cgroups a configuration may name.
    """

    def __init__(
        self,
        machine: Machine,
        config: PolicyConfig | None = None,
        *,
        dry_run: bool = False,
        tree: Tree | None = None,
    ) -> None:
        self._machine = machine
        self._tree = tree
        self._own_config = config
        self._dry_run = dry_run
        self._config = config or TopologyAwareConfig()
        self._policy: Policy[Any] = build_policy(self._config, machine, tree)
        self._state: Any = self._policy.start()

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force."""
        return self._config

    @property
    def policy(self) -> Policy[Any]:
        """The policy in force."""
        return self._policy

    @property
    def state(self) -> Any:
        """What the policy knows and has granted; frozen."""
        return self._state

    def configure(self, configuration: Configuration) -> None:
        """Take the configuration that the runtime hands over, if it counts.

        Raises:
            BadSyntax: Its text is not YAML.
            BadSetting: It has a mistake, or does not fit the machine. What was in
                force before still is.
        """
        if self._own_config is None:
            self._adopt(parse_config(configuration.text))
        elif configuration.text.strip():
            log.warning("configuration.ignored", source="runtime", instead="own file")

    def reconfigure(self, config: PolicyConfig) -> Updates:
        """Replace the operator's own configuration while containers run.

        Returns:
            Updates for the runtime, to be sent when it can take them.

        Raises:
            BadSetting: It does not fit the machine; nothing has changed.
        """
        ledger = self._state.ledger
        self._adopt(config)
        self._own_config = config
        specs = (attrs.evolve(e.spec, present=e.told) for e in ledger.entries.values())
        return self._answer(self._handle(Synchronized(tuple(specs))).updates)

    def synchronize(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> Updates:
        """Start from what runs; what was known before only helps to keep it."""
        decision = self._handle(Synchronized(living_specs(pods, containers)))
        return self._answer(decision.updates)

    def create_container(self, pod: Pod, container: Container) -> CreateReply | None:
        """Place a new container; the reply carries its pinning, and the others'."""
        decision = self._handle(Created(spec_of(pod, container)))
        if self._dry_run:
            return None
        return CreateReply(adjustment_of(decision.pin), self._answer(decision.updates))

    def update_container(
        self, pod: Pod, container: Container, resources: LinuxResources
    ) -> Updates:
        """Follow a resize, or assert the pinning against who would change it."""
        decision = self._handle(Updated(spec_of(pod, container, resources)))
        own = (PinUpdate(container.id, decision.pin),) if decision.pin else ()
        return self._answer(own + decision.updates)

    def stop_container(self, _pod: Pod, container: Container) -> Updates:
        """Take back what a container had; the shared pool grows in the reply."""
        return self._answer(self._handle(Stopped(container.id)).updates)

    def remove_container(self, _pod: Pod, container: Container) -> None:
        """Forget a container whose stop nobody told."""
        self._handle(Removed(container.id))

    def stop_pod_sandbox(self, pod: Pod) -> None:
        """Forget what is left of a pod."""
        self._handle(PodStopped(pod.id))

    def _adopt(self, config: PolicyConfig) -> None:
        policy = build_policy(config, self._machine, self._tree)
        if policy.kind != self._policy.kind:
            self._state = policy.start()
        self._config, self._policy = config, policy

    def _handle(self, event: Event) -> Decision[Any]:
        decision = self._policy.decide(self._state, event)
        self._state = decision.state
        report_decision(event, decision, dry_run=self._dry_run)
        return decision

    def _answer(self, updates: Sequence[PinUpdate]) -> Updates:
        return () if self._dry_run else updates_of(updates)
