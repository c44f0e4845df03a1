"""Containers by requests and limits, read back as a plugin does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.host.fields import memory_total
from nri_resmgr.host.tree import HostTree
from nri_resmgr.sdk.requests import qos_class, requests_of
from nri_resmgr.stub import (
    Configuration,
    Container,
    ContainerAdjustment,
    InputError,
    LinuxPod,
    Pod,
    StubOptions,
)
from nri_resmgr.testing import (
    Runtime,
    best_effort,
    burstable,
    guaranteed,
    running_plugin,
)
from nri_resmgr.values import QosClass

NODE = memory_total(HostTree(), "/proc/meminfo")
CPUS = st.integers(3, 250_000)
LIMITS = st.none() | st.integers(10, 250_000)
SIZES = st.integers(1 << 20, 1 << 36)


def pod_of(qos: QosClass) -> Pod:
    parent = f"kubepods-{qos.value.lower()}-pod1.slice"
    return Pod(linux=LinuxPod(cgroup_parent=parent))


@given(CPUS, SIZES)
def test_a_guaranteed_container_has_its_requests_as_limits(
    cpu: int, memory: int
) -> None:
    container = guaranteed("web", cpu=f"{max(cpu, 10)}m", memory=str(memory))

    found = requests_of(Pod(), container)

    assert (found.cpu, found.cpu_limit) == (max(cpu, 10), max(cpu, 10))
    assert (found.memory, found.memory_limit) == (memory, memory)
    assert qos_class(Pod(), container) is QosClass.GUARANTEED


@given(CPUS, LIMITS, st.integers(3, 990), st.none() | st.integers(NODE, 2 * NODE))
def test_a_burstable_container_has_requests_and_limits(
    cpu: int, limit: int | None, permille: int, memory_limit: int | None
) -> None:
    memory = NODE * permille // 1000
    container = burstable(
        "web",
        cpu=f"{cpu}m",
        memory=str(memory),
        cpu_limit=None if limit is None else f"{limit}m",
        memory_limit=None if memory_limit is None else str(memory_limit),
    )

    found = requests_of(pod_of(QosClass.BURSTABLE), container)

    assert (found.cpu, found.cpu_limit) == (cpu, limit)
    assert found.memory_limit == memory_limit
    assert found.memory == pytest.approx(memory, abs=NODE / 1000 + 1)


def test_a_best_effort_container_has_nothing() -> None:
    found = requests_of(Pod(), best_effort())

    assert (found.cpu, found.cpu_limit, found.memory, found.memory_limit) == (
        0,
        None,
        0,
        None,
    )
    assert qos_class(Pod(), best_effort()) is QosClass.BEST_EFFORT


def test_oom_scores_are_the_kubelets() -> None:
    found = [
        one.linux and one.linux.oom_score_adj
        for one in (guaranteed(cpu=1, memory="1Gi"), best_effort(), burstable())
    ]

    assert found == [-997, 1000, 999]


def test_whole_numbers_are_cpus() -> None:
    assert guaranteed(cpu=2, memory="1Gi") == guaranteed(cpu="2000m", memory="1024Mi")
    assert burstable(cpu=1, cpu_limit=2) == burstable(cpu="1", cpu_limit="2000m")


class Greeter:
    """Greets as its configuration says."""

    def configure(self, configuration: Configuration) -> None:
        if configuration.text == "bad":
            raise InputError("a bad word")
        self.text = configuration.text

    def create_container(self, _: Pod, __: Container) -> ContainerAdjustment:
        return ContainerAdjustment().set_env("TEXT", self.text)


@pytest.mark.parametrize(
    ("config", "options", "expected"),
    [
        pytest.param("ahoy", StubOptions(), ("TEXT=ahoy",), id="a text"),
        pytest.param(None, StubOptions(), ("TEXT=",), id="none"),
        pytest.param(None, StubOptions(config="hi"), ("TEXT=hi",), id="by options"),
        pytest.param("a", StubOptions(config="hi"), ("TEXT=a",), id="the argument"),
        pytest.param("a", StubOptions(dry_run=True), (), id="a dry run"),
    ],
)
async def test_a_plugin_under_test_has_a_configuration(
    config: str | None, options: StubOptions, expected: tuple[str, ...], tmp_path: Path
) -> None:
    async with (
        Runtime(tmp_path) as runtime,
        running_plugin(runtime, Greeter(), config=config, options=options),
    ):
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

    assert created.container.env == expected


async def test_a_bad_configuration_is_the_error_of_the_test(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        with pytest.raises(InputError, match="a bad word"):
            async with running_plugin(runtime, Greeter(), config="bad"):
                pass
