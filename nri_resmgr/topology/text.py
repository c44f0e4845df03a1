"""A machine as an indented tree of text."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.topology.cores import CoreKind, Die
from nri_resmgr.topology.machine import Machine
from nri_resmgr.topology.memory import Node
from nri_resmgr.topology.speed_select import Feature, Punit
from nri_resmgr.values import format_bytes
from nri_resmgr.values.counts import count_text


def format_tree(machine: Machine) -> str:
    """Return the machine as a tree of packages, dies, nodes and shared caches.

    Levels without information are left out: the only die of a package, the private
    caches of a core. The last line has no newline.
    """
    return "\n".join(_lines(machine))


def _lines(machine: Machine) -> Iterator[str]:
    yield _machine(machine)
    for package in machine.packages:
        dies = [die for die in machine.dies if die.package == package.id]
        yield f"  package {package.id}: CPUs {package.cpus}"
        for die in dies:
            if len(dies) > 1:
                yield f"    die {die.id}: CPUs {die.cpus}"
            yield from _die(machine, die)
        for punit in machine.speed_select:
            if punit.package == package.id:
                yield f"    {_punit(punit)}"
    for node in machine.nodes:
        if not node.cpus:
            yield f"  {_node(node)}"
    yield from _distances(machine)
    for device in machine.devices:
        if device.node is not None:
            yield f"  {device.kind} {device.name}: node {device.node}"


def _machine(machine: Machine) -> str:
    parts = [
        f"{count_text(len(machine.online), 'CPU')} online ({machine.online})",
        count_text(len(machine.cores), "core"),
    ]
    for name, cpus in (("offline", machine.offline), ("isolated", machine.isolated)):
        if cpus:
            parts.append(f"{name} {cpus}")
    if machine.kinds != (CoreKind.PERFORMANCE,):
        parts += [f"{kind} {machine.cpus_of_kind(kind)}" for kind in machine.kinds]
    return f"machine: {', '.join(parts)}"


def _die(machine: Machine, die: Die) -> Iterator[str]:
    for node in machine.nodes:
        if not node.cpus.isdisjoint(die.cpus):
            yield f"      {_node(node)}, CPUs {node.cpus & die.cpus}"
    cores = {core.cpus for core in machine.cores}
    for cache in machine.caches:
        if cache.cpus <= die.cpus and cache.cpus not in cores:
            size = f" {format_bytes(cache.size)}" if cache.size else ""
            yield f"      level {cache.level} cache{size}: CPUs {cache.cpus}"


def _punit(punit: Punit) -> str:
    """Return one line with the features of Speed Select and their states."""
    parts = [f"punit {punit.id}: CPUs {punit.cpus}", f"profile {punit.level}"]
    if punit.is_locked:
        parts.append("locked")
    if punit.base is not Feature.UNSUPPORTED:
        parts.append(f"base frequency {punit.base} ({punit.base_cpus})")
    if punit.turbo is not Feature.UNSUPPORTED:
        parts.append(f"turbo frequency {punit.turbo}")
    if punit.power is not Feature.UNSUPPORTED:
        classes = [f"{n}: {c.cpus}" for n, c in enumerate(punit.clos) if c.cpus]
        parts.append(f"core power {punit.power} {punit.order} ({'; '.join(classes)})")
    return ", ".join(parts)


def _node(node: Node) -> str:
    parts = [f"node {node.id}:"]
    parts.append(f"{format_bytes(node.memory)} {node.kind}" if node.memory else "empty")
    if node.movable:
        parts.append("movable")
    parts += [f"{p.count} x {format_bytes(p.size)} pages" for p in node.hugepages]
    return f"{parts[0]} {', '.join(parts[1:])}"


def _distances(machine: Machine) -> Iterator[str]:
    if len(machine.nodes) < 2:  # noqa: PLR2004 - the only node has no distance
        return
    yield "  distances:"
    yield "    node " + "".join(f"{node.id:>4}" for node in machine.nodes)
    for node, row in zip(machine.nodes, machine.distances, strict=True):
        yield f"    {node.id:>4} " + "".join(f"{far:>4}" for far in row)
