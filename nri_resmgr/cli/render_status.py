"""The state of a daemon and its node as tables and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.cli.amounts import count_cpus, cpus_text, duration_text, size_text
from nri_resmgr.cli.look import PLAIN, Look
from nri_resmgr.cli.tables import fold_words, format_table
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


_TITLE: Final = 13  # columns of the titles of facts
_GAP: Final = "  "
_NARROWEST: Final = 20  # columns of a text
_PROBLEM: Final = "high"
"""The style of what an operator has to look at."""

# Verdicts on cgroups that are no problem.
_QUIET: Final = ("as-decided", "pending", "not-running", "not-pinned")


class Fact(msgspec.Struct, frozen=True):
    """A sentence of the summary; an empty title continues the fact above."""

    title: str
    text: str
    style: str = ""


def of_namespace(state: JsonObject, namespace: str) -> JsonObject:
    """Return the state with what belongs to a namespace only.

    What is the node's stays whole: pools, amounts and the summary's counts.
    """
    lists = ("containers", "reservations", "preparedClaims", "sandboxes")
    kept: JsonObject = {
        key: [one for one in state[key] if one["namespace"] == namespace]
        for key in lists
    }
    if state["host"]:
        start = f"{namespace}/"
        isolated = [
            one
            for one in state["host"]["isolated"]
            if one["container"].startswith(start)
        ]
        kept["host"] = state["host"] | {"isolated": isolated}
    return state | kept


def render_status(
    state: JsonObject, look: Look = PLAIN, *, is_wide: bool = False, namespace: str = ""
) -> str:
    """Write the summary, and tables of pools and containers.

    Args:
        state: The answer of the daemon.
        look: Colours, and the width to which lines are folded.
        is_wide: Whether tables have all columns, instead of those that fit 80 columns.
        namespace: The only namespace whose containers are shown; empty for all.
    """
    lines = [look.paint("title", line) for line in _folded(_headline(state), look)]
    lines += (line for fact in _summary(state) for line in _lines(fact, look))
    parts = ["\n".join(lines)]
    if state["pools"]:
        parts.append(_pools(state["pools"], look, is_wide=is_wide))
    if state["host"] and state["host"]["classes"]:
        parts.append(cpu_class_table(state["host"], look))
    shown = of_namespace(state, namespace) if namespace else state
    if shown["host"] and shown["host"]["isolated"]:
        parts.append(isolation_table(shown["host"], look))
    parts += class_tables(state["classes"], look)
    if state["extendedResources"]:
        parts.append(_resources(state["extendedResources"], look))
    if shown["containers"]:
        parts.append(_containers(shown["containers"], look, is_wide=is_wide))
    elif namespace:
        parts.append(f"no containers in namespace {namespace}")
    if shown["reservations"]:
        parts.append(_reservations(shown["reservations"], look))
    if claims := shown["preparedClaims"]:
        parts.append(_prepared_claims(claims, state["containers"], look))
    if shown["sandboxes"]:
        parts.append(_sandboxes(shown["sandboxes"], look))
    return "\n\n".join(parts)


def _lines(fact: Fact, look: Look) -> Iterator[str]:
    title = fact.title
    for text in _folded(fact.text, look, _TITLE + len(_GAP)):
        line = f"{title:<{_TITLE}}{_GAP}{text}"
        yield look.paint(fact.style, line) if fact.style else line
        title = ""


def _folded(text: str, look: Look, indent: int = 0) -> list[str]:
    # The least is for the longest words, where a terminal is narrow.
    width = max(look.width - indent, _NARROWEST)
    return fold_words(text, width) if look.width else [text]


def _resources(rows: Iterable[JsonObject], look: Look) -> str:
    cells = (
        (one["name"], one["by"], f"{one['value']} of {one['capacity']}", one["problem"])
        for one in rows
    )
    header = ("extended resource", "by", "available", "problem")
    return format_table(header, cells, look)


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


def _headline(state: JsonObject) -> str:
    daemon = state["daemon"]
    version = f" {daemon['version']}" if daemon["version"] else ""
    dry = "; dry run: nothing is changed" if daemon["dryRun"] else ""
    since = duration_text(daemon["uptimeSeconds"])
    return f"nri-resmgr{version} as {daemon['plugin']}, up {since}{dry}"


def _summary(state: JsonObject) -> Iterator[Fact]:
    session = state["session"]
    number = f", session {session['number']}" if session["number"] > 1 else ""
    runtime = f"{session_text(state)} since {session['since']}{number}"
    yield Fact("runtime", runtime, "" if state["runtime"]["name"] else _PROBLEM)
    yield Fact("policy", state["policy"])
    yield from _configuration(state["configuration"])
    yield from _facts("cluster", _cluster(state["cluster"]))
    for one in state["observability"]:
        yield Fact(one["name"], f"{one['value']}, by {one['source']}")
    for manager in state["kubelet"]:
        yield Fact("kubelet", manager["why"], _PROBLEM)
    for one in state["kubeletServices"]:
        yield Fact("kubelet", _kubelet_service(one))
    if state["containers"]:
        yield Fact("requests", _sources(state["containers"]))
    yield from _facts("claims", _claims(state["cpuClaims"]))
    if found := state["verification"]:
        yield Fact("verified", _verified(found))
    yield from _facts("updates", _updates(state))
    if (checkpoint := state["checkpoint"]) and checkpoint["isFailing"]:
        why = "not written: a restart has to infer placements"
        yield Fact("state", why, _PROBLEM)
    for part in state["parts"]:
        yield Fact("failing" if part["why"] else "hanging", _part(part), _PROBLEM)
    if host := state["host"]:
        yield from _facts("host", host_lines(host))
    yield from exclusivity_facts(state["exclusivity"])
    yield from (Fact(*line) for line in class_lines(state["classes"]))
    cpus = state["cpus"]
    counts = ", ".join(f"{count_cpus(cpus[word])} {word}" for word in CPU_KINDS)
    yield Fact("CPUs", f"{count_cpus(cpus['online'])} online: {counts}")
    for node in state["nodes"]:
        yield Fact(f"node {node['id']}", _node(node))


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


def _facts(name: str, texts: Iterable[str]) -> Iterator[Fact]:
    for place, text in enumerate(texts):
        yield Fact("" if place else name, text)


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


def exclusivity_facts(found: JsonObject) -> Iterator[Fact]:
    """Describe partitions; nothing where none are configured."""
    if found["configured"] == "cpuset":
        return
    if found["whyNot"]:
        text = f"cpuset instead of {found['configured']}: {found['whyNot']}"
        yield Fact("exclusivity", text, _PROBLEM)
        return
    partitions = found["partitions"]
    in_force = sum(one["inForce"] for one in partitions)
    of_all = f"{in_force} of {count_text(len(partitions), 'partition')}"
    yield Fact("exclusivity", f"{found['configured']}, {of_all} in force")
    for one in partitions:
        if not one["inForce"]:
            yield Fact("", f"{one['container']}: {one['why']}", _PROBLEM)


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


def _configuration(found: JsonObject) -> Iterator[Fact]:
    where = f"{found['source']} {found['name']}".strip()
    cached = ", cached" if found["cached"] else ""
    when = f", since {found['accepted']}" if found["accepted"] else ""
    generation = f"generation {found['generation']}"
    yield Fact("configuration", f"{where}{cached}, {generation}{when}")
    if error := found["error"]:
        where = f"{error['source']} {error['name']}".strip()
        why = f"refused at {error['when']} from {where}: {error['why']}"
        yield Fact("", why, _PROBLEM)
    if found["ineffective"]:
        yield Fact("", f"no effect: {', '.join(found['ineffective'])}")
    for one in found["leftOut"]:
        yield Fact("", f"left out: {one['path']}: {one['why']}", _PROBLEM)


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


# The columns of pools and containers that fit 80 columns; the wide form has all.
_OF_POOL: Final = ("pool", "CPUs", "shared", "exclusive", "granted", "free", "memory")
_OF_CONTAINER: Final = ("container", "asks", "pool", "CPUs", "exclusive", "nodes")
_IN_FORCE: Final = "in force"


def _columns(
    rows: Sequence[Mapping[str, str]],
    names: Sequence[str],
    look: Look,
    styles: Sequence[str] = (),
) -> str:
    """Format some columns of rows, which have their cells by the column's name."""
    shown = [[row[name] for name in names] for row in rows]
    return format_table(names, shown, look, styles)


