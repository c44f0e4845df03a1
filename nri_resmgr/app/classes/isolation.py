"""CRI-O's isolation annotations, as far as the runtime has to be told of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from nri_resmgr.app.annotations import BadAnnotation
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.classes.isolation.requests import IrqBalancing, IsolationRequest
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet

log = Logger(__name__)

# The names of CRI-O: workloads look for them.
HOUSEKEEPING_ENV: Final = "OPENSHIFT_HOUSEKEEPING_CPUS"
ISOLATED_ENV: Final = "OPENSHIFT_ISOLATED_CPUS"
SHARED_ENV: Final = "OPENSHIFT_SHARED_CPUS"

_UNLIMITED: Final = -1


class IsolationSetter(ClassSetter):
    """Takes quotas away and tells containers of their CPUs, if they have any.

    What is set on the host follows in `nri_resmgr.app.host_settings.settings`.

    Args:
        policy: Knows who has CPUs to himself.
        machine: Where these are.
        tree: The host; None where there is nothing to look up.
        may: Whether the configuration allows all this.
    """

    def __init__(
        self,
        policy: ViewedPolicy[Any],
        machine: Machine,
        tree: Tree | None,
        *,
        may: bool,
    ) -> None:
        self._policy = policy
        self._machine = machine
        self._tree = tree
        self._may = may
        self._is_told = False

    def concerns(self, new: NewContainer) -> bool:
        """Tell whether it asks for any of this."""
        return new.spec.preferences.isolation is not None

    def check(self, new: NewContainer) -> None:
        """Refuse what cannot be read, and what cannot be had together."""
        request = new.spec.preferences.isolation
        if request is None:
            return
        if not self._may:
            if not self._is_told:
                self._is_told = True
                why = "spec.isolationAnnotations is off"
                log.warning("isolation.not-allowed", title=new.spec.title, why=why)
            return
        for mistake in request.mistakes:
            raise _refusal(new, mistake.key, mistake.why)
        if request.shared and request.unbalanced:
            why = "shared CPUs are balanced; to help, take cpu-load-balancing away"
            raise _refusal(new, "cpu-shared.crio.io", why)

    def check_placement(self, new: NewContainer, decision: Decision[Any]) -> None:
        """Refuse a governor that there is not, and shared CPUs that there are not."""
        request = self._request(new)
        if request is None:
            return
        own = self._own_cpus(new, decision)
        if not own:
            why = "it has no whole CPUs to itself"
            log.warning(
                "isolation.annotation-ineffective", title=new.spec.title, why=why
            )
            return
        if request.governor:
            self._check_governor(new, request.governor, own)
        if request.shared and decision.pin.cpus <= own:
            why = "there are no shared CPUs beside its own"
            raise _refusal(new, "cpu-shared.crio.io", why)

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: Decision[Any],
    ) -> ContainerAdjustment:
        """Take the quota away, and say which CPUs are for what."""
        request = self._request(new)
        own = self._own_cpus(new, decision) if request else NO_CPUS
        if request is None or not own:
            return adjustment
        told = adjustment
        if _is_unlimited(request):
            told = told.set_cpu_quota(_UNLIMITED)
        if request.irq is IrqBalancing.HOUSEKEEPING:
            from nri_resmgr.classes.isolation.host import housekeeping_cpus  # seldom

            cpus = housekeeping_cpus(own, self._machine)
            told = told.set_env(HOUSEKEEPING_ENV, str(cpus))
        if request.shared:
            shared = str(decision.pin.cpus - own)
            told = told.set_env(ISOLATED_ENV, str(own)).set_env(SHARED_ENV, shared)
        return told

    def update(
        self, update: ContainerUpdate, resized: NewContainer, decision: Decision[Any]
    ) -> ContainerUpdate:
        """Take the quota away that the kubelet gives back with each resize."""
        request = self._request(resized)
        if request is None or not _is_unlimited(request):
            return update
        own = self._own_cpus(resized, decision)
        return update.set_cpu_quota(_UNLIMITED) if own else update

    @cached_property
    def _governors(self) -> Mapping[int, tuple[str, ...]]:
        from nri_resmgr.host.governors import read_governors  # seldom

        return {} if self._tree is None else read_governors(self._tree)

    def _request(self, new: NewContainer) -> IsolationRequest | None:
        return new.spec.preferences.isolation if self._may else None

    def _own_cpus(self, new: NewContainer, decision: Decision[Any]) -> CpuSet:
        isolated = self._policy.host_use(decision.state).isolated
        found = (one.cpus for one in isolated if one.container == new.spec.id)
        return next(found, NO_CPUS)

    def _check_governor(self, new: NewContainer, governor: str, cpus: CpuSet) -> None:
        if self._tree is None:
            return
        for cpu in cpus:
            known = self._governors.get(cpu, ())
            if governor not in known:
                there_is = (
                    f"there is {' '.join(known)}" if known else "nor any other one"
                )
                why = f"CPU {cpu} has no governor {governor}, {there_is}"
                raise _refusal(new, "cpu-freq-governor.crio.io", why)


def _is_unlimited(request: IsolationRequest) -> bool:
    return request.unlimited or request.shared


def _refusal(new: NewContainer, key: str, why: str) -> BadAnnotation:
    """Make the refusal of a container for an annotation.

    Args:
        new: The container.
        key: As it is written, or without the name of the container.
        why: What is wrong with it.
    """
    pod, name = f"{new.pod.namespace}/{new.pod.name}", new.spec.name
    written = f"{key}/{name}"
    found = written if written in new.pod.annotations else key
    value = new.pod.annotations.get(found, "")
    return BadAnnotation(pod, name, found, value, why)
