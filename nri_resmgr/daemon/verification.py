"""The verification of containers' cgroups as the daemon runs it."""

from __future__ import annotations

from functools import partial

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.observing.sessions import SessionState
from nri_resmgr.app.running.by_cgroup import ByCgroup
from nri_resmgr.app.running.overwrites import Overwrites
from nri_resmgr.app.running.series import PinWrite
from nri_resmgr.app.verification.drift import Finding, Verdict, differences_of
from nri_resmgr.app.verification.inspection import Inspection
from nri_resmgr.app.verification.report import DriftReport
from nri_resmgr.app.verification.verifier import Verification, VerificationOptions
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.cgroups.containers import EffectiveResources
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT, read_cgroup_layout
from nri_resmgr.host.cgroups.writer import WriteResult
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Pin
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
    """Verify until cancelled; return at once where no cgroups are mounted.

    Call it again after an exception.
    """
    observers = daemon.observers
    if daemon.verification is None:
        if await in_thread(lambda: read_cgroup_layout(daemon.tree)) is None:
            path = f"{daemon.tree.root}{CGROUP_ROOT}"
            log.warning("verification.off", why=f"no cgroups are mounted at {path}")
            return
        daemon.verification = _verification_of(daemon)
        observers.add(_Waker(daemon.verification))
    await daemon.verification.run(
        lambda: observers.sessions.state is SessionState.SYNCHRONIZED
    )


def _verification_of(daemon: Daemon) -> Verification:
    options, observers = daemon.options, daemon.observers
    when = VerificationOptions(options.verify_interval, options.verify_repair == "yes")
    count = observers.metrics.drift if observers.metrics else None
    report = DriftReport(observers.history, count, lambda: daemon.kubelet)
    verification = Verification(
        daemon.policy, Inspection(daemon.tree), observers.history, report, when
    )
    if isinstance(delivery := daemon.policy.delivery, ByCgroup):
        _follow(delivery.overwrites, daemon, report, verification)
    return verification


def _follow(
    overwrites: Overwrites,
    daemon: Daemon,
    report: DriftReport,
    verification: Verification,
) -> None:
    """Report what is written again without a round."""
    overwrites.on_found = partial(_report_overwrite, daemon, report)
    overwrites.on_contested = partial(_report_contested, daemon, report, verification)
    verification.is_contested = overwrites.is_contested


def _report_contested(
    daemon: Daemon, report: DriftReport, verification: Verification, container: str
) -> None:
    entry = daemon.policy.state.ledger.entries.get(container)
    if entry is not None:
        report.contested(container, entry.spec.title)
        verification.wake()  # for its verdict


def _report_overwrite(
    daemon: Daemon, report: DriftReport, write: PinWrite, result: WriteResult
) -> None:
    """Report drift that was repaired at once, without a round."""
    entry = daemon.policy.state.ledger.entries.get(write.cgroup.id)
    if entry is None or result.before is None:
        return
    # Without the weight: of v2's not every value is known.
    found = EffectiveResources(result.before.cpus, folder=result.folder)
    if differences := differences_of(Pin(cpus=write.pin.cpus), found):
        finding = Finding(Verdict.DRIFTED, differences, result.folder)
        report.found(write.cgroup.id, entry.spec.title, finding)
