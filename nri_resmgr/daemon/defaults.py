"""Defaults of the daemon's command line."""

from __future__ import annotations

from typing import Final

DEFAULT_NAME: Final = "resource-policy"
DEFAULT_INDEX: Final = "90"  # after plugins that change resource requests

DEFAULT_RUN_DIR: Final = "/run/nri-resmgr"
DEFAULT_MPOLSET: Final = "/usr/libexec/nri-resmgr/mpolset"
DEFAULT_STATE_DIR: Final = "/var/lib/nri-resmgr"
DEFAULT_CONTROL_SOCKET: Final = "/run/nri-resmgr/control.sock"

# A round over 500 containers takes 25 ms: 0.04 % of a CPU.
DEFAULT_VERIFY_INTERVAL: Final = 60.0  # seconds
