"""Imports of what a pod's annotations may need, before a pod has any.

The configuration does not say which annotations pods will have, and a start is not to
wait for what most pods do without. So it is imported in a thread once the runtime has
synchronized the plugin: in a request it would be tens of milliseconds, and hundreds on
a busy node, for which the runtime waits.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Final

from nri_resmgr.app.background.threads import in_thread

LATE: Final = (
    "nri_resmgr.app.annotations.interpret",
    "nri_resmgr.app.annotations.unobeyed",
    "nri_resmgr.app.requests.webhook",
    "nri_resmgr.app.classes.memory.requests",
    "difflib",  # of messages about unknown keys
    "nri_resmgr.app.classes.limits.setter",
)
"""Modules that requests import by themselves until then; the likeliest first."""


async def import_late() -> None:
    """Import all of them, one after the other."""
    for name in LATE:
        await in_thread(partial(import_module, name))
