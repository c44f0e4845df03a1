"""A frame of ``top``: CPUs and their owners, containers, pools, memory, pressure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.cli.amounts import count_cpus, cpus_text, duration_text, size_text
from nri_resmgr.cli.cpu_use import CpuUse, mean_use, use_text
from nri_resmgr.cli.look import Paint, plain
from nri_resmgr.cli.render_cpus import (
    LABEL,
    MARKS,
    Owner,
    draw_map,
    draw_use,
    marks_of,
    owners_of,
    title_of,
)
from nri_resmgr.cli.render_facts import CPU_KINDS
from nri_resmgr.cli.state_texts import pending_text, session_text
from nri_resmgr.cli.tables import format_table
from nri_resmgr.cli.top_view import Order, View
from nri_resmgr.values import CpuSet
from nri_resmgr.values.documents import JsonObject

_BAR: Final = 30
_SHORTEST_BAR: Final = 10  # beside its sizes, which are below it otherwise
_NARROWEST: Final = 20  # columns; less would leave no room beside labels
_SHORTEST_NAME: Final = 16  # columns of a container or pool
_SHORTEST_LIST: Final = 12  # of CPUs

_HIGH: Final = 20.0  # per cent of the time in which some task waited


class Sample(msgspec.Struct, frozen=True):
    """What a frame shows.

    Attributes:
        state: The answer of ``GET /v1/state``.
        host: The answer of ``GET /v1/host``.
        use: The use of CPUs since the sample before.
    """

    state: JsonObject
    host: JsonObject
    use: CpuUse


class Frame(msgspec.Struct, frozen=True):
    """Lines of a frame: the heading stays, the others scroll."""

    head: tuple[str, ...]
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join((*self.head, "", *self.lines))


def render_frame(
    sample: Sample, width: int, paint: Paint = plain, view: View | None = None
) -> Frame:
    """Draw a frame, in lines of at most *width* columns if that is 60 or more."""
    width, view = max(width, _NARROWEST), view or View()
    state, use = sample.state, sample.use
    owners = owners_of(state)
    marks = marks_of(state, owners, paint)
    blocks: Iterable[Iterable[str]] = (
        draw_map(state, marks, width, paint),
        _containers(sample, owners, view, width, paint),
        _pools(sample, owners, width, paint),
        draw_use(state, marks, use, width) if view.has_cpus else (),
        _memory(state, sample.host, width, paint),
        _pressure(sample.host["pressure"], paint),
    )
    texts = (tuple(block) for block in blocks)
    body = "\n\n".join("\n".join(text) for text in texts if text)
    return Frame(tuple(_head(state, width, paint)), tuple(body.splitlines()))


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
        shown = cut(part, width)
        if lines and len(lines[-1]) + len(gap) + len(shown) <= width:
            lines[-1] += f"{gap}{shown}"
        else:
            lines.append(shown)
    return lines


def cut(text: str, width: int) -> str:
    """Return a text of at most *width* columns, with a mark if it was longer."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _labelled(
    label: str, parts: Sequence[str], width: int, gap: str = "  "
) -> Iterator[str]:
    for line in folded(parts, width - LABEL, gap):
        yield f"{label:<{LABEL}}{line}"
        label = ""


class _Row(msgspec.Struct, frozen=True):
    """A container or pool in its table.

    Attributes:
        name: Its name, indented.
        mark: Its mark in the map.
        style: The colour of the mark.
        use: The mean use of its CPUs in thousandths.
        cells: What is between the use and the CPUs.
        cpus: Its CPUs.
    """

    name: str
    mark: str
    style: str
    use: int | None
    cells: tuple[str, ...]
    cpus: CpuSet


def _containers(
    sample: Sample, owners: Sequence[Owner], view: View, width: int, paint: Paint
) -> Iterator[str]:
    found = [one for one in sample.state["containers"] if view.shows(title_of(one))]
    by_name = {owner.name: owner for owner in owners}
    rows = [_container(one, by_name, sample.use) for one in found]
    rows.sort(key=_KEYS[view.order])
    yield from _table(("  container", "use", "pool", "CPUs"), rows, width, paint)
    if hidden := len(sample.state["containers"]) - len(found):
        yield cut(f"{hidden} without {view.pattern!r} in the name", width)


