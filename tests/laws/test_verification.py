"""As long as nothing else writes, the kernel has what was decided."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.verification.fake_host import FakeHost

HEAD = "apiVersion: config.nri/v1alpha1\nkind: "
DOCUMENTS = {
    "pools": f"{HEAD}TopologyAwarePolicy",
    "balloons": f"{HEAD}BalloonsPolicy\nspec: {{reservedResources: {{cpu: 1}}}}",
    "none": f"{HEAD}NonePolicy",
    "static": f"{HEAD}StaticPolicy",
}

NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "resize", "stop"]),
        NAMES,
        st.sampled_from([0.0, 0.1, 1, 1.5, 2, 4]),
    ),
    max_size=10,
)
NEVER = 0


@pytest.mark.parametrize("policy", DOCUMENTS)
@given(steps=STEPS)
@examples(0.4)
def test_an_undisturbed_history_never_drifts(
    policy: str, steps: list[tuple[str, str, float]]
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_live_through(Path(folder), policy, steps))


async def _live_through(
    root: Path, policy: str, steps: list[tuple[str, str, float]]
) -> None:
    node, there = FakeHost(root, DOCUMENTS[policy], now=lambda: NEVER), set[str]()
    node.policy.synchronize([], [])
    for kind, name, cpus in steps:
        match kind:
            case "create" if name not in there:
                node.create(name, cpus)
                there.add(name)
            case "resize":
                node.resize(name, cpus)
            case "stop":
                node.stop(name)
                there.discard(name)
        found = await node.round()

        assert set(found.values()) <= {"as-decided", "not-pinned"}, (kind, name, found)
    assert [event for event in node.events() if event[0] != "container.refused"] == []
    assert node.calls == []
