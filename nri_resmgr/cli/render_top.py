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
_SHORTEST_BAR: Final = 10  # beside its sizes, which are below it otherwise
_NARROWEST: Final = 20  # columns; less would leave no room beside labels
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
    """Draw a frame, in lines of at most *width* columns if that is 60 or more."""
    width = max(width, _NARROWEST)
    owners = owners_of(state)
    blocks = (
        list(_head(state, width, paint)),
        list(_map(state, owners, width, paint)),
        list(_legend(owners, width, paint)),
        list(_memory(state, host, width, paint)),
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


def _head(state: JsonObject, width: int, paint: Paint) -> Iterator[str]:
    daemon = state["daemon"]
    title = f"nri-resmgr {daemon['version']}".strip()
    facts = [state["policy"], f"up {duration_text(daemon['uptimeSeconds'])}"]
    facts += ["dry run"] if daemon["dryRun"] else []
    first, *others = folded((title, *facts), width)
    yield f"{paint('title', first[: len(title)])}{first[len(title) :]}"
    yield from others
    yield from _labelled("runtime", session_text(state).split(" "), width, " ")
    if error := state["configuration"]["error"]:
        words = f"configuration refused: {error['why']}".split(" ")
        yield from (paint("high", line) for line in folded(words, width, " "))
    if pending := pending_text(state):
        yield from _labelled("updates", pending.split(" "), width, " ")
    cpus = state["cpus"]
    counts = [f"{word} {count_cpus(cpus[word])}" for word in CPU_KINDS]
    counts.append(f"of {count_cpus(cpus['online'])}")
    yield from _labelled("CPUs", counts, width)


def folded(parts: Sequence[str], width: int, gap: str = "  ") -> list[str]:
    """Join *parts* to lines of at most *width* columns; a longer part is cut.

    >>> folded(("idle 2", "reserved 1", "shared 8"), 20)
    ['idle 2  reserved 1', 'shared 8']
    >>> folded(("at", "/a/long/path"), 8)
    ['at', '/a/long…']
    """
    lines: list[str] = []
    for part in parts:
        shown = _cut(part, width)
        if lines and len(lines[-1]) + len(gap) + len(shown) <= width:
            lines[-1] += f"{gap}{shown}"
        else:
            lines.append(shown)
    return lines


def _labelled(
    label: str, parts: Sequence[str], width: int, gap: str = "  "
) -> Iterator[str]:
    for line in folded(parts, width - _LABEL, gap):
        yield f"{label:<{_LABEL}}{line}"
        label = ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


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
        shown = _cut(f"{owner.name}  {owner.cpus}", columns)
        yield f"{paint(owner.style, owner.letter)} {shown}"


def _memory(
    state: JsonObject, host: JsonObject, width: int, paint: Paint
) -> Iterator[str]:
    used = {node["id"]: node["used"] for node in host["nodes"]}
    nodes = [node for node in state["nodes"] if node["memory"]["capacity"]]
    sizes = [_sizes(node, used.get(node["id"])) for node in nodes]
    # One length for all nodes, or bars could not be compared.
    columns = width - _LABEL - len("[]")
    beside = columns - max(map(len, sizes), default=0) - len(" ")
    is_beside = beside >= _SHORTEST_BAR
    length = min(_BAR, beside if is_beside else columns)
    for node, size in zip(nodes, sizes, strict=True):
        label = f"node {node['id']}"
        bar = f"[{_bar(node['memory'], length, paint)}]"
        yield f"{label:<{_LABEL}}{bar}{f' {size}' if is_beside else ''}"
        if not is_beside:
            yield from _labelled("", size.split(" "), width, " ")


def _sizes(node: JsonObject, now: int | None) -> str:
    memory = node["memory"]
    grants = ""
    if memory["granted"] is not None:
        grants = f"{size_text(memory['granted'])} granted of "
    in_use = "" if now is None else f", {size_text(now)} in use"
    return f"{grants}{size_text(memory['capacity'])} {node['kind']}{in_use}"


def _bar(memory: JsonObject, length: int, paint: Paint) -> str:
    share: float = (memory["granted"] or 0) / memory["capacity"]
    full = min(round(length * share), length)
    return paint("bar", "#" * full) + "." * (length - full)


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
