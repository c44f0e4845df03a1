"""``nri-resmgr explain``: why a container has its CPUs and memory nodes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from nri_resmgr.cli.amounts import cpus_text, duration_text, size_text
from nri_resmgr.cli.events import event_line
from nri_resmgr.cli.flags import STDOUT, Parser, add_picture_flag
from nri_resmgr.cli.output import add_client_flags, is_document, print_document
from nri_resmgr.cli.state_texts import verified_text
from nri_resmgr.cli.tables import format_table
from nri_resmgr.control.client import Client, QueryRefused
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable_data

_MOST_PARTS: Final = 3

_EXAMPLES: Final = """\
examples:
  nri-resmgr explain web                   all containers of the pod web
  nri-resmgr explain shop/web/nginx        one container of it
  nri-resmgr explain web/nginx -o json     the same, for programs
  nri-resmgr explain 3f2a                  by the beginning of an id
  nri-resmgr explain web --picture web.svg
                                           the pools considered, and the chosen one
"""


@dataclass(eq=False)
class NoPodName(InputError):
    """The argument names no pod."""

    text: str

    def __str__(self) -> str:
        return f"{self.text!r}: expected [NAMESPACE/]POD[/CONTAINER]"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Show which CPUs and memory nodes are decided for containers, why, and whether "
        "they are in force, with the history and recent refusals."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "name",
        metavar="POD[/CONTAINER]",
        help="[NAMESPACE/]POD[/CONTAINER], parts of these names, or the beginning of "
        "an id",
    )
    what = "the CPUs and the pools that were considered"
    add_picture_flag(parser, what, or_stdout=True)
    add_client_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Query the daemon and print its answer.

    Raises:
        NoPodName: The argument has too many parts, or empty ones.
        QueryRefused: No container matches, or several pods do.
        NotWritten: The picture cannot be written.
    """
    client = Client(options.control_socket)
    answer = _query(client, options.name)
    if options.picture:
        # Late: without a picture the machine and its model are not needed.
        from nri_resmgr.cli.output_files import write_picture
        from nri_resmgr.cli.pictures_of_daemon import picture_of_explanation
        from nri_resmgr.topology.document import from_document

        state = client.get("/v1/state")
        machine = from_document(client.get("/v1/topology")["machine"])
        write_picture(picture_of_explanation(answer, state, machine), options.picture)
        if options.picture == STDOUT:
            return 0
    if is_document(options.output):
        print_document(answer, options.output)
    else:
        print(render_explanation(printable_data(answer)))
    return 0


def _query(client: Client, name: str) -> JsonObject:
    parts = name.split("/")
    if not all(parts) or len(parts) > _MOST_PARTS:
        raise NoPodName(name)
    *pod, container = parts
    if not pod:
        return _explained(client, name)
    try:
        return _explained(client, "/".join(pod), container)
    except QueryRefused as error:
        if len(parts) == _MOST_PARTS or error.status != HTTPStatus.NOT_FOUND:
            raise
        # Pod and container, as in the help; otherwise namespace and pod.
        return _explained(client, name)


def _explained(client: Client, pod: str, container: str = "") -> JsonObject:
    query = {"pod": pod, "container": container} if container else {"pod": pod}
    return client.get("/v1/explain", **query)


def render_explanation(explanation: JsonObject) -> str:
    """Write why each container has its CPUs and memory, and what was refused."""
    parts = ["\n".join(_container(one)) for one in explanation["containers"]]
    parts += ["\n".join(_claimed(one)) for one in explanation["claimed"]]
    parts += ["\n".join(_reservation(one)) for one in explanation["reservations"]]
    if explanation["refusals"]:
        lines = (f"  {refusal_text(row)}" for row in explanation["refusals"])
        parts.append("\n".join(("recently refused:", *lines)))
    return "\n\n".join(parts)


def refusal_text(row: JsonObject) -> str:
    """Return an event of a refusal as a line, with how often it happened."""
    times = f" ({row['times']} times)" if row["times"] > 1 else ""
    return f"{event_line(row)}{times}"


def _container(one: JsonObject) -> Iterator[str]:
    yield one["title"] if one["present"] else f"{one['title']} (removed)"
    if "container" in one:
        yield from _holdings(one["container"], one["inForce"])
        yield from (_line("host", sentence) for sentence in one["host"])
        yield from (_line("ignored", sentence) for sentence in one["ineffective"])
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


def _claimed(one: JsonObject) -> Iterator[str]:
    yield one["title"]
    yield _line("claimed", f"CPUs {one['cpus']}")
    yield "why:"
    yield from (f"  - {sentence}" for sentence in one["sentences"])


