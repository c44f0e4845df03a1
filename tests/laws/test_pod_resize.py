"""Whatever the order of updates, a resized pod ends as one that was created so."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.scenario.read import document_of
from nri_resmgr.stub.model import (
    Container,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxPod,
    LinuxResources,
    Pod,
)
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from tests.examples import examples

MACHINE: Final[Machine] = parse_spec("1s1n64c1t")
CONFIG: Final = parse_config(document_of("TopologyAwarePolicy"))
MIB: Final = 1 << 20


class Sums(msgspec.Struct, frozen=True):
    """The CPUs and memory of a Guaranteed pod, and its overhead."""

    milli: int
    mib: int
    overhead: int = 0

    def resources(self) -> LinuxResources:
        return _values(self.milli, self.mib)

    def own(self) -> LinuxResources:
        return _values(self.overhead, self.overhead)


def _values(milli: int, mib: int) -> LinuxResources:
    return LinuxResources(
        cpu=LinuxCpu(milli * 1024 // 1000, milli * 100, 100_000),
        memory=LinuxMemory(limit=mib * MIB),
    )


# Amounts that survive the kubelet's rounding, and that the machine always has.
SUMS: Final = st.builds(
    Sums,
    st.integers(10, 150).map(lambda n: n * 125),
    st.integers(100, 2000),
    st.integers(1, 16).map(lambda n: n * 125),
)


class Resized(msgspec.Struct, frozen=True):
    """A pod of silent containers whose sums change.

    Attributes:
        stages: Its sums, one after the other.
        own: The thousandths that one more container asks for itself; 0 without one.
        order: The seed of the order of the updates.
    """

    silent: int
    own: int
    stages: tuple[Sums, ...]
    order: int


RESIZES: Final = st.builds(
    Resized,
    st.integers(2, 4),
    st.sampled_from([0, 125, 1000]),
    st.lists(SUMS, min_size=1, max_size=4).map(tuple),
    st.integers(0, 1 << 16),
)


def pod_of(sums: Sums) -> Pod:
    return Pod(
        id="p",
        name="web",
        namespace="default",
        linux=LinuxPod(
            cgroup_parent="/kubepods.slice/kubepods-podweb.slice",
            pod_resources=sums.resources(),
            pod_overhead=sums.own(),
        ),
    )


def container_of(name: str, values: LinuxResources) -> Container:
    return Container(
        id=name,
        pod_sandbox_id="p",
        name=name,
        linux=LinuxContainer(resources=values),
    )


def created(pod: Resized, sums: Sums) -> ResourcePolicy:
    """Create the pod with these sums: the kubelet gives silent ones its limits."""
    plugin, sandbox = ResourcePolicy(MACHINE, CONFIG), pod_of(sums)
    plugin.run_pod_sandbox(sandbox)
    for number in range(pod.silent):
        plugin.create_container(
            sandbox, container_of(f"silent-{number}", sums.resources())
        )
    if pod.own:
        plugin.create_container(sandbox, container_of("own", _values(pod.own, 10)))
    return plugin


def amounts(plugin: ResourcePolicy) -> dict[str, tuple[int, int]]:
    entries = plugin.state.ledger.entries
    found: dict[str, tuple[int, int]] = {
        key: (one.spec.request, one.spec.memory_request) for key, one in entries.items()
    }
    for place in plugin.policy.reservations(plugin.state):
        found[place.spec.name] = place.spec.request, place.spec.memory_request
    return found


def resize(
    plugin: ResourcePolicy, pod: Resized, sandbox: Pod, to: Sums
) -> Iterator[None]:
    """Deliver the updates of a resize in any order, some of them again."""
    draws = random.Random(pod.order)  # noqa: S311 - no secret

    def update_container(name: str) -> None:
        container = container_of(name, LinuxResources())
        plugin.update_container(sandbox, container, to.resources())

    updates = ["", *(f"silent-{number}" for number in range(pod.silent))]
    updates += draws.sample(updates, draws.randrange(len(updates)))
    draws.shuffle(updates)
    for name in updates:
        if name:
            update_container(name)
        else:
            plugin.update_pod_sandbox(sandbox, to.own(), to.resources())
        yield


@given(RESIZES)
@examples(0.6)
def test_a_resized_pod_has_the_amounts_of_a_pod_created_so(pod: Resized) -> None:
    first, last = pod.stages[0], pod.stages[-1]
    plugin, sandbox = created(pod, first), pod_of(first)
    for to in pod.stages[1:]:
        for _ in resize(plugin, pod, sandbox, to):
            pass
    found = amounts(plugin)

    assert found == amounts(created(pod, last))
    # By hand, so that both are not wrong alike.
    cpus = [cpu for name, (cpu, _) in found.items() if name.startswith("silent")]
    left = last.milli - pod.own
    assert cpus == [left // pod.silent] * pod.silent
    assert found[OVERHEAD_NAME] == (last.overhead, last.overhead * MIB)


@given(RESIZES)
@examples(0.6)
def test_sums_are_conserved_on_the_way(pod: Resized) -> None:
    before = pod.stages[0]
    plugin, sandbox = created(pod, before), pod_of(before)
    for to in pod.stages[1:]:
        for _ in resize(plugin, pod, sandbox, to):
            found = amounts(plugin)
            granted = max(one.granted for one in plugin.policy.pools(plugin.state))

            assert granted == sum(cpu for cpu, _ in found.values())
            most = max(before.milli + before.overhead, to.milli + to.overhead)
            assert granted <= most
            memory = sum(size for _, size in found.values())
            most = max(before.mib + before.overhead, to.mib + to.overhead)
            assert memory <= most * MIB
        before = to
