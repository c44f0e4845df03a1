"""CRI-O's isolation annotations: checks, quotas and environment variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nri_resmgr.app.annotations import BadAnnotation
from nri_resmgr.app.annotations.reading import CRI_O
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.classes.isolation.host import housekeeping_cpus
from nri_resmgr.classes.isolation.requests import IrqBalancing, IsolationRequest
from nri_resmgr.log import Logger
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet

if TYPE_CHECKING:  # see `ClassHosts`
    from nri_resmgr.app.classes.governors import Governors

log = Logger(__name__)

# The names that CRI-O uses: workloads read them.
HOUSEKEEPING_ENV: Final = "OPENSHIFT_HOUSEKEEPING_CPUS"
ISOLATED_ENV: Final = "OPENSHIFT_ISOLATED_CPUS"
SHARED_ENV: Final = "OPENSHIFT_SHARED_CPUS"

_UNLIMITED: Final = -1


class IsolationSetter(ClassSetter):
    """Removes quotas of containers with exclusive CPUs, and sets variables for them.

    The host's files follow in `nri_resmgr.app.host_settings.settings`.
    """

    annotations = frozenset((CRI_O,))

    def __init__(
        self,
        policy: ViewedPolicy[KnowsContainers],
        machine: Machine,
        governors: Governors | None,
        *,
        is_allowed: bool,
    ) -> None:
        self._policy = policy
        self._machine = machine
        self._governors = governors
        self._is_allowed = is_allowed
        self._is_logged = False

    def check(self, new: NewContainer) -> None:
        """Refuse unreadable values, and settings that exclude each other."""
        request = new.spec.preferences.isolation
        if request is None:
            return
        if not self._is_allowed:
            if not self._is_logged:
                self._is_logged = True
                why = "spec.isolationAnnotations is off"
                log.warning("isolation.not-allowed", title=new.spec.title, why=why)
            return
        for mistake in request.mistakes:
            raise _refusal(new, mistake.key, mistake.why)
        if request.shared and request.unbalanced:
            why = "shared CPUs are balanced; to help, remove cpu-load-balancing"
            raise _refusal(new, "cpu-shared.crio.io", why)

    def check_placement(self, new: NewContainer, decision: PolicyDecision) -> None:
        """Refuse a governor that the CPUs lack, and shared CPUs if there are none."""
        request = self._request(new)
        if request is None:
            return
        exclusive = self._exclusive_cpus(new, decision)
        if not exclusive:
            why = "it has no exclusive CPUs"
            log.warning(
                "isolation.annotation-ineffective", title=new.spec.title, why=why
            )
            return
        if request.governor:
            self._check_governor(new, request.governor, exclusive)
        if request.shared and decision.pin.cpus <= exclusive:
            why = "there are no shared CPUs beside its exclusive ones"
            raise _refusal(new, "cpu-shared.crio.io", why)

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: PolicyDecision,
    ) -> ContainerAdjustment:
        """Remove the quota, and set variables with the CPUs for each purpose."""
        request = self._request(new)
        exclusive = self._exclusive_cpus(new, decision) if request else NO_CPUS
        if request is None or not exclusive:
            return adjustment
        result = adjustment
        if _is_unlimited(request):
            result = result.set_cpu_quota(_UNLIMITED)
        if request.irq is IrqBalancing.HOUSEKEEPING:
            cpus = housekeeping_cpus(exclusive, self._machine)
            result = result.set_env(HOUSEKEEPING_ENV, str(cpus))
        if request.shared:
            shared = str(decision.pin.cpus - exclusive)
            result = result.set_env(ISOLATED_ENV, str(exclusive))
            result = result.set_env(SHARED_ENV, shared)
        return result

    def update(
        self,
        update: ContainerUpdate,
        new: NewContainer,
        decision: PolicyDecision,
    ) -> ContainerUpdate:
        """Remove the quota that the kubelet sets again with each resize."""
        request = self._request(new)
        if request is None or not _is_unlimited(request):
            return update
        exclusive = self._exclusive_cpus(new, decision)
        return update.set_cpu_quota(_UNLIMITED) if exclusive else update

    def _request(self, new: NewContainer) -> IsolationRequest | None:
        return new.spec.preferences.isolation if self._is_allowed else None

    def _exclusive_cpus(self, new: NewContainer, decision: PolicyDecision) -> CpuSet:
        isolated = self._policy.host_use(decision.state).isolated
        found = (one.cpus for one in isolated if one.container == new.spec.id)
        return next(found, NO_CPUS)

    def _check_governor(self, new: NewContainer, governor: str, cpus: CpuSet) -> None:
        if self._governors is None:
            return
        for cpu in cpus:
            known = self._governors.of(cpu)
            if governor not in known:
                available = " ".join(known) or "none"
                why = f"CPU {cpu} has no governor {governor}; available: {available}"
                raise _refusal(new, "cpu-freq-governor.crio.io", why)


def _is_unlimited(request: IsolationRequest) -> bool:
    return request.unlimited or request.shared


def _refusal(new: NewContainer, key: str, why: str) -> BadAnnotation:
    """Return the error that refuses a container for an annotation."""
    pod, name = f"{new.pod.namespace}/{new.pod.name}", new.spec.name
    written = f"{key}/{name}"
    found = written if written in new.pod.annotations else key
    value = new.pod.annotations.get(found, "")
    return BadAnnotation(pod, name, found, value, why)
