"""What the daemon goes by where it is told nothing else."""

from __future__ import annotations

from typing import Final

DEFAULT_NAME: Final = "resource-policy"
DEFAULT_INDEX: Final = "90"  # after plugins that change what a container asks for

DEFAULT_RUN_DIR: Final = "/run/nri-resmgr"
DEFAULT_STATE_DIR: Final = "/var/lib/nri-resmgr"
CHECKPOINT_NAME: Final = "policy.checkpoint"  # in the state directory
DEFAULT_CONTROL_SOCKET: Final = "/run/nri-resmgr/control.sock"

# The kubelet's managers write every ten seconds: what they do shows soon enough, and
# looking takes less than a thousandth of a CPU with 500 containers.
DEFAULT_VERIFY_INTERVAL: Final = 30.0  # seconds
