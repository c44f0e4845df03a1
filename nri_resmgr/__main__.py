"""Entry point of ``nri-resmgr`` and ``python -m nri_resmgr``; runtimes launch it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, on the process' arguments by default; return its status."""
    # Imports leave no garbage. The daemon enables collection again when it serves;
    # other commands end before it would matter.
    gc.disable()
    from nri_resmgr.cli.main import main as command  # after gc.disable()

    return command(arguments)


if __name__ == "__main__":
    sys.exit(main())
