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
    from nri_resmgr.cli.main import main as command

    return command(arguments)


if __name__ == "__main__":
    sys.exit(main())
