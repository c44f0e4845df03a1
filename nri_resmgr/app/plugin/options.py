"""How the plugin behaves on its node, whatever the policy is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec


class PluginOptions(msgspec.Struct, frozen=True):
    """What the command line says besides the policy's configuration.

    Attributes:
        dry_run: Decide and report, but adjust nothing.
        run_dir: Where containers' files of what they have are; empty for none.
        testing: Whether annotations may hand in topology hints.
        alarms: Makes what hands events back later, given whom to hand them; None
            for `nri_resmgr.app.plugin.timers.Timers`. Who lives in another time has his own.
        hints: Finds where the things sit that containers use, as
            `nri_resmgr.app.plugin.hints.ContainerHints` does; None for what the host tells.
    """

    dry_run: bool = False
    run_dir: str = ""
    testing: bool = False
    timers: Callable[[Callable[[Any], None]], Any] | None = None
    hints: Any = None


DEFAULT_OPTIONS: Final = PluginOptions()
"""Of a plugin that is told nothing else."""
