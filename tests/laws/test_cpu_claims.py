"""CPUs of claims are granted to no other container, in any order of events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.plugin.changes.claimed_cpus import begin_claims
from nri_resmgr.app.plugin.cpu_claims import ClaimTable
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.daemon.claims_file import claims_text, parse_claims
from nri_resmgr.kubelet.pod_resources import (
    ClaimedDevice,
    ContainerResources,
    PodResources,
)
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import PolicyError
from tests.app.node import asking_for

MACHINE = parse_spec("1s2n4c2t")  # 16 CPUs

# CPU 0 is reserved everywhere, so that no claim is a conflict.
KINDS = {
    "TopologyAwarePolicy": "{reservedResources: {cpu: 'cpuset:0'}}",
    "BalloonsPolicy": "{reservedResources: {cpu: 'cpuset:0'}}",
    "StaticPolicy": "{reservedResources: {cpu: 'cpuset:0'}}",
    "StaticPlusPolicy": "{reservedResources: {cpu: 'cpuset:0'}}",
    "NonePolicy": "{}",
}

PODS = st.integers(0, 3)
CPUS = st.sets(st.integers(1, 15), min_size=1, max_size=5)


@attrs.define
class PodOfLaw:
    """A pod as the law sees it.

    Attributes:
        claimed: The CPUs in its environment.
        is_backed: Whether the kubelet confirms them.
        is_answered: Whether the kubelet has answered.
    """

    number: int
    cpus: float
    claimed: frozenset[int] = frozenset()
    is_backed: bool = False
    is_answered: bool = False
    is_running: bool = False
    was_confirmed: bool = False

    @property
    def name(self) -> str:
        return f"pod-{self.number}"

    def pod(self) -> Pod:
        linux = LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-{self.name}.slice")
        return Pod(
            id=self.name,
            name=self.name,
            namespace="default",
            uid=f"uid-{self.number}",
            linux=linux,
        )

    def container(self) -> Container:
        env: tuple[str, ...] = ()
        if self.claimed:
            cpus = ",".join(map(str, sorted(self.claimed)))
            env = (f"DRA_CPUSET_c-{self.number}={cpus}",)
        return Container(
            id=f"c-{self.number}",
            pod_sandbox_id=self.name,
            name="main",
            env=env,
            linux=LinuxContainer(resources=asking_for(self.cpus)),
        )

    def answer(self) -> dict[str, ContainerResources]:
        cdi = (f"dra.k8s.io/cpu=claim-c-{self.number}",)
        device = ClaimedDevice("dra.cpu", "default/c", "numa0", cdi)
        claimed = (device,) if self.is_backed else ()
        return {"main": ContainerResources((), claimed)}


class NodeOfLaw:
    """A node, and the oracle: what it was sent says which CPUs are whose."""

    def __init__(self, kind: str) -> None:
        self.text = (
            f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {KINDS[kind]}\n"
        )
        self.pods: dict[int, PodOfLaw] = {}
        self.start(ClaimTable())

    def start(self, table: ClaimTable) -> None:
        self.book = PodResources(patience=1e6)
        self.plugin = ResourcePolicy(
            MACHINE,
            parse_config(self.text),
            plugin_options=PluginOptions(pod_resources=self.book),
        )
        begin_claims(self.plugin, table)
        present = self.pods.values()
        self.plugin.synchronize(
            tuple(one.pod() for one in present),
            tuple(one.container() for one in present if one.is_running),
        )

    def restart(self) -> None:
        table = parse_claims(claims_text(self.plugin.claims.table))
        self.book.keep_only(())
        for one in self.pods.values():
            one.is_answered = False
        self.start(table)

    def create(self, one: PodOfLaw) -> None:
        if one.number in self.pods:
            return
        self.pods[one.number] = one
        self.plugin.run_pod_sandbox(one.pod())

    def run(self, number: int) -> None:
        one = self.pods.get(number)
        if one is None or one.is_running:
            return
        try:
            reply = self.plugin.create_container(one.pod(), one.container())
        except PolicyError:
            return
        one.is_running = True
        self.confirm(one)
        if one.was_confirmed:
            assert reply is not None
            assert reply.adjustment is None
        self.plugin.start_container(one.pod(), one.container())

    def answer(self, number: int) -> None:
        one = self.pods.get(number)
        wishes = {wish.pod.name: wish for wish in self.book.wishes()}
        if one is not None and one.name in wishes:
            one.is_answered = True
            self.confirm(one)
            self.book.answered(wishes[one.name], one.answer())

    def confirm(self, one: PodOfLaw) -> None:
        if one.claimed and one.is_backed and one.is_answered and one.is_running:
            one.was_confirmed = True

    def stop(self, number: int) -> None:
        one = self.pods.get(number)
        if one is None or not one.is_running:
            return
        one.is_running = False
        self.plugin.stop_container(one.pod(), one.container())
        self.plugin.remove_container(one.pod(), one.container())

    def resize(self, number: int) -> None:
        one = self.pods.get(number)
        if one is not None and one.is_running:
            resources = asking_for(1)
            try:
                reply = self.plugin.update_container(
                    one.pod(), one.container(), resources
                )
            except PolicyError:
                return
            if one.was_confirmed:
                assert reply == ()

    def end(self, number: int) -> None:
        self.stop(number)
        if one := self.pods.pop(number, None):
            self.plugin.stop_pod_sandbox(one.pod())
            self.plugin.remove_pod_sandbox(one.pod())

    def check(self) -> None:
        """Compare with what the kubelet has confirmed of the pods that exist."""
        confirmed = [one for one in self.pods.values() if one.was_confirmed]
        taken = frozenset[int]().union(*(one.claimed for one in confirmed))
        assert set(self.plugin.claims.taken) == taken
        assert self.plugin.claims.conflict == ""
        pins = self.plugin.policy.pins(self.plugin.state)
        for key, pin in pins.items():
            assert not taken & set(pin.cpus), (key, pin.cpus, taken)
        for one in confirmed:
            assert f"c-{one.number}" not in pins
        # Whoever has no claim is placed, once the kubelet has answered.
        for one in self.pods.values():
            if one.is_running and not (one.claimed and not one.is_answered):
                assert one.was_confirmed or f"c-{one.number}" in pins
        # What is left is used: pools have all other CPUs.
        assert set(self.plugin.machine.online) == set(range(16)) - taken


def new_pods() -> st.SearchStrategy[PodOfLaw]:
    return st.builds(
        PodOfLaw,
        PODS,
        st.sampled_from([0.5, 1, 2, 3]),
        st.one_of(CPUS.map(frozenset), CPUS.map(frozenset), st.just(frozenset())),
        st.sampled_from([True, True, False]),
    )


def steps() -> st.SearchStrategy[list[tuple[str, object]]]:
    words = ["run", "answer", "stop", "resize", "end"]
    one = st.tuples(st.sampled_from(words), PODS)
    # Whole lives, as random steps seldom make one: in which the kubelet answers before
    # or after the creation.
    lives = st.sampled_from([("run", "answer"), ("answer", "run"), ("run",), ()])
    launch = st.builds(
        lambda pod, life: [
            ("create", pod),
            *((word, pod.number) for word in life),
        ],
        new_pods(),
        lives,
    )
    parts = st.one_of(
        launch, launch, one.map(lambda step: [step]), st.just([("restart", None)])
    )
    return st.lists(parts, min_size=1, max_size=12).map(
        lambda found: [step for part in found for step in part]
    )


def _apply(node: NodeOfLaw, taken: list[tuple[str, object]]) -> Iterator[None]:
    for name, argument in taken:
        method = getattr(node, name)
        method() if argument is None else method(argument)
        yield


@given(kind=st.sampled_from(sorted(KINDS)), taken=steps())
def test_cpus_of_claims_are_granted_to_no_other(
    kind: str, taken: list[tuple[str, object]]
) -> None:
    async def play() -> None:
        node = NodeOfLaw(kind)
        for _ in _apply(node, taken):
            node.check()
        node.book.keep_only(())

    asyncio.run(play())
