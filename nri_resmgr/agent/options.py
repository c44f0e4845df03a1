"""Settings of an agent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nri_resmgr.agent.configuration import ConfigScope


class AgentOptions(msgspec.Struct, frozen=True):
    """Settings of an agent.

    Attributes:
        scope: The objects that may configure the node.
        spool: The folder that the daemon follows.
        control_socket: The daemon's control socket.
        http_endpoint: Address of metrics and health; empty for none.
        health_endpoint: Address of health alone; likewise.
        startup_taint: Key of the taint that is removed from the Node once its daemon
            serves the runtime; empty for none.
    """

    scope: ConfigScope
    spool: Path
    control_socket: str
    http_endpoint: str = ""
    health_endpoint: str = ""
    startup_taint: str = ""

    @property
    def node(self) -> str:
        """Name of the node."""
        return self.scope.node
