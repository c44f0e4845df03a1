"""The plugin of a story: a program whose configuration changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.real_host.plugin_process import PluginProcess


class StagePlugin(Protocol):
    """The methods that a `Stage` calls."""

    @property
    def process(self) -> PluginProcess:
        """The program."""

    @property
    def changes_live(self) -> bool:
        """Whether it keeps its state under another configuration."""

    def configure(self, kind: str, settings: Mapping[str, Any]) -> None:
        """Put a document in force; the first one starts the plugin."""


class Restarted:
    """The daemon, which is killed and started again for each configuration.

    Args:
        socket: Where the runtime listens for plugins.
        log: Where its output goes; its configuration is beside it.
    """

    changes_live = False

    def __init__(self, socket: Path, log: Path) -> None:
        self._config = log.with_suffix(".yaml")
        self.process = PluginProcess.resource_policy(
            socket, log, "--config-file", str(self._config)
        )

    def configure(self, kind: str, settings: Mapping[str, Any]) -> None:
        """Kill the process, and start another with the new document."""
        self.process.kill()
        self._config.write_text(document_of(kind, settings))
        self.process.start()


class Reconfigured(Restarted):
    """The daemon, which notices that its file has changed while containers run."""

    changes_live = True

    def configure(self, kind: str, settings: Mapping[str, Any]) -> None:
        """Write the document, and wait until it is in force."""
        if not self.process.is_up():
            super().configure(kind, settings)
            return
        before = len(self.process.events("node.synchronized"))
        self._config.write_text(document_of(kind, settings))
        self.process.wait_for("node.synchronized", before + 1)


def document_of(kind: str, settings: Mapping[str, Any]) -> str:
    """Write a document; YAML reads JSON."""
    return json.dumps(
        {"apiVersion": "config.nri/v1alpha1", "kind": kind, "spec": settings}
    )