def _reservation(one: JsonObject) -> Iterator[str]:
    pod = f"{one['namespace']}/{one['pod']}"
    is_overhead = one["name"] == OVERHEAD_NAME
    yield (
        f"{pod} (overhead)" if is_overhead else f"{pod}/{one['name']} (not created yet)"
    )
    cpus = f"CPUs {one['cpus']}" if one["cpus"] else "a part of the shared CPUs"
    mems = one["mems"] or "any"
    yield _line("reserved", f"{cpus}; memory of nodes {mems}")
    asks = one["request"]
    cpu, memory = cpus_text(asks["cpu"]), size_text(asks["memory"])
    yield _line("asks", f"{cpu} CPU, {memory} memory")
    yield _line("source", one["source"])
    if one["pool"]:
        yield _line("pool", one["pool"])


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


def _holdings(one: JsonObject, in_force: JsonObject | None) -> Iterator[str]:
    exclusive = f" (exclusive: {one['exclusive']})" if one["exclusive"] else ""
    cpus, mems = one["cpus"] or "any", one["mems"] or "any"
    yield _line("decided", f"CPUs {cpus}{exclusive}; memory of nodes {mems}")
    if delivery := one["delivery"]:
        yield _line("kernel", _compared(in_force, one, "not known: no cgroup is found"))
        yield _line("runtime", _compared(delivery["recorded"], one, "not known"))
        yield from _delivery(delivery)
    if found := one["verification"]:
        yield _line("verified", verified_text(found))
    asks = one["request"]
    limits = (
        f"{cpus_text(asks['cpuLimit'])} CPU" if asks["cpuLimit"] is not None else "",
        f"{size_text(asks['memoryLimit'])} memory" if asks["memoryLimit"] else "",
    )
    limit = ", ".join(filter(None, limits)) or "none"
    amounts = f"{cpus_text(asks['cpu'])} CPU, {size_text(asks['memory'])} memory"
    of_pod = " (a part of its pod's)" if asks["ofPod"] else ""
    yield _line("asks", f"{amounts}{of_pod}; limits: {limit}")
    pages = (f"{one['count']} of {size_text(one['size'])}" for one in asks["hugepages"])
    others = (f"{count} {name}" for name, count in asks["extended"].items())
    if found := ", ".join(pages):
        yield _line("pages", f"huge pages: {found}")
    if found := ", ".join(others):
        yield _line("devices", found)
    yield _line("source", f"{_source(one)}, {one['accuracy']}; QoS {one['qos']}")
    if found := _origins(one):
        yield _line("of which", found)
    if priority := one["priority"]:
        yield _line("priority", f"{priority['value']}, {priority['source']}")
    if one["pool"]:
        yield _line("pool", one["pool"])


# Where the single amounts are from, if not all are of one source.
_ORIGINS: Final = {
    "oci": "CPU and limits of cgroup values; memory of them or of the OOM score; "
    "no devices",
    "annotation, resized": "CPU and memory of cgroup values; others of the annotation",
    "kubelet, resized": "CPU and memory of cgroup values; others of the kubelet",
    "stale-annotation": "CPU, memory and limits of cgroup values, which contradict; "
    "devices of the annotation",
    "stale-kubelet": "CPU, memory and limits of cgroup values, which contradict; "
    "devices of the kubelet",
}


def _origins(container: JsonObject) -> str:
    own = container["ownSource"]
    found = _ORIGINS.get(own, "")
    if container["source"] != "adjustment":
        return found
    why = f" ({found})" if found else ""
    return f"what the adjustment does not set: {own}{why}"


def _source(container: JsonObject) -> str:
    source: str = container["source"]
    # One that sets classes only leaves the source as it is.
    name = container["adjustment"] if source == "adjustment" else ""
    return f"{source} {name}".strip()


def _line(title: str, text: str) -> str:
    return f"  {title:<8} {text}"


def _compared(found: JsonObject | None, decided: JsonObject, missing: str) -> str:
    """Describe values of the kernel or of the runtime, compared with the decided."""
    if found is None:
        return missing
    others = [key for key in ("cpus", "mems") if decided[key] not in ("", found[key])]
    if not others:
        return "as decided"
    return f"CPUs {found['cpus'] or 'any'}; memory of nodes {found['mems'] or 'any'}"


def _delivery(delivery: JsonObject) -> Iterator[str]:
    if seconds := delivery["waitingSeconds"]:
        waited = duration_text(int(seconds))
        yield _line("pending", f"for {waited}: {delivery['waitsFor']}")
    if why := delivery["why"]:
        yield _line("updates", f"by the runtime: {why}")


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
