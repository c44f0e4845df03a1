"""Present containers have folders, in whatever order events arrive."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.node import asking_for

# By name: one comes, is stopped, is removed, or its pod is.
_STEPS = st.tuples(
    st.sampled_from(("create", "start", "stop", "remove", "stop-pod", "remove-pod")),
    st.sampled_from("abcd"),
)


def _take(plugin: ResourcePolicy, step: str, name: str) -> None:
    pod = Pod(id=f"pod-{name}", name=name, namespace="n")
    linux = LinuxContainer(resources=asking_for(1))
    container = Container(id=name, pod_sandbox_id=pod.id, name=name, linux=linux)
    match step:
        case "create":
            plugin.create_container(pod, container)
        case "start":
            plugin.start_container(pod, container)
        case "stop":
            plugin.stop_container(pod, container)
        case "remove":
            plugin.remove_container(pod, container)
        case "stop-pod":
            plugin.stop_pod_sandbox(pod)
        case _:
            plugin.remove_pod_sandbox(pod)


def _folders(run_dir: Path) -> set[str]:
    return {path.name for path in run_dir.glob("containers/*")}


# A batch is what comes in one read, before anything is done after a reply.
@settings(deadline=None)
@given(st.lists(st.lists(_STEPS, min_size=1, max_size=4), max_size=8))
def test_only_present_containers_have_folders(
    batches: list[list[tuple[str, str]]],
) -> None:
    async def live(run_dir: Path) -> None:
        plugin_options = PluginOptions(run_dir=str(run_dir))
        plugin = ResourcePolicy(
            parse_spec("1s8c1t memory=8Gi"), plugin_options=plugin_options
        )
        plugin.synchronize((), ())
        for batch in batches:
            for step, name in batch:
                _take(plugin, step, name)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

            assert _folders(run_dir) == set(plugin.state.ledger.entries)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder)))
