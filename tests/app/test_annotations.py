from __future__ import annotations

from typing import Any

import pytest

from nri_resmgr.app.annotations import (
    AnnotationProblem,
    BadAnnotation,
    Reading,
    Refused,
    read_preferences,
)
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.preferences import Preferences, TreeLevel
from nri_resmgr.topology import MemoryKind
from nri_resmgr.topology.hint_options import (
    HintOptions,
    HintSource,
    PathMatch,
    PathRule,
)
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import CpuSet, NodeSet

NATIVE = "resource-policy.nri.io"
CRI_RM = "cri-resource-manager.intel.com"

KUBELETS = {
    "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
    "kubernetes.io/config.source": "api",
}


def prefers(**annotations: Any) -> Preferences:
    return Preferences(**annotations)


@pytest.mark.parametrize(
    ("key", "value", "preferences"),
    [
        pytest.param(
            "prefer-isolated-cpus", "true", prefers(isolated=True), id="isolated"
        ),
        pytest.param(
            "prefer-isolated-cpus", "F", prefers(isolated=False), id="not isolated"
        ),
        pytest.param(
            "require-isolated-cpus",
            "1",
            prefers(isolated=True, require_isolated=True),
            id="a requirement is a preference, too",
        ),
        pytest.param("prefer-shared-cpus", "t", prefers(shared=True), id="shared"),
        pytest.param(
            "prefer-shared-cpus", "False", prefers(shared=False), id="not shared"
        ),
        pytest.param(
            "prefer-reserved-cpus", "TRUE", prefers(reserved=True), id="reserved"
        ),
        pytest.param(
            "prefer-cpu-priority",
            "high",
            prefers(cpu_priority=CpuPriority.HIGH),
            id="fast CPUs",
        ),
        pytest.param(
            "prefer-cpu-priority",
            "none",
            prefers(cpu_priority=CpuPriority.ANY),
            id="any CPUs",
        ),
        pytest.param("prefer-cpu-priority", "default", prefers(), id="as configured"),
        pytest.param(
            "hide-hyperthreads",
            "true",
            prefers(hide_hyperthreads=True),
            id="one thread of each core",
        ),
        pytest.param(
            "pick-resources-by-hints",
            "true",
            prefers(pick_by_hints=True),
            id="spread over devices",
        ),
        pytest.param(
            "memory-type",
            "dram,hbm",
            prefers(memory_kinds=frozenset((MemoryKind.DRAM, MemoryKind.HBM))),
            id="two kinds of memory",
        ),
        pytest.param(
            "memory-type",
            "PMEM",
            prefers(memory_kinds=frozenset((MemoryKind.PMEM, MemoryKind.CXL))),
            id="slow memory, also CXL",
        ),
        pytest.param(
            "memory-type",
            "cxl, dram",
            prefers(memory_kinds=frozenset((MemoryKind.CXL, MemoryKind.DRAM))),
            id="CXL by name",
        ),
        pytest.param(
            "memory-type",
            "mixed",
            prefers(memory_kinds=frozenset(MemoryKind)),
            id="all kinds of memory",
        ),
        pytest.param(
            "cold-start", "duration: 60s", prefers(cold_start=60), id="cold start"
        ),
        pytest.param(
            "cold-start", "{duration: 1h}", prefers(cold_start=3600), id="the longest"
        ),
        pytest.param(
            "cold-start", "duration: 1m0.5s", prefers(cold_start=61), id="half a second"
        ),
        pytest.param(
            "cold-start", "duration: 1500ms", prefers(cold_start=2), id="milliseconds"
        ),
        pytest.param("cold-start", "duration: 0s", prefers(), id="no cold start"),
        pytest.param("cold-start", "duration: '0'", prefers(), id="without a unit"),
        pytest.param(
            "unlimited-burstable",
            "l3cache",
            prefers(unlimited_burstable=TreeLevel.L3),
            id="one cache is enough",
        ),
        pytest.param(
            "scheduling-class",
            "realtime",
            prefers(scheduling_class="realtime"),
            id="scheduling class",
        ),
        pytest.param(
            "strict.topologyhints",
            "true",
            prefers(strict_hints=True),
            id="inside of all hints",
        ),
        pytest.param(
            "cpu.preserve", "true", prefers(preserve_cpus=True), id="CPUs left alone"
        ),
        pytest.param("cpu.preserve", "false", prefers(), id="CPUs not left alone"),
        pytest.param(
            "memory.preserve",
            "true",
            prefers(preserve_memory=True),
            id="memory left alone",
        ),
    ],
)
@pytest.mark.parametrize("name_space", [NATIVE, CRI_RM])
@pytest.mark.parametrize("scope", ["", "/pod", "/container.web"])
def test_each_annotation_becomes_its_preference(
    key: str, value: str, preferences: Preferences, name_space: str, scope: str
) -> None:
    reading = read_preferences(KUBELETS | {f"{key}.{name_space}{scope}": value}, "web")

    assert reading == Reading(preferences)


