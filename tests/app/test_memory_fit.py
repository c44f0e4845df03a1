"""What documents say of memory classes, held against a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.app.configuration.build import host_warnings
from nri_resmgr.cli.check import check
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.memory_node import MACHINE, make_v1, v2_host

TWO_NODES = parse_spec(MACHINE)
HEAD = "apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\nspec:\n"
V1 = "cgroup v1 has no files for it; containers that request it are refused"


def bind(nodes: str, flags: str = "") -> str:
    policy = f"{{mode: MPOL_BIND, nodes: '{nodes}', flags: [{flags}]}}"
    near = "{name: near, policy: {mode: MPOL_BIND, nodes: cpu-nodes}}"
    return f"  memoryPolicy: {{classes: [{near}, {{name: a, policy: {policy}}}]}}"


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    return HostTree(str(v2_host(tmp_path) / "host"))


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param("  memoryQos: {}", (), id="files that there are"),
        pytest.param(bind("0-1"), (), id="nodes that there are"),
        pytest.param(bind("max-dist:99"), (), id="nodes by their distance"),
        pytest.param(bind("0-7", "MPOL_F_RELATIVE_NODES"), (), id="the first of them"),
        pytest.param(
            bind("1-2,5"),
            (
                (
                    "$.spec.memoryPolicy.classes[1].policy.nodes",
                    "this machine has no node 2,5; containers of the class are refused",
                ),
            ),
            id="nodes that there are not",
        ),
    ],
)
def test_settings_that_a_host_does_not_support_are_warnings(
    host: HostTree, spec: str, warnings: tuple[tuple[str, str], ...]
) -> None:
    config = parse_config(HEAD + spec)

    assert host_warnings(config, TWO_NODES, host) == warnings


def test_version_1_has_no_files_to_share_memory_out(
    tmp_path: Path, host: HostTree
) -> None:
    make_v1(tmp_path)
    config = parse_config(f"{HEAD}  memoryQos: {{}}")

    assert host_warnings(config, TWO_NODES, host) == (("$.spec.memoryQos", V1),)


def test_check_reports_it(tmp_path: Path, host: HostTree) -> None:
    make_v1(tmp_path)

    found = check("a.yaml", f"{HEAD}  memoryQos: {{}}", TWO_NODES, host)

    assert found.mistakes == ()
    assert [str(one) for one in found.warnings] == [f"$.spec.memoryQos: {V1}"]
