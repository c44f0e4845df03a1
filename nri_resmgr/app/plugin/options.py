"""Options of the plugin on its node, independent of the policy."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final, Protocol, TypeAlias

import msgspec

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
        strict: bool,
    ) -> tuple[Hint, ...]:
        """Find the hints of a container, one per device or mount."""


MakeTimers: TypeAlias = Callable[[Callable[[Event], None]], EventTimers]
"""Makes timers, given what they call with each event that is due."""


class PluginOptions(msgspec.Struct, frozen=True):
    """Options of the command line besides the policy's configuration.

    Attributes:
        dry_run: Decide and report, but adjust nothing.
        run_dir: The folder of the files published to containers; empty for none.
        testing: Whether annotations may pass topology hints.
        timers: Replaces the default timers where time is simulated.
        hints: Replaces the lookup of hints on the host where that is simulated.
    """

    dry_run: bool = False
    run_dir: str = ""
    testing: bool = False
    timers: MakeTimers | None = None
    hints: HintFinder | None = None


DEFAULT_OPTIONS: Final = PluginOptions()
