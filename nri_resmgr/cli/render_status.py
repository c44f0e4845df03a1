"""The state of a daemon and its node as tables and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from nri_resmgr.cli.amounts import count_cpus, cpus_text, duration_text, size_text
from nri_resmgr.cli.tables import format_table
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject

CPU_KINDS: Final = ("exclusive", "shared", "reserved", "isolated", "idle")

_SHOWN: Final = 10  # containers that a document would change

_OF_FILES: Final = {
    "failing": "failing",
    "drifting": "changed by other programs",
    "abandoned": "abandoned",
}
_OF_INTERRUPTS: Final = {
    "unplaced": "not placed",
    "refused": "refused by the kernel",
}

_RDT: Final = ("RDT class", "wanted", "found", "threads", "containers")
_BLOCKIO: Final = ("block I/O class", "files", "problems", "containers")
_TOP_TIER: Final = ("limit of fast memory", "size", "state")
_MEMORY: Final = ("memory class", "kind", "settings", "containers")


def render_status(state: JsonObject) -> str:
    """Write the summary, the pools and the containers."""
    parts = ["\n".join(_summary(state))]
    if state["pools"]:
        parts.append(_pools(state["pools"]))
    if state["host"] and state["host"]["classes"]:
        parts.append(cpu_class_table(state["host"]))
    if state["host"] and state["host"]["isolated"]:
        parts.append(isolation_table(state["host"]))
    parts += class_tables(state["classes"])
    if state["extendedResources"]:
        parts.append(_resources(state["extendedResources"]))
    if state["containers"]:
        parts.append(_containers(state["containers"]))
    if state["reservations"]:
        parts.append(_reservations(state["reservations"]))
    if claims := state.get("preparedClaims"):  # an older daemon has none
        parts.append(_prepared_claims(claims, state["containers"]))
    if state["sandboxes"]:
        parts.append(_sandboxes(state["sandboxes"]))
    return "\n\n".join(parts)


def _resources(rows: Iterable[JsonObject]) -> str:
    cells = (
        (one["name"], one["by"], f"{one['value']} of {one['capacity']}", one["problem"])
        for one in rows
    )
    return format_table(("extended resource", "by", "available", "problem"), cells)


def session_text(state: JsonObject) -> str:
    """Describe the session with the runtime."""
    runtime, session = state["runtime"], state["session"]
    if not runtime["name"]:
        why = f": {session['endedWhy']}" if session["endedWhy"] else ""
        return f"none{why}"
    nri = f" (NRI {runtime['nri']})" if runtime["nri"] else ""
    return f"{runtime['name']} {runtime['version']}{nri}, {session['state']}"


def in_force_text(one: JsonObject) -> str:
    """Describe whether a container's values are in force, as far as that is known."""
    if (delivery := one["delivery"]) and delivery["waitingSeconds"]:
        return f"pending for {duration_text(int(delivery['waitingSeconds']))}"
    return verified_text(one["verification"]) if one["verification"] else "-"


def verified_text(found: JsonObject) -> str:
    """Describe the last comparison of a container's cgroup with its decision."""
    differences = (f"{one['kind']} {one['found']}" for one in found["differences"])
    abandoned = " (repairs abandoned)" if found["abandoned"] else ""
    text: str = found["why"] or ", ".join(differences)
    return f"{found['verdict']}{': ' if text else ''}{text}{abandoned}"


def _summary(state: JsonObject) -> Iterator[str]:
    daemon, session = state["daemon"], state["session"]
    version = f" {daemon['version']}" if daemon["version"] else ""
    dry = "; dry run: nothing is changed" if daemon["dryRun"] else ""
    since = duration_text(daemon["uptimeSeconds"])
    yield f"nri-resmgr{version} as {daemon['plugin']}, up {since}{dry}"
    number = f", session {session['number']}" if session["number"] > 1 else ""
    yield _row("runtime", f"{session_text(state)} since {session['since']}{number}")
    yield _row("policy", state["policy"])
    yield from _configuration(state["configuration"])
    yield from _rows("cluster", _cluster(state["cluster"]))
    for one in state["observability"]:
        yield _row(one["name"], f"{one['value']}, by {one['source']}")
    for manager in state["kubelet"]:
        yield _row("kubelet", manager["why"])
    for one in state["kubeletServices"]:
        yield _row("kubelet", _kubelet_service(one))
    if state["containers"]:
        yield _row("requests", _sources(state["containers"]))
    yield from _rows("claims", _claims(state["cpuClaims"]))
    if found := state["verification"]:
        yield _row("verified", _verified(found))
    yield from _rows("updates", _updates(state))
    if (checkpoint := state["checkpoint"]) and checkpoint["isFailing"]:
        yield _row("state", "not written: a restart has to infer placements")
    for part in state["parts"]:
        yield _row("failing" if part["why"] else "hanging", _part(part))
    if host := state["host"]:
        yield from _rows("host", host_lines(host))
    yield from exclusivity_lines(state["exclusivity"])
    yield from (_row(*line) for line in class_lines(state["classes"]))
    cpus = state["cpus"]
    counts = ", ".join(f"{count_cpus(cpus[word])} {word}" for word in CPU_KINDS)
    yield _row("CPUs", f"{count_cpus(cpus['online'])} online: {counts}")
    for node in state["nodes"]:
        yield _row(f"node {node['id']}", _node(node))


