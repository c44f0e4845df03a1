"""A document counts as a whole or not at all, while containers come and go."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_proto import NriLevel
from nri_resmgr.app.configuration.acceptance import ActiveConfiguration, Rules
from nri_resmgr.app.configuration.status import (
    ConfigurationStatus,
    Document,
    DocumentSource,
)
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import (
    Container,
    ContainerUpdate,
    LinuxCpu,
    LinuxPod,
    LinuxResources,
    Pod,
)
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.testing import Runtime, RuntimeRefusal, running_plugin
from nri_resmgr.values import ResmgrError
from tests.app.node import SAFE, UNSAFE, Node
from tests.daemon.documents import (
    BAD,
    UNFIT,
    begun,
    document,
    followed,
    hand_over,
    make,
    status_of,
    write,
)
from tests.waiting import until

KINDS: Final = (
    "StaticPolicy",
    "StaticPlusPolicy",
    "TopologyAwarePolicy",
    "BalloonsPolicy",
)
NOTHING: Final = (
    "apiVersion: config.nri/v1alpha1\nkind: NonePolicy\nspec: {allowLoss: true}\n"
)
CAREFUL: Final = tuple(document(cpu, kind) for cpu in (0, 1, 5) for kind in KINDS)
GOOD: Final = (
    *(text.replace("}}", "}, allowLoss: true}") for text in CAREFUL),
    NOTHING,
)
WRONG: Final = (BAD, UNFIT, "a: [", UNFIT.replace("StaticPolicy", "BalloonsPolicy"))

Step: TypeAlias = tuple[str, str | int]
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.sampled_from(GOOD + CAREFUL + WRONG)),
        st.tuples(st.just("create"), st.integers(1, 3)),
        st.tuples(st.just("stop"), st.integers(0, 9)),
    ),
    max_size=20,
)


def create(node: DaemonConfiguration, name: str, cpus: int) -> object:
    linux = LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice")
    pod = Pod(id=f"pod-{name}", name=name, namespace="default", linux=linux)
    cpu = LinuxCpu(cpus * 1024, cpus * 100_000, 100_000)
    asked = LinuxContainer(resources=LinuxResources(cpu=cpu))
    container = Container(id=name, pod_sandbox_id=f"pod-{name}", name=name, linux=asked)
    return node.policy.create_container(pod, container)


def play(node: DaemonConfiguration, number: int, step: Step) -> object:
    """Take a step; return what the runtime sees of it."""
    what, which = step
    with suppress(ResmgrError):
        match what:
            case "text":
                offered = Document(str(which), DocumentSource.RUNTIME)
                node.policy.configuration.offer(offered)
            case "create":
                return create(node, str(number), int(which))
            case _:
                return node.policy.stop_container(Pod(), Container(id=str(which)))
    return None


def known(node: DaemonConfiguration) -> object:
    """Return all that a policy knows, in values that can be compared."""
    policy, state = node.policy.policy, node.policy.state
    granted = dict(policy.pins(state)), policy.pools(state)
    return node.policy.config, state.ledger.entries, granted


@given(STEPS)
def test_a_refused_document_changes_nothing(steps: list[Step]) -> None:
    node, other = begun(), begun()
    rejected = 0
    for number, step in enumerate(steps):
        before = node.policy.state
        answer = play(node, number, step)
        if status_of(node).rejected > rejected:
            rejected, error = status_of(node).rejected, status_of(node).error
            assert error is not None
            losing = step[1] in CAREFUL and "takes exclusive CPUs" in error.why
            assert losing or step[1] in WRONG
            assert error.source is DocumentSource.RUNTIME
            assert node.policy.state is before
        else:
            assert step[1] not in WRONG
            assert play(other, number, step) == answer

        assert known(node) == known(other)

    status, clean = status_of(node), status_of(other)
    assert (status.generation, status.sha256) == (clean.generation, clean.sha256)


def test_the_document_in_force_is_reported() -> None:
    node = begun()
    began = status_of(node)
    hand_over(node, document(1))
    hand_over(node, BAD)
    now = status_of(node)

    assert now == ConfigurationStatus(
        source=DocumentSource.RUNTIME,
        name="",
        cached=False,
        kind="StaticPolicy",
        text=document(1),
        accepted=now.accepted,
        generation=2,
        ineffective=(),
        rejected=1,
        error=now.error,
    )
    assert (began.source, began.generation) == (DocumentSource.BUILT_IN, 1)
    assert began.accepted <= now.accepted
    assert now.error is not None
    assert now.error.why.startswith("$.spec.preservedResources: unknown key")


def test_the_same_text_again_changes_only_its_source() -> None:
    node = begun()
    hand_over(node, document(1))
    before, state = status_of(node), node.policy.state
    hand_over(node, document(1))
    hand_over(node, document(1) + "# a remark\n")

    assert node.policy.state is state
    assert (before.generation, status_of(node).generation) == (2, 2)
    assert before.sha256 != status_of(node).sha256


class Calls:
    """Counts updates that come without a request."""

    def __init__(self) -> None:
        self.count = 0
        self.may_call, self.quiet_seconds = True, math.inf

    async def update_containers(
        self, updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """See `nri_resmgr.stub.update_sender.ContainerUpdater`."""
        self.count += bool(tuple(updates))
        return ()


@pytest.mark.parametrize(("by", "calls"), [("the runtime", 0), ("the operator", 1)])
async def test_updates_of_a_document_from_the_runtime_follow_the_synchronize(
    by: str, calls: int
) -> None:
    node, sent = begun(), Calls()
    node.policy.use_update_sender(UpdateSender(sent))
    node.policy.synchronize([], [])
    create(node, "web", 1)
    before = node.policy.policy.pins(node.policy.state)["web"]
    text = document(before.cpus.first, "TopologyAwarePolicy")
    if by == "the runtime":
        hand_over(node, text)
    else:
        reconfigure(node.policy, parse_config(text))
    await asyncio.sleep(0.05)

    assert node.policy.policy.pins(node.policy.state)["web"] != before
    assert sent.count == calls


def switching(*, may_switch: bool) -> ActiveConfiguration:
    """A node on which balloons have placed what runs."""
    text = document(1, "BalloonsPolicy")
    found, rules = Document(text, DocumentSource.RUNTIME), Rules(may_switch=may_switch)
    policy = make(parse_config(text), found, rules)
    policy.synchronize([], [])
    return policy.configuration


def test_another_kind_is_accepted_unless_switches_are_disabled() -> None:
    may, may_not = switching(may_switch=True), switching(may_switch=False)
    may.offer(Document(document(1), DocumentSource.RUNTIME))
    with pytest.raises(ResmgrError) as refused:
        may_not.offer(Document(document(1), DocumentSource.RUNTIME))
    kind = may_not.status.kind
    may_not.offer(Document(document(2, "BalloonsPolicy"), DocumentSource.RUNTIME))

    assert (may.status.kind, kind, may_not.status.generation) == (
        *("StaticPolicy", "BalloonsPolicy"),
        2,
    )
    assert str(refused.value) == (
        "$.kind: StaticPolicy cannot follow BalloonsPolicy: --disable-policy-switch "
        "is set; restart without it to switch"
    )


def test_before_the_first_placement_another_kind_is_accepted() -> None:
    node = begun(disable_policy_switch=True)
    hand_over(node, document(1, "BalloonsPolicy"))

    assert status_of(node).kind == "BalloonsPolicy"


def test_a_restored_node_keeps_its_kind() -> None:
    node = begun(disable_policy_switch=True)
    node.policy.configuration.set_placing_kind("TopologyAwarePolicy")
    hand_over(node, document(1, "BalloonsPolicy"))

    status = status_of(node)

    assert (status.source, status.rejected) == (DocumentSource.BUILT_IN, 1)


async def live(node: Node, over: asyncio.Event) -> int:
    """Let containers come and go until stopped; every request is answered."""
    number = 0
    while not over.is_set():
        number += 1
        with suppress(RuntimeRefusal):  # some documents leave little room
            await node.run(f"c{number}", (number % 5) / 2 + 0.25)
        if number > 5 and f"c{number - 5}" in node.runtime.world.containers:
            await node.runtime.stop_container(f"c{number - 5}")
    return number


def is_settled(node: Node) -> bool:
    """Return whether the runtime has each container where the policy wants it."""
    wanted = node.plugin.policy.pins(node.plugin.state)
    running = node.plugin.state.ledger.entries
    return all(node.pinned(key)[0] == str(wanted[key].cpus) for key in running)


async def swap(of: DaemonConfiguration, path: Path, texts: list[str]) -> None:
    """Replace the file by each, some by a signal's way, some by being noticed."""
    for number, text in enumerate(texts):
        write(path.with_suffix(".new"), text).rename(path)
        if number % 2:
            with suppress(ResmgrError):
                await of.reload()
        else:
            await asyncio.sleep(0.02)


