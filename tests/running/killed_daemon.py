"""``python -m tests.running.killed_daemon FILE run ...``: may kill itself.

The daemon does so between two writes of CPU sets, by the `Trigger` of the file. From
outside, a series of writes is too short to be hit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from nri_resmgr.__main__ import main
from tests.faults.trigger import Trigger


def count_writes(trigger: Trigger) -> None:
    """Make each write of a CPU set a step of *trigger*, before its file is opened."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            writes = flags & os.O_ACCMODE != os.O_RDONLY
            if writes and str(path).endswith("/cpuset.cpus"):
                trigger.step()

    sys.addaudithook(hook)


if __name__ == "__main__":
    count_writes(Trigger(Path(sys.argv[1])))
    sys.exit(main(sys.argv[2:]))
