"""What counts of a document in force after CPUs have come or gone."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nri_resmgr.config import BadSetting, PolicyConfig, absent_cpus
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

log = Logger(__name__)


class LeftOut(msgspec.Struct, frozen=True):
    """A part of the document that does not count on the present machine.

    Attributes:
        path: Its place in the document.
        why: What the machine does not have.
    """

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def fitted(config: PolicyConfig, machine: Machine) -> PolicyConfig:
    """Return a document without the CPUs that are offline: they can come back."""
    return config.without_cpus(machine.offline)


def put_in_force(
    config: PolicyConfig, machine: Machine, rebuild: Callable[[PolicyConfig], None]
) -> tuple[LeftOut, ...]:
    """Put in force as much of a document as fits a changed machine.

    The machine counts in any case: the document was written for it as it was before.

    Args:
        config: The document.
        machine: The machine.
        rebuild: Puts what is left of the document in force.

    Returns:
        What does not count.

    Raises:
        BadSetting: A policy of another package fits no part of its document.
    """
    named = CpuSet.union(cpus for _, cpus in config.named_cpus)
    smaller = config.without_cpus(named - machine.online)
    try:
        rebuild(smaller)
    except BadSetting as error:
        rebuild(smaller.without_sizes())
        return left_out(config, machine, error)
    return left_out(config, machine)


def left_out(
    config: PolicyConfig, machine: Machine, failed: BadSetting | None = None
) -> tuple[LeftOut, ...]:
    """Return what of a document does not count.

    Args:
        config: The document.
        machine: The machine.
        failed: Why amounts and sizes do not count either.
    """
    rows = ((path, absent_cpus(cpus, machine)) for path, cpus in config.named_cpus)
    found = tuple(LeftOut(path, why) for path, why in rows if why)
    return found if failed is None else (*found, LeftOut(failed.path, failed.why))


def note_left_out(before: tuple[LeftOut, ...], now: tuple[LeftOut, ...]) -> None:
    """Log what does not count any more, and what counts again."""
    for one in now:
        if one not in before:
            log.error("configuration.left-out", path=one.path, why=one.why)
    for one in before:
        if one.path not in {other.path for other in now}:
            log.info("configuration.counts-again", path=one.path)
