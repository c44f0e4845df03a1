"""One frame of ``top``: CPUs and their owners, memory by node, and pressure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.cli.amounts import count_cpus, duration_text, size_text
from nri_resmgr.cli.render_status import CPU_KINDS, pending_text, session_text
from nri_resmgr.values import CpuSet
from nri_resmgr.values.documents import JsonObject

Paint: TypeAlias = Callable[[str, str], str]
"""Colours a text (the second) by the name of a style."""

MARKS: Final = {"shared": "s", "reserved": "r", "isolated": "i", "idle": "·"}
"""Of CPUs that are not exclusive to one container or balloon."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_LABEL: Final = 10  # columns before a map or a bar
_BAR: Final = 30
_GROUP: Final = 8  # CPUs between two blanks

# Sequences of ECMA-48: bold black on colours that any terminal has.
_OWNERS: Final = ("1;30;46", "1;30;45", "1;30;42", "1;30;43", "1;30;44", "1;30;47")
_STYLES: Final = {
    "title": "1",
    "shared": "32",
    "reserved": "33",
    "isolated": "36",
    "idle": "2",
    "high": "1;31",
    "bar": "32",
} | {f"owner {number}": code for number, code in enumerate(_OWNERS)}

_HIGH: Final = 20.0  # per cent of the time in which some task waited


def plain(_: str, text: str) -> str:
    """Return a text without colour."""
    return text


def colored(style: str, text: str) -> str:
    """Colour a text for a terminal."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


class Owner(msgspec.Struct, frozen=True):
    """A container or balloon with exclusive CPUs.

    Attributes:
        name: Its name in the legend.
        cpus: Its exclusive CPUs.
        letter: Its mark in the map.
        style: Its colour.
    """

    name: str
    cpus: CpuSet
    letter: str
    style: str


def render_frame(
    state: JsonObject, host: JsonObject, width: int, paint: Paint = plain
) -> str:
    """Draw a frame, in lines of at most *width* columns where possible."""
    owners = owners_of(state)
    blocks = (
        list(_head(state, paint)),
        list(_map(state, owners, width, paint)),
        list(_legend(owners, width, paint)),
        list(_memory(state, host, paint)),
        list(_pressure(host["pressure"], paint)),
    )
    return "\n\n".join("\n".join(block) for block in blocks if block)


def owners_of(state: JsonObject) -> tuple[Owner, ...]:
    """Find the containers and balloons with exclusive CPUs, by the first CPU."""
    found = [
        (
            f"{one['namespace']}/{one['pod']}/{one['name']}",
            CpuSet.parse(one["exclusive"]),
        )
        for one in state["containers"]
    ]
    found += [
        (pool["name"], CpuSet.parse(pool["cpus"]))
        for pool in state["pools"]
        if pool["kind"] == "balloon" and not pool["within"]
    ]
    found = sorted((one for one in found if one[1]), key=lambda one: min(one[1]))
    return tuple(
        Owner(
            name,
            cpus,
            _LETTERS[number % len(_LETTERS)],
            f"owner {number % len(_OWNERS)}",
        )
        for number, (name, cpus) in enumerate(found)
    )


def _head(state: JsonObject, paint: Paint) -> Iterator[str]:
    daemon = state["daemon"]
    up = duration_text(daemon["uptimeSeconds"])
    dry = "  dry run" if daemon["dryRun"] else ""
    title = paint("title", f"nri-resmgr {daemon['version']}".strip())
    yield f"{title}  {state['policy']}  up {up}{dry}"
    yield f"runtime   {session_text(state)}"
    if error := state["configuration"]["error"]:
        yield paint("high", f"configuration refused: {error['why']}")
    if pending := pending_text(state):
        yield f"updates   {pending}"
    cpus = state["cpus"]
    counts = "  ".join(f"{word} {count_cpus(cpus[word])}" for word in CPU_KINDS)
    yield f"CPUs      {counts}  of {count_cpus(cpus['online'])}"


def _map(
    state: JsonObject, owners: Sequence[Owner], width: int, paint: Paint
) -> Iterator[str]:
    drawn = _drawn(state, owners, paint)
    whole_groups = max(width - _LABEL, _GROUP + 1) // (_GROUP + 1)
    per_line = whole_groups * _GROUP
    for node in state["nodes"]:
        cpus = list(CpuSet.parse(node["cpus"]))
        for start in range(0, len(cpus), per_line):
            label = f"node {node['id']}" if start == 0 else ""
            line = cpus[start : start + per_line]
            groups = (line[at : at + _GROUP] for at in range(0, len(line), _GROUP))
            marks = " ".join("".join(drawn[cpu] for cpu in one) for one in groups)
            yield f"{label:<{_LABEL}}{marks}"


def _drawn(
    state: JsonObject, owners: Sequence[Owner], paint: Paint
) -> Mapping[int, str]:
    drawn = dict.fromkeys(CpuSet.parse(state["cpus"]["online"]), "?")
    for word, mark in MARKS.items():
        shown = paint(word, mark)
        drawn |= dict.fromkeys(CpuSet.parse(state["cpus"][word]), shown)
    for owner in owners:
        drawn |= dict.fromkeys(owner.cpus, paint(owner.style, owner.letter))
    return drawn


def _legend(owners: Sequence[Owner], width: int, paint: Paint) -> Iterator[str]:
    yield "  ".join(f"{paint(word, mark)} {word}" for word, mark in MARKS.items())
    columns = width - len("A ")
    for owner in owners:
        text = f"{owner.name}  {owner.cpus}"
        shown = text if len(text) <= columns else f"{text[: columns - 1]}…"
        yield f"{paint(owner.style, owner.letter)} {shown}"


def _memory(state: JsonObject, host: JsonObject, paint: Paint) -> Iterator[str]:
    used = {node["id"]: node["used"] for node in host["nodes"]}
    for node in state["nodes"]:
        memory, now = node["memory"], used.get(node["id"])
        granted, capacity = memory["granted"] or 0, memory["capacity"]
        if not capacity:
            continue
        full = min(round(_BAR * granted / capacity), _BAR)
        bar = paint("bar", "#" * full) + "." * (_BAR - full)
        grants = ""
        if memory["granted"] is not None:
            grants = f"{size_text(granted)} granted of "
        in_use = "" if now is None else f", {size_text(now)} in use"
        label = f"node {node['id']}"
        size = f"{grants}{size_text(capacity)} {node['kind']}{in_use}"
        yield f"{label:<{_LABEL}}[{bar}] {size}"


def _pressure(pressure: JsonObject, paint: Paint) -> Iterator[str]:
    if pressure:
        yield "waiting   10 s    1 min   5 min   (per cent of the time)"
    for name, one in pressure.items():
        some = one["some"]
        values = (some["avg10"], some["avg60"], some["avg300"])
        shown = (
            paint("high", f"{value:<6.1f}") if value >= _HIGH else f"{value:<6.1f}"
            for value in values
        )
        yield f"{name:<{_LABEL}}{'  '.join(shown)}".rstrip()
