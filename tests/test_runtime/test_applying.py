"""A container changes as the runtimes' OCI generator would change its spec."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from nri_proto import nri_pb2
from nri_resmgr.testing.merge import apply_adjustment
from tests.test_runtime.adjustments import KINDS


def apply(before: str, changes: str) -> nri_pb2.Container:
    """Apply an adjustment to a container, both as text."""
    container = text_format.Parse(before, nri_pb2.Container())
    apply_adjustment(
        text_format.Parse(changes, nri_pb2.ContainerAdjustment()), container
    )
    return container


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        pytest.param(
            'env: "A=1" env: "B=1"',
            'env { key: "A" value: "2=3" } env { key: "C" }',
            'env: "A=2=3" env: "B=1" env: "C="',
            id="a variable is replaced in its place",
        ),
        pytest.param(
            'mounts { destination: "/a/b" source: "/1" } mounts { destination: "/x" }',
            'mounts { destination: "/a" } mounts { destination: "-/x" }'
            'mounts { destination: "/a/b" source: "/2" }',
            'mounts { destination: "/a" } mounts { destination: "/a/b" source: "/2" }',
            id="mounts are replaced, removed and sorted by depth",
        ),
        pytest.param(
            'annotations { key: "a" value: "1" } annotations { key: "b" value: "1" }',
            'annotations { key: "-a" } annotations { key: "b" value: "2" }'
            'annotations { key: "-b" }',
            'annotations { key: "b" value: "2" }',
            id="annotations are removed, then set",
        ),
        pytest.param(
            'args: "sleep" args: "1"',
            'args: "sh"',
            'args: "sh"',
            id="arguments are replaced as a whole",
        ),
        pytest.param(
            'hooks { prestart { path: "/a" } }',
            'hooks { prestart { path: "/b" } }',
            'hooks { prestart { path: "/a" } prestart { path: "/b" } }',
            id="hooks are added",
        ),
        pytest.param(
            'rlimits { type: "RLIMIT_CORE" hard: 1 }',
            'rlimits { type: "RLIMIT_CORE" hard: 2 }',
            'rlimits { type: "RLIMIT_CORE" hard: 1 }'
            'rlimits { type: "RLIMIT_CORE" hard: 2 }',
            id="rlimits are added, even of the same type",
        ),
        pytest.param(
            'linux { devices { path: "/d" major: 1 } devices { path: "/e" } }',
            'linux { devices { path: "/d" major: 2 } }',
            'linux { devices { path: "/e" } devices { path: "/d" major: 2 }}',
            id="a device is replaced by its path",
        ),
        pytest.param(
            'linux { namespaces { type: "network" path: "/1" }'
            ' namespaces { type: "pid" } }',
            'linux { namespaces { type: "-pid" }'
            ' namespaces { type: "network" path: "/2" } }',
            'linux { namespaces { type: "network" path: "/2" }}',
            id="namespaces are replaced and removed by type",
        ),
        pytest.param(
            'linux { net_devices { key: "a" value { } }'
            ' sysctl { key: "s" value: "1" } }',
            'linux { net_devices { key: "-a" value { } } sysctl { key: "-s" }'
            ' net_devices { key: "b" value { name: "c" } } }',
            'linux { net_devices { key: "b" value { name: "c" } }}',
            id="net devices and sysctls are removed and set",
        ),
        pytest.param(
            "linux { resources { memory { limit { value: 1 } } } }",
            "linux { resources { memory { limit { value: 5 } swap { value: 9 }"
            " reservation { value: 4 } } } }",
            "linux { resources { memory { limit { value: 5 } swap { value: 5 } } } }",
            id="swap is made equal to the memory limit, the rest gets lost",
        ),
        pytest.param(
            "linux { resources { memory { limit { value: 1 } } } }",
            "linux { resources { memory { limit { } } cpu { shares { } } } }",
            "linux { resources { memory { limit { value: 1 } } cpu { shares { } } } }",
            id="a limit of 0 is none, 0 shares are 0",
        ),
        pytest.param(
            'linux { resources { hugepage_limits { page_size: "2MB" limit: 1 }'
            ' unified { key: "a" value: "1" } } }',
            'linux { resources { hugepage_limits { page_size: "2MB" limit: 2 }'
            ' unified { key: "b" value: "2" } pids { limit: 3 } rdt_class { } } }',
            'linux { resources { hugepage_limits { page_size: "2MB" limit: 2 }'
            ' unified { key: "a" value: "1" } unified { key: "b" value: "2" }'
            " pids { limit: 3 } rdt_class { } } }",
            id="hugepages by size, unified by key, classes and pids",
        ),
    ],
)
def test_changes_are_applied_to_a_container(
    before: str, changes: str, after: str
) -> None:
    assert apply(before, changes) == text_format.Parse(after, nri_pb2.Container())


@pytest.mark.parametrize(
    "kind",
    [
        "an I/O priority",
        "a scheduler",
        "a seccomp policy",
        "an OOM score",
        "a cgroup path",
        "a CLOS",
        "CPUs",
        "memory nodes",
        "CPU shares",
        "a CPU quota",
        "a real-time period",
        "a block I/O class",
    ],
)
def test_every_kind_of_field_is_applied(kind: str) -> None:
    text, _ = KINDS[kind]

    assert apply("", text) == text_format.Parse(text, nri_pb2.Container())


def test_the_memory_policy_has_no_place_in_a_container() -> None:
    text, _ = KINDS["a memory policy"]

    assert not apply("", text).linux.ByteSize()
