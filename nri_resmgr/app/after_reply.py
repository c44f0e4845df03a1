"""What can wait until the runtime has its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVarTuple

Values = TypeVarTuple("Values")


def after_reply(callback: Callable[[*Values], object], *values: *Values) -> None:
    """Call *callback* once the reply is out; at once where nobody waits for one.

    Callbacks keep their order, and come before the event loop looks for the next
    request.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        callback(*values)
    else:
        loop.call_soon(callback, *values)
