"""`explain` shows all that is known of a container's requests and annotations."""

from __future__ import annotations

import json

from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.stub.model import (
    Container,
    HugepageLimit,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxPod,
    LinuxResources,
    Pod,
)
from nri_resmgr.values.documents import JsonObject
from tests.control.daemon_parts import Parts, make_parts
from tests.control.json_schema import mistakes

TEXT = json.dumps(
    {
        "pod": {"limits": {"cpu": 4, "memory": "1Gi"}},
        "containers": {
            "main": {"limits": {"hugepages-2Mi": "6Mi", "vendor.com/gpu": 2}},
            "log": {},
        },
    }
)


def created(parts: Parts) -> JsonObject:
    """Create a container with all sorts of requests; explain it."""
    resources = LinuxResources(
        cpu=LinuxCpu(4096, 400_000, 100_000),
        memory=LinuxMemory(limit=1 << 30),
        hugepage_limits=(HugepageLimit("2MB", 6 << 20), HugepageLimit("1GB", 0)),
    )
    pod = Pod(
        id="pod-own",
        name="own",
        namespace="shop",
        annotations={
            "noderesource.dev/resources": TEXT,
            "balloon.balloons.resource-policy.nri.io": "web",
        },
        linux=LinuxPod(
            cgroup_parent="/kubepods/pod1",
            pod_resources=LinuxResources(cpu=LinuxCpu(4096, 400_000, 100_000)),
        ),
    )
    made = Container(
        id="own",
        name="main",
        pod_sandbox_id=pod.id,
        linux=LinuxContainer(resources=resources),
    )
    parts.policy.create_container(pod, made)
    answer = explanation_of(parts.daemon, "own", "")
    assert mistakes(answer, "Explanation") == []
    return answer


def test_huge_pages_and_devices_are_listed() -> None:
    answer = created(make_parts("1s2n4c1t hugepages=2Mi:64"))
    (found,) = answer["containers"]
    lines = render_explanation(answer).splitlines()

    asked = found["container"]["request"]
    assert asked["hugepages"] == [{"size": 2 << 20, "count": 3}]
    assert asked["extended"] == {"vendor.com/gpu": 2}
    assert "  pages    huge pages: 3 of 2 MiB" in lines
    assert "  devices  2 vendor.com/gpu" in lines


def test_a_part_of_the_pods_resources_is_marked() -> None:
    answer = created(make_parts("1s2n4c1t hugepages=2Mi:64"))
    (found,) = answer["containers"]

    assert found["container"]["request"]["ofPod"] is True
    (asks,) = [
        line for line in render_explanation(answer).splitlines() if " asks " in line
    ]
    assert "2 CPU" in asks
    assert "(a part of its pod's)" in asks


def test_annotations_without_effect_are_listed() -> None:
    answer = created(make_parts("1s2n4c1t hugepages=2Mi:64"))
    why = "annotation balloon.balloons has no effect: TopologyAwarePolicy does not obey"

    assert answer["containers"][0]["ineffective"] == [f"{why} it"]
    assert f"  ignored  {why} it" in render_explanation(answer).splitlines()
