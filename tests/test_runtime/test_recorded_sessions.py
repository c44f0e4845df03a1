"""Sessions that the logger recorded, replayed with other plugins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import (
    Configuration,
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    Pod,
    RequestRejected,
)
from nri_resmgr.testing import BadSession, ReplayedAnswer, SessionReplayer
from nri_resmgr.testing.recording import parse_session
from tests.plugins.stories import LEVELS
from tests.test_runtime.logged_session import Witness, record


@pytest.mark.process
@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_a_plugin_sees_what_one_beside_the_logger_saw(
    tmp_path: Path, level: NriLevel
) -> None:
    recorded = await record(tmp_path, tmp_path / "session.jsonl", level)
    witness = Witness()

    answers = await SessionReplayer(tmp_path, tmp_path)("session.jsonl", witness)

    assert witness.seen == recorded.seen
    assert len(answers) == len(witness.seen) > 10


class Configured:
    """Notes the runtime, answers every request that can be answered, or refuses it."""

    def configure(self, configuration: Configuration) -> None:
        self.found = (configuration.text, configuration.runtime)

    def synchronize(
        self, _pods: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> list[ContainerUpdate]:
        return [ContainerUpdate(one.id).set_cpus("0") for one in containers]

    def create_container(self, pod: Pod, _container: Container) -> ContainerAdjustment:
        return ContainerAdjustment().set_env("POD", pod.name)

    def stop_container(self, _pod: Pod, _container: Container) -> list[ContainerUpdate]:
        return [ContainerUpdate("kept").set_cpus("1")]

    def remove_pod_sandbox(self, _pod: Pod) -> None:
        raise RequestRejected("never")


@pytest.mark.process
@pytest.mark.parametrize(
    ("runtime", "level"),
    [
        ("containerd", NriLevel(0, 8)),
        ("cri-o", NriLevel(0, 12)),
    ],
)
async def test_answers_are_those_of_the_plugin(
    tmp_path: Path, runtime: str, level: NriLevel
) -> None:
    file = tmp_path / "session.jsonl"
    await record(tmp_path, file, level, runtime)
    plugin = Configured()

    answers = await SessionReplayer(tmp_path, Path("/"))(file, plugin, config="ahoy")

    text, found = plugin.found
    assert (text, found.name, found.level) == ("ahoy", runtime, level)
    rows = json.loads(f"[{','.join(file.read_text().splitlines())}]")
    said = [about(one, rows[one.line - 1]) for one in answers]
    assert said == [
        ("Synchronize", "", [("kept", "0"), ("gone", "0")], {}, ""),
        ("StopContainer", "gone", [("kept", "1")], {}, ""),
        ("CreateContainer", "app", [], {"POD": "web"}, ""),
        ("StopContainer", "app", [("kept", "1")], {}, ""),
        ("RemovePodSandbox", "", [], {}, "never"),
    ]


def about(answer: ReplayedAnswer, row: dict[str, Any]) -> tuple[Any, ...]:
    assert row["request"] in (answer.request, "StateChange")
    container = answer.container
    environment = {one.key: one.value for one in answer.adjustment.env}
    cpus = [
        (one.container_id, one.linux.resources.cpu.cpus)
        for one in answer.updates
        if one.linux and one.linux.resources and one.linux.resources.cpu
    ]
    name = container.name if container is not None else ""
    return answer.request, name, cpus, environment, answer.refused


def line(request: str, message: object = None, sender: str = "runtime") -> str:
    return json.dumps({"from": sender, "request": request, "message": message or {}})


START = (line("RegisterPlugin", sender="plugin"), line("Configure"))
SYNCHRONIZE = line("Synchronize")


@pytest.mark.parametrize(
    ("lines", "number", "why"),
    [
        ((), 1, "no Configure and Synchronize; record from the start of the plugin"),
        (START, 1, "no Configure and Synchronize; record from the start"),
        ((SYNCHRONIZE,), 1, "no Configure and Synchronize"),
        ((*START, SYNCHRONIZE, *START, SYNCHRONIZE), 5, "a second session; remove"),
        ((*START, SYNCHRONIZE, "{"), 4, "not a line of `nri-resmgr plugin logger"),
        ((*START, "[]", SYNCHRONIZE), 3, "not a line of `nri-resmgr plugin logger"),
        (("from: runtime",), 1, "not a line of `nri-resmgr plugin logger"),
        (("{}",), 1, "not a line of `nri-resmgr plugin logger"),
        (("[" * 100_000,), 1, "not a message of NRI"),
        ((*START, line("Synchronize", {"pods": 7})), 3, "not a message of NRI: "),
        ((*START, line("Synchronize", {"pots": []})), 3, "not a message of NRI: "),
    ],
)
def test_other_files_are_errors_with_a_line(
    lines: tuple[str, ...], number: int, why: str
) -> None:
    with pytest.raises(BadSession) as bad:
        parse_session("\n".join(lines), "a.jsonl")

    assert str(bad.value).startswith(f"a.jsonl: line {number}: {why}")


@pytest.mark.parametrize(
    "added",
    [
        lambda: line("StateChange", {"event": 99}),
        lambda: line("SomethingNew", {"field": 1}),
        lambda: line("UpdateContainers", {"field": 1}, "plugin"),
        lambda: json.dumps({"from": "plugin", "reply": "Synchronize", "error": "no"}),
    ],
    ids=["an event", "a call", "a call of the plugin", "an error"],
)
def test_what_is_no_request_for_a_handler_is_left_out(added: Callable[[], str]) -> None:
    session = parse_session("\n".join((*START, SYNCHRONIZE, added())), "a.jsonl")

    assert session.requests == ()
