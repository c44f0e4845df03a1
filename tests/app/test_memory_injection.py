"""Memory policies by mpolset, with runtimes that cannot set them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_proto import NriLevel
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.stub.model import Mount
from nri_resmgr.testing import PluginRefused
from tests.app.memory_node import CLASS, MACHINE, POLICY, SPEC, v2_host
from tests.app.node import SAFE, running_node

INJECTS: Final = SPEC.replace(
    "  memoryPolicy:\n", "  memoryPolicy:\n    injectMpolset: true\n"
)
COMMAND: Final = ("server", "--mode", "fast")
LEVELS: Final = (NriLevel(0, 10), NriLevel(0, 11))


def options(folder: Path, *, dry_run: bool = False) -> PluginOptions:
    program = folder / "libexec"
    program.write_bytes(b"\x7fELF")
    return PluginOptions(dry_run, str(folder / "run"), str(program))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return v2_host(tmp_path)


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        pytest.param(
            {CLASS: "near"},
            ("--mode", "MPOL_BIND", "--nodes", "1", "--flags", "MPOL_F_STATIC_NODES"),
            id="a class, with the node of its CPUs",
        ),
        pytest.param(
            {CLASS: "spread"},
            ("--mode", "MPOL_INTERLEAVE", "--nodes", "0-1"),
            id="several nodes",
        ),
        pytest.param(
            {POLICY: "{mode: MPOL_LOCAL}"}, ("--mode", "MPOL_LOCAL"), id="no nodes"
        ),
    ],
)
async def test_the_command_is_started_by_the_program(
    folder: Path, level: NriLevel, annotations: dict[str, str], words: tuple[str, ...]
) -> None:
    made = options(folder)
    async with running_node(folder, MACHINE, INJECTS, level, lambda _: made) as node:
        created = await node.run("web", 2, annotations, args=COMMAND)

    adjustment = created.adjustment
    assert adjustment.args == ("/.nri-mpolset", *words, "--", *COMMAND)
    mounts = {one.destination: one for one in adjustment.mounts}
    program = folder / "run" / "mpolset"
    assert mounts["/.nri-mpolset"] == Mount(
        "/.nri-mpolset", "bind", str(program), ("bind", "ro", "nosuid", "nodev")
    )
    assert program.read_bytes() == b"\x7fELF"
    assert adjustment.linux is None or adjustment.linux.memory_policy is None


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="no annotation"),
        pytest.param({CLASS: "near", f"{CLASS}/container.web": ""}, id="it opts out"),
    ],
)
async def test_other_containers_keep_their_commands(
    folder: Path, annotations: dict[str, str]
) -> None:
    made = options(folder)
    async with running_node(
        folder, MACHINE, INJECTS, NriLevel(0, 10), lambda _: made
    ) as node:
        created = await node.run("web", 2, annotations, args=COMMAND)

    assert created.adjustment.args == ()
    assert not (folder / "run" / "mpolset").exists()


async def test_a_runtime_that_sets_policies_does_so(folder: Path) -> None:
    made = options(folder)
    async with running_node(folder, MACHINE, INJECTS, SAFE, lambda _: made) as node:
        created = await node.run("web", 2, {CLASS: "near"}, args=COMMAND)

    assert created.adjustment.args == ()
    assert created.adjustment.linux
    assert created.adjustment.linux.memory_policy


@pytest.mark.parametrize(
    ("level", "spec", "advice"),
    [
        pytest.param(
            NriLevel(0, 11),
            SPEC,
            "set memoryPolicy.injectMpolset: true in the configuration, leave the "
            "annotation out, or upgrade the runtime",
            id="not configured",
        ),
        pytest.param(
            NriLevel(0, 9),
            INJECTS,
            "leave the annotation out, or upgrade the runtime "
            "(memoryPolicy.injectMpolset would need NRI 0.10.0)",
            id="a runtime that drops changed commands",
        ),
    ],
)
async def test_an_unsupported_policy_is_refused_with_advice(
    folder: Path, level: NriLevel, spec: str, advice: str
) -> None:
    made = options(folder)
    async with running_node(folder, MACHINE, spec, level, lambda _: made) as node:
        with pytest.raises(PluginRefused) as found:
            await node.run("web", 2, {CLASS: "near"}, args=COMMAND)
        other = await node.run("other", 1, args=COMMAND)

    assert found.value.message.endswith(f"0.12.0 could; to help, {advice}")
    assert other.adjustment.args == ()


async def test_a_missing_program_refuses_the_container(folder: Path) -> None:
    made = PluginOptions(run_dir=str(folder / "run"), mpolset=str(folder / "none"))
    async with running_node(
        folder, MACHINE, INJECTS, NriLevel(0, 10), lambda _: made
    ) as node:
        with pytest.raises(PluginRefused) as found:
            await node.run("web", 2, {CLASS: "near"}, args=COMMAND)
        left = list(node.plugin.state.ledger.entries)

    assert f"{folder}/none: No such file or directory; to help, " in found.value.message
    assert left == []


async def test_a_container_without_a_known_command_is_refused(folder: Path) -> None:
    made = options(folder)
    async with running_node(
        folder, MACHINE, INJECTS, NriLevel(0, 10), lambda _: made
    ) as node:
        with pytest.raises(PluginRefused) as found:
            await node.run("web", 2, {CLASS: "near"})

    assert "but the runtime reports no command of it; to help" in found.value.message
