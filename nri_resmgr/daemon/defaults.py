"""What the daemon goes by where it is told nothing else."""

from __future__ import annotations

from typing import Final

DEFAULT_NAME: Final = "resource-policy"
DEFAULT_INDEX: Final = "90"  # after plugins that change what a container asks for

DEFAULT_RUN_DIR: Final = "/run/nri-resmgr"
DEFAULT_STATE_DIR: Final = "/var/lib/nri-resmgr"
DEFAULT_CONTROL_SOCKET: Final = "/run/nri-resmgr/control.sock"

# A look at 500 containers takes 25 ms of a CPU: half a thousandth of one.
DEFAULT_VERIFY_INTERVAL: Final = 60.0  # seconds
