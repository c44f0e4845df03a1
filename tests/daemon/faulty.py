"""The parts of a daemon that make an unexpected host follow."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.daemon.parts import Daemon, Reconcilers
from tests.control.daemon_parts import Parts

WHY = "nothing is applied since a fault, ZeroDivisionError: by chance"


class Faulty:
    """A host, or a state directory, whose files are a fault of ours."""

    def read(self, path: str) -> str | None:
        """Raise; but for what is looked up before the first round."""
        if "cgroup" in path:
            return None
        raise ZeroDivisionError("by chance")

    def names(self, _: str) -> tuple[str, ...]:
        """Report no file."""
        return ()


def faulty_daemon(parts: Parts, state: Any, reconcilers: Reconcilers) -> Daemon:
    """Make one; it has a faulty host."""
    options = Namespace(
        verify_interval=0.0, verify_repair="no", dry_run=True, kubelet_dir=""
    )
    observers = DaemonObservers(counts=False, traces=False)
    observers.history = parts.history
    host: Any = Faulty()
    machine = parts.policy.machine
    daemon = Daemon(options, host, {}, machine, state, observers)
    daemon.reconcilers = reconcilers
    configuration: Any = Namespace(policy=parts.policy)
    daemon.configuration = configuration
    return daemon
