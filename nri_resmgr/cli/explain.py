"""``nri-resmgr explain``: why a container has its CPUs and memory nodes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from nri_resmgr.cli.amounts import cpus_text, size_text
from nri_resmgr.cli.events import event_line
from nri_resmgr.cli.flags import Flags, add_control_flag, add_output
from nri_resmgr.cli.render_status import in_force_text
from nri_resmgr.cli.tables import format_table
from nri_resmgr.control.client import Client, QueryRefused
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import JsonObject

_MOST_PARTS: Final = 3


@dataclass(eq=False)
class BadName(InputError):
    """The argument names no pod."""

    text: str

    def __str__(self) -> str:
        return f"{self.text!r}: expected [NAMESPACE/]POD[/CONTAINER]"


def add_arguments(
    parser: argparse.ArgumentParser, environment: Mapping[str, str]
) -> None:
    """Describe the command; *environment* gives defaults."""
    parser.description = (
        "Show why containers have their CPUs and memory nodes, the history of these, "
        "and recent refusals."
    )
    parser.epilog = (
        "examples: explain web; explain shop/web/nginx; explain web/nginx -o json; "
        "explain 3f2a (the beginning of an id)"
    )
    parser.add_argument(
        "name",
        metavar="POD[/CONTAINER]",
        help="[NAMESPACE/]POD[/CONTAINER], parts of these names, or the beginning of "
        "an id",
    )
    add_control_flag(Flags(parser, environment))
    add_output(parser, "text", "json")


def run(options: argparse.Namespace) -> int:
    """Query the daemon and print its answer.

    Raises:
        BadName: The argument has too many parts, or empty ones.
        QueryRefused: No container matches, or several pods do.
    """
    answer = _query(Client(options.control_socket), options.name)
    if options.output == "json":
        print(json.dumps(answer, indent=2))
    else:
        print(render_explanation(answer))
    return 0


def _query(client: Client, name: str) -> JsonObject:
    parts = name.split("/")
    if not all(parts) or len(parts) > _MOST_PARTS:
        raise BadName(name)
    if len(parts) == _MOST_PARTS:
        return _explained(client, f"{parts[0]}/{parts[1]}", parts[2])
    if len(parts) == 1:
        return _explained(client, name, "")
    # Pod and container, as in the help; otherwise namespace and pod.
    try:
        return _explained(client, *parts)
    except QueryRefused as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return _explained(client, name, "")


def _explained(client: Client, pod: str, container: str) -> JsonObject:
    query = {"pod": pod, "container": container} if container else {"pod": pod}
    return client.get("/v1/explain", **query)


def render_explanation(explanation: JsonObject) -> str:
    """Write why each container has its CPUs and memory, and what was refused."""
    parts = ["\n".join(_container(one)) for one in explanation["containers"]]
    if explanation["refusals"]:
        lines = (f"  {event_line(row)}" for row in explanation["refusals"])
        parts.append("\n".join(("recently refused:", *lines)))
    return "\n\n".join(parts)


def _container(one: JsonObject) -> Iterator[str]:
    yield one["title"] if one["present"] else f"{one['title']} (removed)"
    if "container" in one:
        yield from _holdings(one["container"])
        yield from (f"  host   {sentence}" for sentence in one["host"])
    placement = one["placement"]
    if placement:
        yield f"why, decided at {placement['time']} by rule {placement['rule']}:"
        yield from (f"  - {sentence}" for sentence in placement["sentences"])
    else:
        yield "why: the decision is no longer known"
    if one.get("candidates"):
        yield "if it were placed now, best first:"
        yield from (f"  {line}" for line in _candidates(one).splitlines())
    if one["history"]:
        yield "history:"
        rows = [_history_row(entry) for entry in one["history"]]
        header = ("event", "time", "kind", "CPUs", "nodes", "why")
        table = format_table(header, rows)
        yield from (f"  {line}" for line in table.splitlines())


def _candidates(one: JsonObject) -> str:
    rows = (
        (
            ("* " if found["pool"] == one["container"]["pool"] else "  ")
            + found["pool"],
            found["sentence"],
            " ".join(f"{one['criterion']}={one['value']}" for one in found["scores"]),
        )
        for found in one["candidates"]
    )
    return format_table(("  pool", "better than those below because", "scores"), rows)


def _holdings(one: JsonObject) -> Iterator[str]:
    exclusive = f" (exclusive: {one['exclusive']})" if one["exclusive"] else ""
    cpus, mems = one["cpus"] or "any", one["mems"] or "any"
    yield f"  has    CPUs {cpus}{exclusive}; memory of nodes {mems}"
    asks = one["request"]
    limits = (
        f"{cpus_text(asks['cpuLimit'])} CPU" if asks["cpuLimit"] is not None else "",
        f"{size_text(asks['memoryLimit'])} memory" if asks["memoryLimit"] else "",
    )
    limit = ", ".join(filter(None, limits)) or "none"
    yield (
        f"  asks   {cpus_text(asks['cpu'])} CPU, {size_text(asks['memory'])} memory; "
        f"limits: {limit}"
    )
    yield f"  source {one['source']}, {one['accuracy']}; QoS {one['qos']}"
    if one["pool"]:
        yield f"  pool   {one['pool']}"
    if found := one["verification"]:
        yield f"  kernel {in_force_text(found)}"


def _history_row(entry: JsonObject) -> tuple[str, ...]:
    cause = entry.get("causedBy")
    why = f"because of {cause}" if cause else entry.get("sentence", "")
    return (
        f"#{entry['number']}",
        entry["time"],
        entry["kind"],
        entry.get("cpus", "-"),
        entry.get("mems", "-"),
        why or f"because of {entry['kind']}",
    )
