"""The verification of containers' cgroups as the daemon runs it."""

from __future__ import annotations

from nri_resmgr.app.observing.sessions import SessionState
from nri_resmgr.app.verification.inspection import Inspection
from nri_resmgr.app.verification.report import DriftReport
from nri_resmgr.app.verification.verifier import Verification, VerificationOptions
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT, read_cgroup_layout
from nri_resmgr.log import Logger
from nri_resmgr.stub.observer import Observer

log = Logger(__name__)


class _Waker(Observer):
    """Begins a round as soon as the runtime has listed its containers."""

    def __init__(self, verification: Verification) -> None:
        self._verification = verification

    def synchronized(self) -> None:
        """See `Observer.synchronized`."""
        self._verification.wake()


async def verify(daemon: Daemon) -> None:
    """Verify until cancelled; return at once where no cgroups are mounted."""
    if read_cgroup_layout(daemon.tree) is None:
        path = f"{daemon.tree.root}{CGROUP_ROOT}"
        log.warning("verification.off", why=f"no cgroups are mounted at {path}")
        return
    options, observers = daemon.options, daemon.observers
    when = VerificationOptions(options.verify_interval, options.verify_repair == "yes")
    report = DriftReport(observers.history, observers.metrics, lambda: daemon.kubelet)
    inspection = Inspection(daemon.tree)
    verification = Verification(
        daemon.policy, inspection, observers.history, report, when
    )
    daemon.verification = verification
    observers.add(_Waker(verification))
    await verification.run(
        lambda: observers.sessions.state is SessionState.SYNCHRONIZED
    )
