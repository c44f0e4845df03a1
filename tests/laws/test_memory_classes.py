"""Whatever annotations say about memory, a container has all of it or is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import ContainerAdjustment, CreateReply
from nri_resmgr.stub.model import (
    Container,
    LinuxContainer,
    LinuxMemory,
    LinuxResources,
    Pod,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError, PolicyError
from tests.app.memory_node import CLASS, EPC, HIGH, MACHINE, MISC, POLICY, QOS, SPEC
from tests.app.node import config

NODES: Final = parse_spec(MACHINE)
CONFIG: Final = parse_config(config(SPEC))

SCOPES: Final = st.sampled_from(["", "/pod", "/web", "/container.web", "/container.x"])
VALUES: Final = st.one_of(
    st.sampled_from(["", "bronze", "near", "far", "1Mi", "max", "sev_es 1, tdx 2"]),
    st.sampled_from(
        [
            "{mode: MPOL_BIND, nodes: 0-1}",
            "{mode: MPOL_LOCAL}",
            "{mode: x}",
            "[",
            "1e99",
        ]
    ),
    st.text(max_size=12),
)
KEYS: Final = st.builds(
    str.__add__, st.sampled_from([CLASS, EPC, HIGH, MISC, POLICY, QOS]), SCOPES
)
LIMITS: Final = st.sampled_from([0, 1, 4096, 1 << 30, (1 << 32) + 1])


def limited(memory: int) -> LinuxResources:
    return LinuxResources(memory=LinuxMemory(limit=memory))


@given(annotations=st.dictionaries(KEYS, VALUES, max_size=4), first=LIMITS, then=LIMITS)
def test_all_or_nothing(annotations: Mapping[str, str], first: int, then: int) -> None:
    plugin = ResourcePolicy(NODES, CONFIG)
    linux = LinuxContainer(resources=limited(first))
    container = Container("c", pod_sandbox_id="p", name="web", linux=linux)
    pod, before = Pod("p", name="p", annotations=annotations), plugin.state

    with capture_logs():
        try:
            reply = plugin.create_container(pod, container)
        except (InputError, PolicyError):
            assert plugin.state is before
            return
        plugin.start_container(pod, container)
        (*updates,) = plugin.update_container(pod, container, limited(then))

    assert isinstance(reply, CreateReply)
    assert all(one.container_id == "c" for one in updates)
    resources = (reply.adjustment or ContainerAdjustment()).resources
    check_files(resources.unified, annotations, first)
    for update in updates:
        # No limit is as before.
        check_files(update.resources.unified, annotations, then or first)


def check_files(
    files: Mapping[str, str], annotations: Mapping[str, str], limit: int
) -> None:
    """Check that each file has one line, and that a class leaves a limit its half."""
    assert all(text and "\n" not in text for text in files.values())
    if any(key.startswith(HIGH) for key in annotations):
        return
    wanted = {"memory.high": str(limit // 2), "memory.swap.max": "max"}
    found = {file: text for file, text in files.items() if file in wanted}
    assert found in ({}, wanted)
    own = annotations.get(f"{QOS}/web", annotations.get(QOS))
    assert bool(found) is (own == "bronze")
