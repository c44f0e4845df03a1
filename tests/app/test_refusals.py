"""A refused request has one line of the log and one event, however often it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.observers.observer import Subject
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.refusal_log import REFUSED
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.control.events import event_of
from nri_resmgr.policies import parse_config
from nri_resmgr.testing import RuntimeRefusal
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import PolicyError
from tests.app.node import asking_for, config, running_node
from tests.app.test_annotations_unobeyed import pod_with


def started() -> tuple[ResourcePolicy, History]:
    history = History()
    plugin = ResourcePolicy(
        parse_spec("1s1n4c1t"), parse_config(config("{}")), observers=[history]
    )
    return plugin, history


def refuse(plugin: ResourcePolicy, cpus: float, times: int = 1) -> None:
    pod, container = pod_with({})
    for _ in range(times):
        with pytest.raises(PolicyError):
            plugin.update_container(pod, container, asking_for(cpus))


def of_refusals(lines: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (one["event"], one["log_level"], one.get("times", 1))
        for one in lines
        if "refused" in one["event"]
    ]


def test_retries_have_few_lines_and_one_event() -> None:
    plugin, history = started()
    plugin.create_container(*pod_with({}))
    with capture_logs() as lines:
        refuse(plugin, 9, times=1200)

    assert of_refusals(lines) == [
        ("container.refused", "warning", 1),
        ("container.still-refused", "info", 10),
        ("container.still-refused", "info", 100),
        ("container.still-refused", "info", 1000),
    ]
    (row,) = history.rows_of_kind(REFUSED)
    assert history.times(row) == 1200


def test_another_sentence_is_another_refusal() -> None:
    plugin, history = started()
    plugin.create_container(*pod_with({}))
    with capture_logs() as lines:
        for cpus in (9, 10, 9, 10):
            refuse(plugin, cpus)

    assert of_refusals(lines) == [("container.refused", "warning", 1)] * 2
    assert [history.times(row) for row in history.rows_of_kind(REFUSED)] == [2, 2]


def test_after_a_grant_the_same_refusal_is_a_new_one() -> None:
    plugin, history = started()
    pod, container = pod_with({})
    plugin.create_container(pod, container)
    with capture_logs() as lines:
        refuse(plugin, 9, times=2)
        plugin.update_container(pod, container, asking_for(2))
        refuse(plugin, 9, times=3)

    assert of_refusals(lines) == [("container.refused", "warning", 1)] * 2
    rows = history.rows_of_kind(REFUSED)
    assert [history.times(row) for row in rows] == [2, 3]
    assert len({event_of(row)["number"] for row in rows}) == 2


def test_an_event_that_was_dropped_comes_again() -> None:
    history = History(max_weight=3)
    for _ in range(2):
        history.refused(Subject("shop", "web", "app"), PolicyError("no room"))
        for number in range(4):
            history.note("session.ended", why=str(number))
    history.refused(Subject("shop", "web", "app"), PolicyError("no room"))

    (row,) = history.rows_of_kind(REFUSED)
    assert (row.why, history.last) == ("no room", 11)


async def test_the_line_names_the_container_and_there_is_no_other(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, machine="1s1n4c1t") as node:
        await node.run_pod("web")
        with capture_logs() as lines:
            for _ in range(2):
                with pytest.raises(RuntimeRefusal, match="asks for 9 exclusive CPUs"):
                    await node.create("web", 9)

    concerned = [one for one in lines if one["log_level"] in ("warning", "error")]
    assert [
        (one["event"], one["namespace"], one["pod"], one["container"])
        for one in concerned
    ] == [("container.refused", "default", "web", "web")]
    assert concerned[0]["why"].startswith("default/web/web asks for 9 exclusive CPUs")
