"""The kind of the balloons policy: reads its configuration and builds it."""

from __future__ import annotations

from itertools import combinations
from typing import Final

from nri_resmgr.config import Amount, BadSetting
from nri_resmgr.config.balloons import BalloonsConfig, read_balloons
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.balloon_types import balloon_types, expressions_of
from nri_resmgr.policies.chosen_cpus import choose_cpus, reserved_cpus
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policies.reserved_balloons import ReservedCpus
from nri_resmgr.policy.balloons import records
from nri_resmgr.policy.balloons.advice import smaller_minimum
from nri_resmgr.policy.balloons.errors import BalloonShort
from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.settings import (
    RESERVED,
    BalloonsSettings,
    BalloonType,
    MemoryBy,
)
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.records import Records
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, PolicyError

_TYPES: Final = "$.spec.balloonTypes"


def balloons_settings(
    config: BalloonsConfig, machine: Machine, tree: Tree | None
) -> BalloonsSettings:
    """Make the policy's settings for *machine*.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """
    wanted = config.reserved or Amount(1)
    available, chosen = choose_cpus(config.available, wanted, machine, tree)
    whole = config.reserve_whole_cores
    chosen = reserved_cpus(available, chosen, machine, whole_cores=whole)
    # An amount only sets the size: that reserved balloon is made like any other, which
    # may take a thread of any core.
    cpus = None if isinstance(wanted, Amount) and not whole else chosen
    reserved = ReservedCpus(len(chosen), cpus)
    types = balloon_types(config, reserved, machine, tree)
    _check_cpus(types, config, available)
    classes = config.cpu_classes if config.pin_cpu else None
    return BalloonsSettings(
        available=available,
        types=types,
        reserved=_reserved_cpus(types, cpus or CpuSet()),
        pin_cpus=config.pin_cpu,
        memory_by=MemoryBy(config.memory_by),
        preserve=expressions_of(config.preserve),
        scheduling_classes=config.scheduling_classes,
        on_failure=OnFailure(config.on_failure),
        place_pods=PodPlacement(config.place_pods),
        publish_resources=config.publish_resources,
        cpu_classes=tuple(classes.classes) if classes else (),
        idle_cpu_class=classes.idle if classes else "",
    )


def _reserved_cpus(types: tuple[BalloonType, ...], cpus: CpuSet) -> CpuSet:
    """Return CPUs that are reserved by list, unless their type has explicit CPUs."""
    (kind,) = (one for one in types if one.name == RESERVED)
    return CpuSet() if kind.components or kind.cpus else cpus


def _check_cpus(
    types: tuple[BalloonType, ...], config: BalloonsConfig, available: CpuSet
) -> None:
    """Check that explicit CPUs are available, and that no two balloons share one.

    Some type must be able to have CPUs: containers that run already need a balloon.
    """
    if all(one.components or one.max_cpus == 0 for one in types):
        raise BadSetting(_TYPES, "maxCPUs of every type is below 0, so none has a CPU")
    paths = {one.name: f"{one.path}.cpus" for one in config.types}
    given = [
        (paths.get(one.name, "$.spec.reservedResources.cpu"), cpus)
        for one in types
        for cpus in one.cpus
    ]
    for path, cpus in given:
        if outside := cpus - available:
            raise BadSetting(path, f"CPU {outside} is not available ({available})")
    for (_, first), (path, second) in combinations(given, 2):
        if both := first & second:
            raise BadSetting(path, f"CPU {both} is listed for two balloons")


class BalloonsKind(PolicyKind[BalloonsConfig]):
    """Entry point of this kind of policy."""

    name = "BalloonsPolicy"

    def read(self, top: Table) -> BalloonsConfig:
        """See `PolicyKind`."""
        return read_balloons(top)

    def build(
        self, config: BalloonsConfig, machine: Machine, tree: Tree | None
    ) -> BalloonsPolicy:
        """See `PolicyKind`."""
        settings = balloons_settings(config, machine, tree)

        def starts(other: BalloonsSettings) -> bool:
            try:
                BalloonsPolicy(machine, other).start()
            except PolicyError:
                return False
            return True

        policy = BalloonsPolicy(machine, settings)
        # Balloons that exist from the start may not fit the machine together.
        try:
            policy.start()
        except BalloonShort as error:
            error.advice = smaller_minimum(settings, starts)
            raise BadSetting(_TYPES, str(error)) from error
        return policy

    def records(self) -> Records:
        """See `PolicyKind`."""
        return records


KIND: Final = BalloonsKind()
