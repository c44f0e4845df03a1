"""Which hints count, and what they say together."""

from __future__ import annotations

import pytest

from nri_resmgr.topology.hints import (
    Hint,
    complete_hints,
    gives_hint,
    pod_resource_hints,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, NodeSet

# node 0: CPUs 0-1     node 1: CPUs 2-3     node 2: CXL
MACHINE = parse_spec("2s2c cxl=1Gi")


@pytest.mark.parametrize(
    ("hint", "completed"),
    [
        pytest.param(
            Hint("a", nodes=NodeSet.of(1)),
            [Hint("a", CpuSet.of(2, 3), NodeSet.of(1))],
            id="nodes bring their CPUs",
        ),
        pytest.param(
            Hint("a", cpus=CpuSet.of(2)),
            [Hint("a", CpuSet.of(2), NodeSet.of(1))],
            id="CPUs bring their nodes",
        ),
        pytest.param(
            Hint("a", packages=frozenset({1, 7})),
            [Hint("a", CpuSet.of(2, 3), NodeSet.of(1))],
            id="packages bring their CPUs and nodes",
        ),
        pytest.param(
            Hint("a", nodes=NodeSet.of(0), packages=frozenset({1})),
            [Hint("a", CpuSet.of(0, 1), NodeSet.of(0))],
            id="packages are for where nothing finer is known",
        ),
        pytest.param(
            Hint("a", cpus=CpuSet.of(2, 9), nodes=NodeSet.of(1, 9)),
            [Hint("a", CpuSet.of(2), NodeSet.of(1))],
            id="what is not there does not count",
        ),
        pytest.param(
            Hint("a", nodes=NodeSet.of(2)),
            [Hint("a", CpuSet(), NodeSet.of(2))],
            id="a node without CPUs",
        ),
        pytest.param(Hint("a", cpus=CpuSet.parse("0-3")), [], id="near to everything"),
        pytest.param(Hint("a", cpus=CpuSet.of(9)), [], id="near to nothing"),
        pytest.param(Hint("a"), [], id="nothing said"),
    ],
)
def test_completion(hint: Hint, completed: list[Hint]) -> None:
    assert list(complete_hints([hint], MACHINE)) == completed


def test_the_first_hint_of_a_provider_is_kept() -> None:
    first, second = Hint("a", CpuSet.of(0)), Hint("a", CpuSet.of(2))

    assert complete_hints([first, second], MACHINE) == (
        Hint("a", CpuSet.of(0), NodeSet.of(0)),
    )


def test_the_kubelets_devices_are_hints_of_nodes() -> None:
    assert pod_resource_hints({"example.com/gpu/0": NodeSet.of(1)}) == (
        Hint("podresapi:example.com/gpu/0", nodes=NodeSet.of(1)),
    )


POD = "/var/lib/kubelet/pods/1234/volumes"


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        pytest.param("/data", "/mnt", id="a data folder"),
        pytest.param("/etcetera", "/mnt", id="a name that only begins so"),
        pytest.param(f"{POD}/kubernetes.io~empty-dir/a", "/a", id="scratch space"),
    ],
)
def test_mounts_that_report(source: str, destination: str) -> None:
    assert gives_hint(source, destination, read_only=False)
    assert not gives_hint(source, destination, read_only=True)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        pytest.param("/etc/x", "/mnt", id="the host's settings"),
        pytest.param("/x", "/etc/hosts", id="the container's settings"),
        pytest.param("/x", "/dev/termination-log", id="the last words"),
        pytest.param(f"{POD}/kubernetes.io~secret/a", "/a", id="a secret"),
        pytest.param(f"{POD}/kubernetes.io~configmap/a", "/a", id="a config map"),
    ],
)
def test_mounts_that_do_not(source: str, destination: str) -> None:
    assert not gives_hint(source, destination, read_only=False)