def _container(one: JsonObject, owners: Mapping[str, Owner], use: CpuUse) -> _Row:
    name, cpus = title_of(one), CpuSet.parse(one["cpus"])
    owner = owners.get(name)
    mark, style = MARKS["shared"], "shared"
    if owner:
        mark, style = owner.letter, owner.style
    mean = mean_use(use, cpus)
    return _Row(name, mark, style, mean, (one["pool"] or "-",), cpus)


def _by_cpu(row: _Row) -> tuple[bool, int, str]:
    # Those of exclusive CPUs first, as in the map.
    is_shared = row.mark == MARKS["shared"]
    return is_shared, row.cpus.first if row.cpus else -1, row.name


_KEYS: Final[Mapping[Order, Callable[[_Row], tuple[object, ...]]]] = {
    Order.CPU: _by_cpu,
    Order.USE: lambda row: (-1 if row.use is None else -row.use, row.name),
    Order.NAME: lambda row: (row.name,),
}


def _pools(
    sample: Sample, owners: Sequence[Owner], width: int, paint: Paint
) -> Iterator[str]:
    by_name = {owner.name: owner for owner in owners}
    depths: dict[str, int] = {}
    rows = []
    for pool in sample.state["pools"]:  # after the one that it is part of
        name, cpus = pool["name"], CpuSet.parse(pool["cpus"])
        depths[name] = depths.get(pool["within"], -1) + 1
        owner = by_name.get(name)
        mark, style = (owner.letter, owner.style) if owner else (" ", "")
        granted, capacity = (cpus_text(pool["cpu"][key]) for key in _AMOUNTS)
        cells = (f"{granted} of {capacity}",)
        mean = mean_use(sample.use, cpus)
        rows.append(_Row("  " * depths[name] + name, mark, style, mean, cells, cpus))
    yield from _table(("  pool", "use", "granted", "CPUs"), rows, width, paint)


_AMOUNTS: Final = ("granted", "capacity")


def _table(
    header: Sequence[str], rows: Sequence[_Row], width: int, paint: Paint
) -> Iterator[str]:
    """Align rows, one line each; names are cut as far as needed, then lists of CPUs."""
    if not rows:
        return
    cells = [(use_text(row.use), *row.cells) for row in rows]
    columns = zip(header[1:-1], *cells, strict=True)
    longest = (max(map(len, column)) for column in columns)
    others = sum(longest) + len("A ") + len("  ") * len(header[1:]) + _SHORTEST_LIST
    name = max(width - others, _SHORTEST_NAME)
    table = format_table(
        header,
        (
            (f"{row.mark} {cut(row.name, name)}", *middle, str(row.cpus) or "any")
            for row, middle in zip(rows, cells, strict=True)
        ),
    )
    first, *lines = (cut(line, width) for line in table.splitlines())
    yield paint("title", first)
    for row, line in zip(rows, lines, strict=True):
        yield f"{paint(row.style, line[0])}{line[1:]}" if row.style else line


def _memory(
    state: JsonObject, host: JsonObject, width: int, paint: Paint
) -> Iterator[str]:
    used = {node["id"]: node["used"] for node in host["nodes"]}
    nodes = [node for node in state["nodes"] if node["memory"]["capacity"]]
    sizes = [_sizes(node, used.get(node["id"])) for node in nodes]
    # One length for all nodes, or bars could not be compared.
    columns = width - LABEL - len("[]")
    beside = columns - max(map(len, sizes), default=0) - len(" ")
    is_beside = beside >= _SHORTEST_BAR
    length = min(_BAR, beside if is_beside else columns)
    for node, size in zip(nodes, sizes, strict=True):
        label = f"node {node['id']}"
        bar = f"[{_bar(node['memory'], length, paint)}]"
        yield f"{label:<{LABEL}}{bar}{f' {size}' if is_beside else ''}"
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
        yield f"{name:<{LABEL}}{'  '.join(shown)}".rstrip()