def _pools(pools: list[JsonObject], look: Look, *, is_wide: bool) -> str:
    # A pool comes after the one that it is part of.
    depths: dict[str, int] = {}
    for pool in pools:
        depths[pool["name"]] = depths.get(pool["within"], -1) + 1
    rows = [_pool(pool, depths[pool["name"]], is_wide=is_wide) for pool in pools]
    return _columns(rows, tuple(rows[0]) if is_wide else _OF_POOL, look)


def _pool(pool: JsonObject, depth: int, *, is_wide: bool) -> Mapping[str, str]:
    amounts = {key: cpus_text(one) for key, one in pool["cpu"].items()}
    if not is_wide:  # in one column
        amounts["granted"] += f" of {amounts['capacity']}"
    has_memory = bool(pool["memory"]["capacity"])
    return {
        "pool": "  " * depth + pool["name"],
        "kind": pool["labels"].get("type", pool["kind"]),
        "CPUs": pool["cpus"] or "-",
        "shared": pool["shared"] or "-",
        "exclusive": pool["exclusive"] or "-",
        **{key: amounts[key] for key in ("capacity", "granted", "free")},
        "nodes": pool["mems"] or "-",
        "memory": size_text(pool["memory"]["granted"]) if has_memory else "-",
        "containers": str(len(pool["containers"])),
    }


