"""What counts of a document in force after CPUs have come or gone."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from nri_resmgr.config import AVAILABLE, BadSetting, PolicyConfig, absent_cpus
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

log = Logger(__name__)


class LeftOut(msgspec.Struct, frozen=True):
    """A part of the document that does not count on the present machine.

    Attributes:
        path: Its place in the document.
        why: What the machine does not have.
        is_expected: Whether it is no mistake: one list of available CPUs is for
            machines of several sizes, and names CPUs that smaller ones never have.
    """

    path: str
    why: str
    is_expected: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def fitted(config: PolicyConfig, machine: Machine) -> PolicyConfig:
    """Return a document without the CPUs that a machine does not have now.

    Offline ones can come back, and one document can be for machines of several sizes.
    """
    named = CpuSet.union(cpus for _, cpus in config.named_cpus)
    return config.without_cpus(named - machine.online)


def put_in_force(
    config: PolicyConfig,
    machine: Machine,
    rebuild: Callable[[PolicyConfig], None],
    check: Callable[[PolicyConfig], object],
) -> tuple[LeftOut, ...]:
    """Put in force as much of a document as fits a changed machine.

    The machine counts in any case: the document was written for it as it was before.

    Args:
        config: The document.
        machine: The machine.
        rebuild: Puts what is left of the document in force.
        check: Raises `BadSetting` where this cannot be, by the sizes in it.

    Returns:
        What does not count.

    Raises:
        BadSetting: A policy of another package fits no part of its document.
    """
    smaller = fitted(config, machine)
    try:
        rebuild(smaller)
    except BadSetting:
        paths, why = _too_large(smaller, check)
        rebuild(smaller.without_sizes(paths))
        return (*left_out(config, machine), *why)
    return left_out(config, machine)


def _too_large(
    config: PolicyConfig, check: Callable[[PolicyConfig], object]
) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
    """Return the fewest sizes without which a document fits, and why each does not.

    One of them if that suffices, the first such one; otherwise as few as all that fit
    are put back in the order of the document.
    """

    def why_not(paths: Collection[str]) -> BadSetting | None:
        try:
            check(config.without_sizes(paths))
        except BadSetting as error:
            return error
        return None

    if not why_not(()):
        return (), ()
    sizes = config.sizes
    left = next(([one] for one in sizes if not why_not([one])), list(sizes))
    if len(left) > 1:
        for one in sizes:
            others = [other for other in left if other != one]
            if not why_not(others):
                left = others
    rows = ((one, why_not([other for other in left if other != one])) for one in left)
    found = tuple(LeftOut(path, error.why) for path, error in rows if error)
    return tuple(left), found


def left_out(config: PolicyConfig, machine: Machine) -> tuple[LeftOut, ...]:
    """Return the CPUs of a document that do not count, by their places in it.

    Args:
        config: The document.
        machine: The machine.
    """
    return tuple(
        LeftOut(path, why, _is_for_larger_machines(path, cpus, machine))
        for path, cpus in config.named_cpus
        if (why := absent_cpus(cpus, machine))
    )


def _is_for_larger_machines(path: str, cpus: CpuSet, machine: Machine) -> bool:
    """Return whether CPUs are available ones, some of them here and none offline."""
    if path != AVAILABLE or cpus.isdisjoint(machine.online):
        return False
    return cpus & machine.present <= machine.online


def note_left_out(before: tuple[LeftOut, ...], now: tuple[LeftOut, ...]) -> None:
    """Log what does not count any more, and what counts again."""
    for one in now:
        if one in before:
            continue
        if one.is_expected:
            log.warning("configuration.left-out", path=one.path, why=one.why)
        else:
            log.error("configuration.left-out", path=one.path, why=one.why)
    for one in before:
        if one.path not in {other.path for other in now}:
            log.info("configuration.counts-again", path=one.path)