def _kubelet_service(one: JsonObject) -> str:
    if one["problem"]:
        return f"{one['service']} not in use: {one['problem']}"
    return f"{one['service']} in use: {one['details']}"


def _sources(containers: list[JsonObject]) -> str:
    """Count containers by the source of their requests, exact ones first."""
    counts = Counter((one["accuracy"], one["source"]) for one in containers)
    found = sorted(counts.items(), key=lambda item: (item[0][0] != "exact", -item[1]))
    parts = (f"{count} by {source} ({how})" for (how, source), count in found)
    return ", ".join(parts)


def _claims(found: JsonObject) -> Iterator[str]:
    if found["conflict"]:
        yield f"their CPUs are not taken: {found['conflict']}"
    for one in found["claims"]:
        users = ", ".join(one["containers"]) or "no container at present"
        yield f"{one['name']} of {one['driver']}: CPUs {one['cpus']}; {users}"
    if count := len(found["waiting"]):
        what = count_text(count, "container waits", "containers wait")
        yield f"{what} for the kubelet's answer, and are not pinned"


def _rows(name: str, lines: Iterable[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield _row("" if place else name, line)


def pending_text(state: JsonObject, key: str = "pendingUpdates") -> str:
    """Describe what waits; empty if nothing does."""
    what = "update" if key == "pendingUpdates" else "record update"
    if not (count := state[key]["count"]):
        return ""
    waited = duration_text(int(state[key]["oldestSeconds"]))
    return f"{count_text(count, what)} pending, the oldest for {waited}"


def _updates(state: JsonObject) -> Iterator[str]:
    found = state["applyUpdates"]
    if found["by"] == "none":
        return
    if writes := found["writes"]:
        again, failed = writes["rewritten"], writes["failed"]
        counts = [count_text(writes["written"], "write")]
        counts += [f"{again} after other programs' writes"] if again else []
        counts += [f"{failed} failed"] if failed else []
        yield f"by cgroups: {', '.join(counts)}"
        if late := writes["lateStarts"]:
            starts = count_text(late, "start")
            yield f"{starts} did not wait until others had left their CPUs"
    else:
        yield f"by the runtime: {found['why']}" if found["why"] else "by the runtime"
    if writes and found["why"]:
        yield f"at present by the runtime: {found['why']}"
    yield from _left_to_runtime(state["containers"], found)
    for key in ("pendingUpdates", "recordUpdates"):
        if text := pending_text(state, key):
            yield text


def _left_to_runtime(containers: list[JsonObject], found: JsonObject) -> Iterator[str]:
    if not (count := found["byRuntime"]):
        return
    why = next(
        (
            f": {one['namespace']}/{one['pod']}/{one['name']}: {one['delivery']['why']}"
            for one in containers
            if one["delivery"] and one["delivery"]["why"] != found["why"]
        ),
        "",
    )
    yield f"{count_text(count, 'container')} by the runtime{why}"


def exclusivity_lines(found: JsonObject) -> Iterator[str]:
    """Describe partitions; nothing where none are configured."""
    if found["configured"] == "cpuset":
        return
    if found["whyNot"]:
        text = f"cpuset instead of {found['configured']}: {found['whyNot']}"
        yield _row("exclusivity", text)
        return
    partitions = found["partitions"]
    in_force = sum(one["inForce"] for one in partitions)
    of_all = f"{in_force} of {count_text(len(partitions), 'partition')}"
    yield _row("exclusivity", f"{found['configured']}, {of_all} in force")
    for one in partitions:
        if not one["inForce"]:
            yield _row("", f"{one['container']}: {one['why']}")


def _part(part: JsonObject) -> str:
    hangs = part["hangsSeconds"]
    texts = [f"waits for the host for {duration_text(int(hangs))}"] if hangs else []
    if part["why"]:
        when = f"at {part['nextTry']}" if part["nextTry"] else "now"
        tries = count_text(part["tries"], "failure")
        texts.append(
            f"{part['why']} (since {part['since']}, {tries}, next try {when}); "
            f"meanwhile {part['meanwhile']}"
        )
    return f"{part['name']}: {'; '.join(texts)}"


def _verified(found: JsonObject) -> str:
    counts = ", ".join(f"{n} {word}" for word, n in found["containers"].items())
    every = f"every {found['intervalSeconds']:g} s"
    if not found["rounds"]:
        return f"not yet; {every}"
    return f"{counts or 'no containers'} at {found['last']}; {every}"


def _configuration(found: JsonObject) -> Iterator[str]:
    where = f"{found['source']} {found['name']}".strip()
    cached = ", cached" if found["cached"] else ""
    when = f", since {found['accepted']}" if found["accepted"] else ""
    yield _row(
        "configuration", f"{where}{cached}, generation {found['generation']}{when}"
    )
    if error := found["error"]:
        where = f"{error['source']} {error['name']}".strip()
        yield _row("", f"refused at {error['when']} from {where}: {error['why']}")
    if found["ineffective"]:
        yield _row("", f"no effect: {', '.join(found['ineffective'])}")
    for one in found["leftOut"]:
        yield _row("", f"left out: {one['path']}: {one['why']}")


def _cluster(found: JsonObject | None) -> Iterator[str]:
    if found is None:
        return
    yield _agent(found)
    if problem := found["spool"]["problem"]:
        yield f"spool folder: {problem}"
    if judged := found["configuration"]:
        why = f": {judged['why']}" if judged["why"] else ""
        name = _object(judged["object"]) or "configuration"
        yield f"{name}: {judged['verdict']} at {judged['since']}{why}"
        if change := judged["wouldChange"]:
            yield from _would_change(change)
        if judged["gone"]:
            yield f"no document for this node since {judged['gone']}"
        if judged["problem"]:
            yield f"configuration file: {judged['problem']}"
    if judged := found["adjustments"]:
        yield from _adjustments(judged)


def _would_change(found: JsonObject) -> Iterator[str]:
    count, shown = found["count"], found["containers"][:_SHOWN]
    yield f"  would change {count_text(count, 'container')}"
    for one in shown:
        parts = [
            f"{name} {one['now'][key] or 'any'} to {one['then'][key] or 'any'}"
            for key, name in (("cpus", "CPUs"), ("mems", "memory nodes"))
            if one["now"][key] != one["then"][key]
        ]
        yield f"  {one['title']}: {', '.join(parts) or 'its weight'}"
    if count > len(shown):
        yield f"  and {count - len(shown)} more; status -o json has up to 100"


def _agent(found: JsonObject) -> str:
    silent = duration_text(int(found["agentSilentSeconds"]))
    if (agent := found["agent"]) is None:
        return f"no agent has reported for {silent}"
    name = f"agent {agent['version']} on {agent['node']}"
    if found["agentAbsent"]:
        return f"{name} has not reported for {silent}"
    contact = agent["contactSeconds"]
    known = "never" if contact is None else f"{duration_text(int(contact))} ago"
    problem = f": {agent['problem']}" if agent["problem"] else ""
    return f"{name} reported {silent} ago, API server last answered {known}{problem}"


def _adjustments(judged: JsonObject) -> Iterator[str]:
    count = count_text(len(judged["objects"]), "adjustment")
    yield f"{count}: {judged['verdict']} at {judged['since']}"
    for text in sorted(set(judged["errors"].values())):
        yield f"  {text}"
    if judged["problem"]:
        yield f"adjustments file: {judged['problem']}"


def _object(found: JsonObject) -> str:
    path = f"{found['namespace']}/{found['name']}".strip("/")
    generation = f" generation {found['generation']}" if found["generation"] else ""
    return f"{found['kind']} {path}".strip() + generation


def _node(node: JsonObject) -> str:
    memory = node["memory"]
    size = f"{size_text(memory['capacity'])} {node['kind']}"
    granted = memory["granted"]
    if granted is not None:
        size += f", {size_text(granted)} granted, {size_text(memory['free'])} free"
    return f"CPUs {node['cpus'] or 'none'}; memory {size}"


def _pools(pools: list[JsonObject]) -> str:
    # A pool comes after the one that it is part of.
    depths: dict[str, int] = {}
    for pool in pools:
        depths[pool["name"]] = depths.get(pool["within"], -1) + 1
    header = ("pool", "kind", "CPUs", "shared", "exclusive", "capacity", "granted")
    return format_table(
        (*header, "free", "nodes", "memory", "containers"),
        [
            (
                "  " * depths[pool["name"]] + pool["name"],
                pool["labels"].get("type", pool["kind"]),
                pool["cpus"] or "-",
                pool["shared"] or "-",
                pool["exclusive"] or "-",
                *(cpus_text(pool["cpu"][key]) for key in ("capacity", "granted")),
                cpus_text(pool["cpu"]["free"]),
                pool["mems"] or "-",
                size_text(pool["memory"]["granted"]) if _has_memory(pool) else "-",
                str(len(pool["containers"])),
            )
            for pool in pools
        ],
    )


def _has_memory(pool: JsonObject) -> bool:
    return bool(pool["memory"]["capacity"])


def _containers(containers: list[JsonObject]) -> str:
    header = (
        "container",
        "QoS",
        "asks",
        "limit",
        "memory",
        "pool",
        "CPUs",
        "exclusive",
    )
    texts = [in_force_text(one) for one in containers]
    known = any(text != "-" for text in texts)
    return format_table(
        (*header, "nodes", "request from", *(("in force",) if known else ())),
        [
            (
                f"{one['namespace']}/{one['pod']}/{one['name']}",
                one["qos"],
                cpus_text(one["request"]["cpu"]),
                cpus_text(one["request"]["cpuLimit"]),
                size_text(one["request"]["memory"]),
                one["pool"] or "-",
                one["cpus"] or "any",
                one["exclusive"] or "-",
                one["mems"] or "any",
                f"{one['source']} ({one['accuracy']})",
                *((text,) if known else ()),
            )
            for one, text in zip(containers, texts, strict=True)
        ],
    )


def _reservations(reservations: list[JsonObject]) -> str:
    return format_table(
        ("reserved for", "asks", "memory", "pool", "CPUs", "nodes", "request from"),
        [
            (
                f"{one['namespace']}/{one['pod']}/{one['name']}",
                cpus_text(one["request"]["cpu"]),
                size_text(one["request"]["memory"]),
                one["pool"],
                one["cpus"] or "shared",
                one["mems"] or "any",
                one["source"],
            )
            for one in reservations
        ],
    )


def _prepared_claims(claims: list[JsonObject], containers: list[JsonObject]) -> str:
    titles = {
        one["id"]: f"{one['namespace']}/{one['pod']}/{one['name']}"
        for one in containers
    }
    return format_table(
        ("prepared claim", "CPUs", "devices", "containers"),
        [
            (
                f"{one['namespace']}/{one['name']}",
                one["cpus"],
                " ".join(f"{part['device']}:{part['cpus']}" for part in one["devices"]),
                " ".join(titles.get(key, key) for key in one["containers"]) or "-",
            )
            for one in claims
        ],
    )


def _sandboxes(sandboxes: list[JsonObject]) -> str:
    return format_table(
        ("virtual machine", "handler", "CPUs", "nodes", "in force"),
        [
            (
                f"{one['namespace']}/{one['pod']}",
                one["handler"],
                one["decided"]["cpus"] or "any",
                one["decided"]["mems"] or "any",
                _sandbox_in_force(one),
            )
            for one in sandboxes
        ],
    )


def _sandbox_in_force(one: JsonObject) -> str:
    if one["why"]:
        return f"no: {one['why']}"
    pinned = any(one["decided"].values())
    return "yes" if one["inForce"] else "pending" if pinned else "-"


def _row(title: str, text: str) -> str:
    return f"{title:<13}  {text}"


def class_lines(found: JsonObject) -> Iterator[tuple[str, str]]:
    """Describe each kind of class in sentences, each with a title."""
    for kind, title in (("rdt", "RDT"), ("blockio", "block I/O")):
        if (one := found[kind]) is None:
            continue
        counts = [count_text(len(one["classes"]), "class", "classes")]
        if one["dropped"]:
            containers = count_text(one["dropped"], "container")
            counts.append(f"{containers} created without a class")
        yield title, ", ".join(counts)
        if problem := one.get("problem"):
            yield "", f"not as configured: {problem}"
        for failing in one["failing"]:
            # A problem of the whole kind is shown once.
            if failing["why"] != one.get("problem"):
                yield "", f"{failing['what']}: {failing['why']}"


def class_tables(found: JsonObject) -> Iterator[str]:
    """Format a table for each kind that has classes."""
    rdt, blockio = found["rdt"], found["blockio"]
    if rdt and rdt["classes"]:
        yield format_table(_RDT, [_rdt_row(one) for one in rdt["classes"]])
    if blockio and blockio["classes"]:
        yield format_table(_BLOCKIO, [_blockio_row(one) for one in blockio["classes"]])
    if (memory := found["memory"]) and memory["classes"]:
        yield format_table(_MEMORY, [_memory_row(one) for one in memory["classes"]])
    if limits := found["topTier"]:
        yield format_table(_TOP_TIER, [_limit_row(one) for one in limits])


def _rdt_row(one: JsonObject) -> tuple[str, ...]:
    wanted = " ".join(one["wanted"]) or ("-" if one["managed"] else "foreign group")
    found = " ".join(one["found"]) or "-"
    return (one["name"], wanted, found, str(one["threads"]), _count(one))


def _blockio_row(one: JsonObject) -> tuple[str, ...]:
    files = "; ".join(
        f"{file} {line}" for file, lines in one["files"].items() for line in lines
    )
    return (one["name"], files or "-", "; ".join(one["notices"]) or "-", _count(one))


def _memory_row(one: JsonObject) -> tuple[str, ...]:
    return (one["name"], one["kind"], one["settings"], _count(one))


def _limit_row(one: JsonObject) -> tuple[str, ...]:
    state = "written" if one["written"] else "not written yet"
    if one["why"]:
        state = f"not in force: {one['why']}"
    return (one["container"], size_text(one["limit"]), state)


def _count(one: JsonObject) -> str:
    return str(len(one["containers"]))


def host_lines(found: JsonObject) -> Iterator[str]:
    """Describe the settings of the host in sentences."""
    if not found["applied"]:
        yield f"not applied: {found['problem']}"
    if files := found["files"]:
        yield ", ".join(_counts(found))
        for one in files["failing"][:1]:
            more = _more(files["failing"])
            yield f"cannot write {one['value']!r} to {one['path']}: {one['why']}{more}"
        for one in files["drifting"][:1]:
            more = _more(files["drifting"])
            what = f"has {one['found']!r} instead of {one['wanted']!r}{more}"
            yield f"{one['path']} {what}"
    for one in found["speedSelect"]:
        yield f"punit {one['punit']}: {one['wanted']}"


def cpu_class_table(found: JsonObject) -> str:
    """Format CPU classes with the settings of their CPUs, wanted and found."""
    header = ("CPU class", "CPUs", "containers", "setting", "wanted", "found")
    return format_table(
        header, [row for one in found["classes"] for row in _rows_of(one)]
    )


def isolation_table(found: JsonObject) -> str:
    """Format the isolation of containers, with the CPUs that it is about."""
    header = ("isolated container", "exclusive", "what", "setting", "CPUs", "problem")
    rows = []
    for one in found["isolated"]:
        head = (one["container"], one["cpus"])
        for each in one["isolations"]:
            cpus, problem = each["cpus"] or "-", each["problem"] or "-"
            rows.append((*head, each["what"], each["setting"], cpus, problem))
            head = ("", "")
    return format_table(header, rows)


def _rows_of(one: JsonObject) -> Iterator[tuple[str, ...]]:
    head = (one["name"], one["cpus"], str(len(one["containers"])))
    for setting in one["settings"]:
        values = (" ".join(setting[key]) for key in ("wanted", "found"))
        yield (*head, setting["what"], *(value or "-" for value in values))
        head = ("", "", "")
    if not one["settings"]:
        yield (*head, "-", "-", "-")


def _counts(found: JsonObject) -> Iterator[str]:
    files, interrupts = found["files"], found["interrupts"]
    yield f"{count_text(files['wanted'], 'file')} set"
    for key, what in _OF_FILES.items():
        if count := len(files[key]):
            yield f"{count} {what}"
    if count := len(interrupts["placed"]):
        yield f"{count_text(count, 'interrupt')} placed"
    for key, what in _OF_INTERRUPTS.items():
        if count := len(interrupts[key]):
            yield f"{count} {what}"


def _more(found: list[JsonObject]) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""
