"""Entry point of ``nri-resmgr`` and ``python -m nri_resmgr``; runtimes launch it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

# `nri_resmgr.values.exit_status.FAILED`, which may not be importable.
_FAILED: Final = 1
_INTERRUPTED: Final = 130  # 128 + SIGINT, as in shells
_IN_PODS: Final = ("agent", "webhook", "webhook-certificates")
"""Commands that are the first process of their container."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, on the process' arguments by default; return its status."""
    # Imports leave no garbage. The daemon enables collection again when it serves,
    # other commands before they begin: some run for years.
    gc.disable()
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in _IN_PODS:
        _end_in_order_during_imports()
    elif not words or words[0] == "run" or words[0].startswith("-"):
        _ignore_requests_during_imports()
    try:
        # If its library cannot be mapped, `datetime` silently is another module, and
        # msgspec crashes at the first value that it converts.
        import _datetime  # type: ignore[import-not-found]  # noqa: F401 - typeshed has no stub of it

        # Both after the above.
        from nri_resmgr.cli.main import main as command
        from nri_resmgr.cli.streams import make_streams_printable

        make_streams_printable()
        return command(arguments)
    except (OSError, ImportError, MemoryError, SystemError) as error:
        # The system has refused a file or memory, perhaps of a module of ours. A
        # traceback would be about the import system. For SystemError see
        # `nri_resmgr.app.background.threads.NO_MEMORY`, which cannot be imported then.
        print(f"nri-resmgr: {type(error).__name__}: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:  # perhaps during an import
        return _INTERRUPTED


def _end_in_order_during_imports() -> None:
    """Let SIGTERM end the process with status 0 before it handles the signal itself.

    In a container it is the first process, to which a signal that nothing handles is
    not delivered at all: the end of its pod would take all the time that is granted.
    Its imports take a second on a busy node, and until they are done there is nothing
    to clean up. Not so the daemon: there a handler would have a file of the host that
    hangs at the start keep the process from its end, and a lost signal only delays it.
    """
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def _ignore_requests_during_imports() -> None:
    """Keep signals that ask the daemon for something from ending it.

    By default they do. There is nothing to reload yet; `nri_resmgr.daemon` handles
    them later, but for SIGUSR2, which has no meaning there.
    """
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
