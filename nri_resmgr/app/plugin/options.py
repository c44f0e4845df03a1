"""Options of the plugin on its node, independent of the policy."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final, Protocol, TypeAlias

import msgspec

from nri_resmgr.app.configuration.acceptance import Rules
from nri_resmgr.app.configuration.status import Document
from nri_resmgr.app.plugin.container_files import DESTINATION
from nri_resmgr.app.plugin.cpu_claims import DEFAULT_DRIVERS
from nri_resmgr.app.running.vm_pods import DEFAULT_VM_HANDLERS
from nri_resmgr.kubelet.pod_resources import PodResources
from nri_resmgr.kubelet.sockets import WhyNoDevices
from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import Event
from nri_resmgr.stub.model import Container as NriContainer
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hint_options import HintOptions
from nri_resmgr.topology.hints import Hint


class EventTimers(Protocol):
    """Timers of a policy; `nri_resmgr.app.plugin.timers.Timers` are the default."""

    def set(self, timers: Iterable[Timer]) -> None:
        """Add timers; one for the same event is replaced."""

    def keep_only(self, containers: Container[str]) -> None:
        """Cancel the timers of containers that are gone."""


class HintFinder(Protocol):
    """Finds hints; `nri_resmgr.app.plugin.hints.ContainerHints` is the default."""

    def of(
        self,
        container: NriContainer,
        machine: Machine,
        options: HintOptions,
        /,
        *,
        pod_resources: tuple[Hint, ...],
        strict: bool,
    ) -> tuple[Hint, ...]:
        """Find the hints of a container, one per device or mount."""

    def pods_come(self) -> None:
        """Note that volumes may be mounted and devices allocated for new pods."""


MakeTimers: TypeAlias = Callable[[Callable[[Event], None]], EventTimers]
"""Makes timers, given what they call with each event that is due."""


class PluginOptions(msgspec.Struct, frozen=True):
    """Options of the command line besides the policy's configuration.

    Attributes:
        dry_run: Decide and report, but adjust nothing.
        run_dir: The folder of the files published to containers; empty for none.
        mpolset: The path of the program that sets memory policies where the runtime
            cannot. None where no container runs, as in a simulation: nothing is
            looked up then.
        resource_path: The folder in a container that has these files.
        testing: Whether annotations may pass topology hints.
        timers: Replaces the default timers where time is simulated.
        hints: Replaces the lookup of hints on the host where that is simulated.
        pod_resources: What the kubelet has answered; None where it is not asked.
        why_no_devices: Called for configurations that name devices of containers.
        cpu_drivers: Names of DRA drivers of CPUs whose claims are respected.
        vm_handlers: Patterns of the runtime handlers of virtual machines.
        document: The document of the configuration to begin with; None for the built-in
            default, or a file if there is a configuration.
        rules: Which documents are accepted later.
    """

    dry_run: bool = False
    run_dir: str = ""
    mpolset: str | None = None
    testing: bool = False
    timers: MakeTimers | None = None
    hints: HintFinder | None = None
    resource_path: str = DESTINATION
    pod_resources: PodResources | None = None
    why_no_devices: WhyNoDevices = str
    cpu_drivers: tuple[str, ...] = DEFAULT_DRIVERS
    vm_handlers: tuple[str, ...] = DEFAULT_VM_HANDLERS
    document: Document | None = None
    rules: Rules = Rules()


DEFAULT_OPTIONS: Final = PluginOptions()
