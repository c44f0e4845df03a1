"""Limits of fast memory, on hosts with and without the kernel's file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.background.reconciler import Reconciler
from nri_resmgr.app.classes.memory.top_tier import TopTierLimits
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.cli.render_host import class_tables
from nri_resmgr.control.classes import classes_of
from nri_resmgr.control.top_tier import top_tier_ineffective, top_tier_sentences
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.testing import Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.node import SAFE, asking_for
from tests.app.ready_target import ReadyTarget
from tests.waiting import until

OURS: Final = "toptierlimit.resource-policy.nri.io"
THEIRS: Final = "toptierlimit.cri-resource-manager.intel.com"
FILE: Final = "memory.toptier_soft_limit_in_bytes"
NONE: Final = "apiVersion: config.nri/v1alpha1\nkind: NonePolicy\nspec: {}\n"


def in_force(file: Path) -> int:
    return int(file.read_text() or "-2")  # it may be being written


@attrs.define
class Rig:
    """A runtime with our plugin, and a host whose cgroups are files."""

    runtime: Runtime
    plugin: ResourcePolicy
    host: Path
    history: History
    limits: TopTierLimits

    async def create(self, name: str, annotations: dict[str, str]) -> None:
        await self.runtime.run_pod(
            Pod(
                id=f"pod-{name}",
                name=name,
                namespace="shop",
                uid=f"uid-{name}",
                annotations=annotations,
            )
        )
        linux = LinuxContainer(resources=asking_for(1), cgroups_path=f"/pods/{name}")
        container = Container(id=name, name=name, linux=linux)
        await self.runtime.create_container(f"pod-{name}", container)

    def appear(self, name: str, *, is_patched: bool = True) -> Path:
        """Let the runtime make its cgroup; return the file of the limit."""
        top = self.host / "sys/fs/cgroup"
        path = top / "memory/pods" / name / FILE
        path.parent.mkdir(parents=True)
        if is_patched:
            path.write_text("-1\n")
        # The daemon may look at any time, and finds the container by the last file.
        for hierarchy in ("memory", "cpuset"):
            folder = top / hierarchy / "pods" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").write_text("")
        return path

    def shown(self) -> list[list[str]]:
        """Return the rows of `status`, as words."""
        found = classes_of(self.plugin)
        return [
            line.split() for part in class_tables(found) for line in part.splitlines()
        ][1:]

    def explained(self, name: str) -> tuple[list[str], list[str]]:
        """Return what has an effect, and what has none."""
        spec = self.plugin.state.ledger.entries[name].spec
        return (
            list(top_tier_sentences(spec, self.plugin)),
            list(top_tier_ineffective(spec, self.plugin)),
        )


@asynccontextmanager
async def running(folder: Path, period: float = 30.0) -> AsyncIterator[Rig]:
    host = folder / "host"
    cpuset = host / "sys/fs/cgroup/cpuset"
    cpuset.mkdir(parents=True)
    (cpuset / "cpuset.cpus").write_text("0-3\n")
    reconciler: Reconciler[TopTierLimits] = Reconciler("top-tier", 0.01)
    plugin = ResourcePolicy(
        parse_spec("1s2n2c1t"),
        parse_config(NONE),
        tree=HostTree(str(host)),
        observers=(reconciler,),
    )
    history = History()
    state, tree = plugin.class_hosts.top_tier, WritableHostTree(str(host))
    limits = TopTierLimits(plugin, state, tree, history, period)
    async with (
        Runtime(folder, SAFE) as runtime,
        running_plugin(runtime, plugin, "90-resource-policy"),
    ):
        task = asyncio.create_task(reconciler.run(ReadyTarget(limits)))
        try:
            yield Rig(runtime, plugin, host, history, limits)
        finally:
            task.cancel()


@pytest.mark.parametrize(
    ("annotations", "limit"),
    [
        pytest.param({OURS: "1Gi"}, 1 << 30, id="our key"),
        pytest.param({THEIRS: "500M"}, 500_000_000, id="that of CRI-RM"),
        pytest.param({f"{THEIRS}/pod": "1Gi"}, 1 << 30, id="of the pod"),
        pytest.param(
            {f"{OURS}/container.web": "4Mi", OURS: "1Gi"}, 4 << 20, id="of a container"
        ),
        pytest.param({OURS: "0"}, 0, id="nothing in fast memory"),
    ],
)
async def test_the_limit_is_written_when_the_container_starts(
    tmp_path: Path, annotations: dict[str, str], limit: int
) -> None:
    async with running(tmp_path) as rig:
        await rig.create("web", annotations)
        file = rig.appear("web")
        await rig.create("other", {})
        other = rig.appear("other")
        for name in ("other", "web"):
            await rig.runtime.start_container(name)
        # A thread writes; what it wrote is noted after it.
        said = f"soft limit of fast memory {limit} bytes, by annotation, written"
        await until(lambda: rig.explained("web") == ([said], []))

        assert in_force(file) == limit
        assert in_force(other) == -1
        assert rig.explained("other") == ([], [])
        (row,) = rig.shown()
        assert (row[0], row[-1]) == ("shop/web/web", "written")
        assert classes_of(rig.plugin)["topTier"] == [
            {"container": "shop/web/web", "limit": limit, "written": True, "why": ""}
        ]


async def test_a_limit_changed_by_another_program_is_written_again(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, period=0.1) as rig:
        await rig.create("web", {OURS: "1Gi"})
        file = rig.appear("web")
        await rig.runtime.start_container("web")
        await until(lambda: in_force(file) == 1 << 30)
        with capture_logs() as lines:
            file.write_text("-1\n")
            await until(lambda: in_force(file) == 1 << 30)

    (drift,) = [one for one in lines if one["event"] == "toptier.drifted"]
    assert (drift["title"], drift["found"]) == ("shop/web/web", -1)


async def test_the_kernels_rounding_is_no_difference(tmp_path: Path) -> None:
    async with running(tmp_path, period=0.05) as rig:
        await rig.create("web", {OURS: "1000001"})
        file = rig.appear("web")
        file.write_text("999424\n")  # 244 pages
        await rig.runtime.start_container("web")
        await until(lambda: "web" in rig.limits.host.applied)

        assert in_force(file) == 999_424


async def test_a_kernel_without_the_file_is_reported_once(tmp_path: Path) -> None:
    with capture_logs() as lines:
        async with running(tmp_path, period=0.05) as rig:
            await rig.create("web", {OURS: "1Gi"})
            file = rig.appear("web", is_patched=False)
            await rig.runtime.start_container("web")
            await until(
                lambda: bool(rig.history.rows_of_kind("annotation.ineffective"))
            )
            await asyncio.sleep(0.2)  # several comparisons

            rows = list(rig.history.rows_of_kind("annotation.ineffective"))
            explained, (row,) = rig.explained("web"), rig.shown()
            assert not file.exists()
    why = (
        f"this kernel has no {FILE}; only kernels with the patches for it limit memory "
        "by tier"
    )
    sentence = f"annotation toptierlimit has no effect: {why}"
    assert [(row.title, row.why) for row in rows] == [("shop/web/web", sentence)]
    assert explained == ([], [sentence])
    assert " ".join(row).endswith(f"not in force: {why}")
    found = [one for one in lines if one["event"] == "annotation.ineffective"]
    assert [(one["pod"], one["key"], one["why"]) for one in found] == [
        ("shop/web", "toptierlimit", why)
    ]


async def test_a_failed_write_is_retried_before_the_next_comparison(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, period=86400.0) as rig:
        rig.limits.host.problems.retry = 0.05
        await rig.create("web", {OURS: "1Gi"})
        file = rig.appear("web")
        file.unlink()
        file.mkdir()  # as below
        await rig.runtime.start_container("web")
        await until(lambda: bool(rig.limits.host.problems.present))
        file.rmdir()
        file.write_text("\n")  # a kernel that has the file
        await until(lambda: not rig.limits.host.problems.present)

    assert in_force(file) == 1 << 30


async def test_a_refused_write_is_a_problem_and_tried_again(tmp_path: Path) -> None:
    async with running(tmp_path, period=0.05) as rig:
        await rig.create("web", {OURS: "1Gi"})
        assert rig.shown() == [["shop/web/web", "1", "GiB", "not", "written", "yet"]]
        file = rig.appear("web")
        file.unlink()
        # A folder in its place can be neither read nor written.
        file.mkdir()
        await rig.runtime.start_container("web")
        await until(lambda: bool(rig.limits.host.problems.present))
        (sentence,), _ = rig.explained("web")
        file.rmdir()
        file.write_text("-1\n")
        await until(lambda: not rig.limits.host.problems.present)

    assert ", not in force: " in sentence
    assert in_force(file) == 1 << 30
