"""Imports of modules that can do without TLS, in a process that does not need it.

The webhook apart, all our sockets are local. `ssl` and its libraries would be an eighth
of the daemon's memory and a tenth of its start. Only tracing may need TLS: it imports
`ssl`.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Final

# Threads import late modules.
_LOCK: Final = threading.Lock()


def import_without_tls(name: str) -> ModuleType:
    """Import a module as on a Python that was built without OpenSSL.

    Source:
        None in `sys.modules` makes an import fail: the Python language reference, "The
        import system", 5.3.1. asyncio and grpclib support the absence of `ssl`.
    """
    with _LOCK:
        if "ssl" in sys.modules:
            return import_module(name)
        sys.modules["ssl"] = None  # type: ignore[assignment]  # documented, see above
        try:
            return import_module(name)
        finally:
            del sys.modules["ssl"]


def import_with_tls(name: str) -> ModuleType:
    """Import a module that may import `ssl`."""
    with _LOCK:
        return import_module(name)
