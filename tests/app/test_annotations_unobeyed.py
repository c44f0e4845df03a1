"""Annotations that the policy in force does not obey are reported, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.annotations.unobeyed import StrictlyUnobeyed
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.scenario.read import document_of
from nri_resmgr.stub.model import Container, LinuxContainer, LinuxPod, Pod
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values.annotations import BadAnnotation
from tests.app.node import asking_for

SOFT = {"hide-hyperthreads.resource-policy.nri.io/pod": "true"}
STRICT = {"require-isolated-cpus.resource-policy.nri.io/pod": "true"}
SENTENCE = "annotation hide-hyperthreads has no effect: StaticPolicy does not obey it"


def started(folder: Path, kind: str = "StaticPolicy") -> tuple[ResourcePolicy, History]:
    history = History()
    plugin = ResourcePolicy(
        parse_spec("1s1n4c1t"),
        parse_config(document_of(kind)),
        tree=HostTree(folder),
        observers=[history],
    )
    return plugin, history


def pod_with(annotations: dict[str, str]) -> tuple[Pod, Container]:
    linux = LinuxPod(cgroup_parent="/kubepods.slice/kubepods-podweb.slice")
    pod = Pod(
        id="p", name="web", namespace="default", annotations=annotations, linux=linux
    )
    resources = LinuxContainer(resources=asking_for(1))
    return pod, Container(id="c", pod_sandbox_id="p", name="app", linux=resources)


def reported(lines: list[Any]) -> list[tuple[str, str, str]]:
    return [
        (one["container"], one["key"], one["why"])
        for one in lines
        if one["event"] == "annotation.ineffective"
    ]


def test_a_key_without_effect_is_reported_once(tmp_path: Path) -> None:
    plugin, history = started(tmp_path)
    pod, container = pod_with(SOFT)
    with capture_logs() as lines:
        plugin.create_container(pod, container)
        plugin.update_container(pod, container, asking_for(2))
        plugin.synchronize([pod], [container])

    why = "StaticPolicy does not obey it"
    assert reported(lines) == [("app", "hide-hyperthreads", why)]
    assert [
        (row.title, row.why) for row in history.rows_of_kind("annotation.ineffective")
    ] == [("default/web/app", SENTENCE)]


def test_the_next_container_of_the_same_pod_is_reported_again(tmp_path: Path) -> None:
    plugin, _ = started(tmp_path)
    pod, container = pod_with(SOFT)
    with capture_logs() as lines:
        for _ in range(2):
            plugin.create_container(pod, container)
            plugin.stop_container(pod, container)
            plugin.remove_container(pod, container)

    assert len(reported(lines)) == 2


def test_a_strict_key_refuses_and_leaves_nothing(tmp_path: Path) -> None:
    plugin, _ = started(tmp_path)
    pod, container = pod_with(STRICT)
    with pytest.raises(StrictlyUnobeyed, match="require-isolated-cpus is strict"):
        plugin.create_container(pod, container)

    assert dict(plugin.state.ledger.entries) == {}


def test_a_container_that_runs_is_not_refused(tmp_path: Path) -> None:
    plugin, _ = started(tmp_path)
    pod, container = pod_with(STRICT)
    with capture_logs() as lines:
        plugin.synchronize([pod], [container])

    assert [key for _, key, _ in reported(lines)] == ["require-isolated-cpus"]
    assert list(plugin.state.ledger.entries) == ["c"]


def test_where_nothing_is_pinned_strict_keys_are_reported_once(tmp_path: Path) -> None:
    plugin, history = started(tmp_path, "NonePolicy")
    pod, container = pod_with(STRICT)
    with capture_logs() as lines:
        plugin.create_container(pod, container)
        plugin.update_container(pod, container, asking_for(2))

    why = "NonePolicy does not obey it"
    assert reported(lines) == [("app", "require-isolated-cpus", why)]
    assert len(list(history.rows_of_kind("annotation.ineffective"))) == 1
    assert list(plugin.state.ledger.entries) == ["c"]


@pytest.mark.parametrize("key", ["cpu.preserve", "strict.topologyhints", "cpu-class"])
def test_where_nothing_is_pinned_mistakes_about_places_refuse_nothing(
    tmp_path: Path, key: str
) -> None:
    plugin, _ = started(tmp_path, "NonePolicy")
    with capture_logs() as lines:
        plugin.create_container(*pod_with({f"{key}.resource-policy.nri.io": "a b"}))

    ignored = [one["key"] for one in lines if one["event"] == "annotation.ignored"]
    assert ignored == [f"{key}.resource-policy.nri.io"]
    assert list(plugin.state.ledger.entries) == ["c"]


@pytest.mark.parametrize("key", ["rdtclass", "blockioclass"])
def test_mistakes_in_classes_refuse_whatever_the_policy(
    tmp_path: Path, key: str
) -> None:
    plugin, _ = started(tmp_path, "NonePolicy")
    with pytest.raises(BadAnnotation, match=f"annotation {key}"):
        plugin.create_container(*pod_with({f"{key}.resource-policy.nri.io": "a b"}))


def test_scheduling_classes_are_obeyed_where_nothing_is_pinned(tmp_path: Path) -> None:
    plugin, _ = started(tmp_path, "NonePolicy")
    key = "scheduling-class.resource-policy.nri.io"
    with capture_logs() as lines:
        plugin.create_container(*pod_with({key: "slow"}))

    assert reported(lines) == []


def test_another_policy_reports_the_annotations_it_does_not_obey(
    tmp_path: Path,
) -> None:
    plugin, _ = started(tmp_path, "TopologyAwarePolicy")
    pod, container = pod_with(SOFT)
    with capture_logs() as lines:
        plugin.create_container(pod, container)
        before = reported(lines)
        reconfigure(plugin, parse_config(document_of("StaticPolicy")))
        reconfigure(plugin, parse_config(document_of("StaticPolicy")))

    assert before == []
    assert [key for _, key, _ in reported(lines)] == ["hide-hyperthreads"]