def _containers(containers: list[JsonObject], look: Look, *, is_wide: bool) -> str:
    rows = [_container(one) for one in containers]
    names = tuple(rows[0]) if is_wide else (*_OF_CONTAINER, _IN_FORCE)
    if all(row[_IN_FORCE] == "-" for row in rows):  # as where nothing is verified
        names = tuple(name for name in names if name != _IN_FORCE)
    styles = ["" if _is_quiet(one) else _PROBLEM for one in containers]
    return _columns(rows, names, look, styles)


def _container(one: JsonObject) -> Mapping[str, str]:
    return {
        "container": f"{one['namespace']}/{one['pod']}/{one['name']}",
        "QoS": one["qos"],
        "asks": cpus_text(one["request"]["cpu"]),
        "limit": cpus_text(one["request"]["cpuLimit"]),
        "memory": size_text(one["request"]["memory"]),
        "pool": one["pool"] or "-",
        "CPUs": one["cpus"] or "any",
        "exclusive": one["exclusive"] or "-",
        "nodes": one["mems"] or "any",
        "request from": f"{one['source']} ({one['accuracy']})",
        _IN_FORCE: in_force_text(one),
    }


def _is_quiet(one: JsonObject) -> bool:
    return not one["verification"] or one["verification"]["verdict"] in _QUIET


def _reservations(reservations: list[JsonObject], look: Look) -> str:
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
        look,
    )


def _prepared_claims(
    claims: list[JsonObject], containers: list[JsonObject], look: Look
) -> str:
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
        look,
    )


def _sandboxes(sandboxes: list[JsonObject], look: Look) -> str:
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
        look,
    )


def _sandbox_in_force(one: JsonObject) -> str:
    if one["why"]:
        return f"no: {one['why']}"
    pinned = any(one["decided"].values())
    return "yes" if one["inForce"] else "pending" if pinned else "-"


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


def class_tables(found: JsonObject, look: Look = PLAIN) -> Iterator[str]:
    """Format a table for each kind that has classes."""
    rdt, blockio = found["rdt"], found["blockio"]
    if rdt and rdt["classes"]:
        yield format_table(_RDT, [_rdt_row(one) for one in rdt["classes"]], look)
    if blockio and blockio["classes"]:
        rows = [_blockio_row(one) for one in blockio["classes"]]
        yield format_table(_BLOCKIO, rows, look)
    if (memory := found["memory"]) and memory["classes"]:
        rows = [_memory_row(one) for one in memory["classes"]]
        yield format_table(_MEMORY, rows, look)
    if limits := found["topTier"]:
        yield format_table(_TOP_TIER, [_limit_row(one) for one in limits], look)


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


def cpu_class_table(found: JsonObject, look: Look = PLAIN) -> str:
    """Format CPU classes with the settings of their CPUs, wanted and found."""
    header = ("CPU class", "CPUs", "containers", "setting", "wanted", "found")
    rows = [row for one in found["classes"] for row in _rows_of(one)]
    return format_table(header, rows, look)


def isolation_table(found: JsonObject, look: Look = PLAIN) -> str:
    """Format the isolation of containers, with the CPUs that it is about."""
    header = ("isolated container", "exclusive", "what", "setting", "CPUs", "problem")
    rows = []
    for one in found["isolated"]:
        head = (one["container"], one["cpus"])
        for each in one["isolations"]:
            cpus, problem = each["cpus"] or "-", each["problem"] or "-"
            rows.append((*head, each["what"], each["setting"], cpus, problem))
            head = ("", "")
    return format_table(header, rows, look)


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
