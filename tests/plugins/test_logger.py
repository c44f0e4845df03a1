"""The logger as a process, on both ways to a runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nri_proto import NriLevel
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime
from tests.plugins.programs import (
    PLUGINS,
    check_dropped,
    installed,
    run_to_end,
    running,
)
from tests.plugins.stories import LEVELS

pytestmark = pytest.mark.process

LOGGER = PLUGINS / "logger"

TITLES = [
    ("plugin", "request", "RegisterPlugin"),
    ("runtime", "request", "Configure"),
    ("plugin", "reply", "Configure"),
    ("runtime", "reply", "RegisterPlugin"),
    ("runtime", "request", "Synchronize"),
    ("plugin", "reply", "Synchronize"),
]


def exchange(method: str) -> list[tuple[str, str, str]]:
    return [("runtime", "request", method), ("plugin", "reply", method)]


async def two_pods(runtime: Runtime) -> None:
    for namespace in ("default", "kube-system"):
        pod = await runtime.run_pod(Pod(name="web", namespace=namespace))
        for name in ("app", "sidecar"):
            await runtime.create_container(pod.id, Container(name=name))


async def printed(runtime: Runtime, *flags: str) -> list[dict[str, Any]]:
    """What the logger prints while two pods with two containers each start."""
    async with runtime:
        socket = str(runtime.socket_path)
        async with running(LOGGER, "--socket", socket, *flags) as process:
            await runtime.synchronized("99-logger")
            await two_pods(runtime)
        assert process.stdout is not None
        text = (await process.stdout.read()).decode()
    if "json" in flags:
        return [json.loads(line) for line in text.splitlines()]
    return list(yaml.safe_load_all(text))


def titles(entries: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (str(entry["from"]), kind, str(entry[kind]))
        for entry in entries
        for kind in ("request", "reply")
        if kind in entry
    ]


def subjects(entries: list[dict[str, Any]]) -> list[str]:
    """Namespace and names of the requests that concern a pod."""
    found = []
    for entry in entries:
        match entry:
            case {"request": _, "message": {"pod": pod, "container": container}}:
                found.append(f"{pod['namespace']}/{pod['name']}/{container['name']}")
            case {"request": _, "message": {"pod": pod}}:
                found.append(f"{pod['namespace']}/{pod['name']}")
    return found


@pytest.mark.parametrize("style", ["yaml", "json"])
async def test_prints_every_message_both_ways(tmp_path: Path, style: str) -> None:
    entries = await printed(Runtime(tmp_path), "--format", style)

    per_container = [
        *exchange("CreateContainer"),
        *exchange("ValidateContainerAdjustment"),
        *exchange("PostCreateContainer"),
    ]
    per_pod = [*exchange("RunPodSandbox"), *per_container, *per_container]
    assert sorted(titles(entries)) == sorted([*TITLES, *per_pod, *per_pod])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(
            ["--events", "RunPodSandbox"],
            ["default/web", "kube-system/web"],
            id="one event is subscribed to",
        ),
        pytest.param(
            ["--events", "pod,createcontainer", "--namespaces", "kube-*"],
            ["kube-system/web", "kube-system/web/app", "kube-system/web/sidecar"],
            id="namespaces by shell patterns",
        ),
        pytest.param(
            ["--events", "pod,createcontainer", "--names", "app,missing"],
            ["default/web/app", "kube-system/web/app"],
            id="by the name of a container",
        ),
        pytest.param(
            ["--events", "pod,createcontainer", "--names", "w?b", "--namespaces", "d*"],
            ["default/web", "default/web/app", "default/web/sidecar"],
            id="by the name of a pod, with its containers",
        ),
    ],
)
async def test_prints_the_selected_events(
    tmp_path: Path, flags: list[str], expected: list[str]
) -> None:
    assert subjects(await printed(Runtime(tmp_path), *flags)) == expected


@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_requests_of_every_level_are_printed(
    tmp_path: Path, level: NriLevel
) -> None:
    entries = await printed(Runtime(tmp_path, level), "--events", "pod,createcontainer")

    assert subjects(entries) == [
        *("default/web", "default/web/app", "default/web/sidecar"),
        *("kube-system/web", "kube-system/web/app", "kube-system/web/sidecar"),
    ]


async def test_old_runtimes_report_events_by_state_change(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path, NriLevel(0, 8), version="v2.1.0")

    entries = await printed(runtime, "--events", "pod")

    sent = [item["message"] for item in entries if item.get("request") == "StateChange"]
    assert [message["event"] for message in sent] == ["RUN_POD_SANDBOX"] * 2


async def test_a_late_logger_prints_its_part_of_the_node(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        await two_pods(runtime)
        flags = ("--socket", str(runtime.socket_path), "--namespaces", "kube-system")
        async with running(LOGGER, *flags, "--names", "app") as process:
            await runtime.synchronized("99-logger")
        assert process.stdout is not None
        entries = list(yaml.safe_load_all(await process.stdout.read()))

    sent = next(entry for entry in entries if entry.get("request") == "Synchronize")
    assert [item["name"] for item in sent["message"]["containers"]] == ["app"]
    assert "pods" not in sent["message"]


async def test_launched_by_the_runtime_it_obeys_its_document(tmp_path: Path) -> None:
    log_file = tmp_path / "log"
    config = f"logFile: {log_file}\nevents: [RunPodSandbox]\nformat: json\n"
    options = installed(LOGGER, "logger", config, tmp_path)
    async with Runtime(tmp_path, options=options) as runtime:
        assert runtime.plugins == ("10-logger",)
        await two_pods(runtime)
        process = runtime.processes[0]
    entries = [json.loads(line) for line in log_file.read_text().splitlines()]

    assert process.exit_status == 0
    assert titles(entries)[:6] == TITLES or sorted(titles(entries)[:6]) == sorted(
        TITLES
    )
    assert titles(entries)[6:] == exchange("RunPodSandbox") * 2
    assert "RegisterPlugin" not in (tmp_path / "output").read_text()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param(
            "evnets: [pod]",
            "$.evnets: unknown key, did you mean events?",
            id="an unknown key",
        ),
        pytest.param("events: [pods]", "$.events: unknown event 'pods'", id="no event"),
        pytest.param("events: 5", "$.events: expected a list, not 5", id="no list"),
        pytest.param(
            "format: xml",
            "$.format: unknown value, expected json or yaml",
            id="no format",
        ),
        pytest.param("logFile: 1", "$.logFile: expected text, not 1", id="no path"),
        pytest.param("[pod]", "$: expected a mapping, not a list", id="no keys"),
        pytest.param("a: [", "did not find expected node content", id="no YAML"),
        pytest.param(
            "logFile: /no/where",
            "$.logFile: cannot write /no/where: No such file or directory",
            id="a file that cannot be",
        ),
    ],
)
async def test_a_bad_document_is_reported_to_the_runtime(
    tmp_path: Path, config: str, sentence: str
) -> None:
    options = installed(LOGGER, "logger", config, tmp_path)
    await check_dropped(tmp_path, options, sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--index", "7"], "plugin index '7': two digits", id="index"),
        pytest.param(["--name", "a,b"], "plugin name 'a,b': only letters", id="name"),
        pytest.param(
            ["--events", "pods"], "--events: unknown event 'pods'", id="event"
        ),
        pytest.param(
            ["--format", "xml"],
            "--format: unknown value, expected json or yaml",
            id="format",
        ),
        pytest.param(
            ["--log-file", "/no/where"],
            "--log-file: cannot write /no/where: No such file",
            id="log file",
        ),
    ],
)
def test_bad_flags_end_it_with_status_2(arguments: list[str], sentence: str) -> None:
    status, said = run_to_end(LOGGER, *arguments, "--socket", "/no/socket")

    assert (status, "Traceback" in said) == (2, False)
    assert sentence in said.splitlines()[-1]


def test_no_socket_ends_it_with_status_1(tmp_path: Path) -> None:
    status, said = run_to_end(LOGGER, "--socket", str(tmp_path / "none"))

    assert (status, len(said.splitlines())) == (1, 1)
    assert f"cannot connect to the NRI socket {tmp_path / 'none'}: no such file" in said