def test_a_pod_without_known_annotations_has_no_preferences() -> None:
    assert read_preferences(KUBELETS, "web") == Reading()


@pytest.mark.parametrize(
    ("annotations", "hints"),
    [
        pytest.param(
            {"topologyhints": "false"}, HintOptions(frozenset()), id="no hints"
        ),
        pytest.param({"topologyhints": "true"}, HintOptions(), id="all hints"),
        pytest.param({"topologyhints": "all"}, HintOptions(), id="all by name"),
        pytest.param(
            {"topologyhints": "none"}, HintOptions(frozenset()), id="none by name"
        ),
        pytest.param(
            {"topologyhints": "devices, pod-resources"},
            HintOptions(frozenset((HintSource.DEVICES, HintSource.POD_RESOURCES))),
            id="a list of sources",
        ),
        pytest.param(
            {
                "deny.topologyhints": "type: prefix\npaths: [/]",
                "allow.topologyhints": "type: glob\npaths: ['/dev/*']",
            },
            HintOptions(
                deny=PathRule(PathMatch.PREFIX, ("/",)),
                allow=PathRule(PathMatch.GLOB, ("/dev/*",)),
            ),
            id="path rules",
        ),
        pytest.param(
            {
                "test.topologyhints": "gpu: {CPUs: 0-3}\n"
                "nic: {NUMAs: 1, Provider: test}\nssd: {Sockets: '0,1'}",
            },
            HintOptions(
                given=(
                    Hint("gpu", cpus=CpuSet.parse("0-3")),
                    Hint("test", nodes=NodeSet.of(1)),
                    Hint("ssd", packages=frozenset((0, 1))),
                )
            ),
            id="hints of a test",
        ),
    ],
)
def test_annotations_choose_the_sources_of_hints(
    annotations: dict[str, str], hints: HintOptions
) -> None:
    written = {f"{key}.{NATIVE}/pod": value for key, value in annotations.items()}

    assert read_preferences(written, "web", testing=True) == Reading(
        Preferences(selects_hints=True), hints
    )


def test_a_running_container_is_not_refused() -> None:
    key = f"cpu.preserve.{NATIVE}"

    assert read_preferences({key: "on"}, "web", refuse=Refused.NONE).problems[0].strict
    with pytest.raises(BadAnnotation):
        read_preferences({key: "on"}, "web")


def test_parsed_annotations_are_cached_whatever_their_order() -> None:
    written = {f"{key}.{NATIVE}": "true" for key in ("b", "a", "hide-hyperthreads")}
    reading = read_preferences(written, "web")

    assert read_preferences(dict(reversed(written.items())), "web") is reading
    assert read_preferences(written, "db") is not reading


def test_long_annotations_are_not_cached() -> None:
    written = {f"hide-hyperthreads.{NATIVE}": "x" * 17_000}

    first, second = (read_preferences(written, "web") for _ in range(2))

    assert first == second
    assert first is not second


@pytest.mark.parametrize(
    ("key", "value", "preferences", "why"),
    [
        pytest.param(
            "prefer-shared-cpus",
            "yes",
            Preferences(shared=True),
            "'yes' is read as true; write true",
            id="yes",
        ),
        pytest.param(
            "prefer-shared-cpus",
            "No",
            Preferences(shared=False),
            "'No' is read as false; write false",
            id="no with a capital letter",
        ),
        pytest.param(
            "require-isolated-cpus",
            "YES",
            Preferences(require_isolated=True, isolated=True),
            "'YES' is read as true; write true",
            id="a strict key",
        ),
        pytest.param(
            "cpu.preserve",
            "True",
            Preferences(preserve_cpus=True),
            "'True' is read as true; write true",
            id="a key that nri-plugins reads in one spelling only",
        ),
        pytest.param(
            "topologyhints",
            "yes",
            Preferences(selects_hints=True),
            "'yes' is read as true; write true",
            id="a list of sources",
        ),
    ],
)
def test_an_unusual_flag_is_obeyed_and_reported(
    key: str, value: str, preferences: Preferences, why: str
) -> None:
    name = f"{key}.{NATIVE}/pod"

    assert read_preferences({name: value}, "web") == Reading(
        preferences, problems=(AnnotationProblem(name, value, why, read=True),)
    )


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_usual_flag_is_not_reported(value: str) -> None:
    for key in ("cpu.preserve", "prefer-shared-cpus"):
        assert read_preferences({f"{key}.{NATIVE}": value}, "web").problems == ()


def test_a_boolean_of_go_is_not_reported() -> None:
    assert read_preferences({f"prefer-shared-cpus.{NATIVE}": "T"}, "web").problems == ()