@pytest.mark.slow  # plays many containers over a socket
@pytest.mark.parametrize("level", [SAFE, UNSAFE], ids=str)
async def test_a_hundred_swaps_under_load_a_third_of_them_wrong(
    tmp_path: Path, level: NriLevel
) -> None:
    path = write(tmp_path / "my.yaml", document(0))
    texts = [WRONG[n % 4] if n % 3 == 1 else GOOD[n % len(GOOD)] for n in range(100)]
    configuration = begun(path)
    policy, over = configuration.policy, asyncio.Event()
    async with (
        Runtime(tmp_path, level) as runtime,
        running_plugin(runtime, policy, "90-resource-policy") as stub,
        followed(configuration),
    ):
        policy.use_update_sender(stub.updates)
        node = Node(runtime, policy, stub, tmp_path)
        living = asyncio.create_task(live(node, over))
        await swap(configuration, path, [*texts, GOOD[6]])
        await until(lambda: policy.config == parse_config(GOOD[6]))
        over.set()
        lived = await living
        await node.run("last", 0.1)  # what could not be sent rides on the reply
        await until(lambda: is_settled(node))
        status = status_of(configuration)

    assert lived > 20
    assert (status.kind, status.error) == ("TopologyAwarePolicy", None)
    assert status.generation > 30
    assert status.rejected > 15
    # Some that ended earlier had no pin, under a policy without any.
    assert all(node.pinned(name)[0] for name in policy.state.ledger.entries)
