"""The command: ``nri-resmgr``, ``python -m nri_resmgr``, and what a runtime starts."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, on the process' arguments by default; return its status."""
    # Nothing that imports make is garbage. The daemon collects again when it serves;
    # other commands end before it would matter.
    gc.disable()
    _import_asyncio_without_ssl()
    from nri_resmgr.cli.main import main as command

    return command(arguments)


def _import_asyncio_without_ssl() -> None:
    """Save a seventh of the daemon's memory.

    asyncio imports ssl where it can, for transports that a unix socket never uses;
    it does without where it cannot. Whoever imports ssl later gets it.
    """
    sys.modules["ssl"] = None  # type: ignore[assignment] # how import is told "no"
    import asyncio  # noqa: F401 - for the modules that it leaves in sys.modules

    del sys.modules["ssl"]


if __name__ == "__main__":
    sys.exit(main())
