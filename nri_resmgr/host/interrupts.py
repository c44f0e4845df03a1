"""Reads the interrupts of a host and their CPU affinities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from nri_resmgr.classes.irq.interrupts import DEFAULT_AFFINITY, Interrupt
from nri_resmgr.host.tree import Tree, UnreadableHostFile
from nri_resmgr.values import NO_CPUS, CpuSet, InputError

_INTERRUPTS: Final = "/proc/interrupts"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def read_interrupts(
    tree: Tree, originals: Mapping[str, str] = _NOTHING
) -> tuple[Interrupt, ...]:
    """Read the numbered interrupts, ascending.

    Interrupts without an affinity, such as per-CPU ones, are left out. Values of
    *originals*, by path, replace those that this daemon has written (see
    `Knobs.originals`): decisions must not depend on earlier decisions.

    Raises:
        UnreadableHostFile: ``/proc/interrupts`` cannot be read.
    """
    return tuple(sorted(_found(tree, originals), key=lambda one: one.number))


def read_default_cpus(tree: Tree, originals: Mapping[str, str] = _NOTHING) -> CpuSet:
    """Read the default affinity of new interrupts; empty if unknown."""
    text = _text(tree, DEFAULT_AFFINITY, originals)
    try:
        return NO_CPUS if text is None else CpuSet.from_mask(text)
    except InputError:
        return NO_CPUS


def _found(tree: Tree, originals: Mapping[str, str]) -> Iterator[Interrupt]:
    for number, name in _rows(tree.read(_INTERRUPTS) or ""):
        bare = Interrupt(number, name, NO_CPUS)
        text = _text(tree, bare.path, originals)
        try:
            cpus = CpuSet.parse(text or "")
        except InputError:
            continue
        if cpus:
            yield Interrupt(number, name, cpus)


def _rows(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and name of the rows that have a number.

    A row is the number, a count per CPU, the chip and the devices.
    """
    for line in text.splitlines():
        number, colon, rest = line.strip().partition(":")
        if colon and number.isdecimal():
            words = rest.split()
            while words and words[0].isdecimal():
                del words[0]
            yield int(number), " ".join(words)


def _text(tree: Tree, path: str, originals: Mapping[str, str]) -> str | None:
    if path in originals:
        return originals[path]
    try:
        return tree.read(path)
    except UnreadableHostFile:
        return None
