"""What people see of a daemon's answers: the same data, the same text."""

from __future__ import annotations

from typing import Any

import pytest

from nri_resmgr.cli.events import event_line
from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.state import state_of
from tests.control.daemon_parts import Parts, make_parts

STATUS = """\
nri-resmgr 0.1.0 as 90-resource-policy, up 1 h 2 min
runtime        containerd 2.1.0, disconnected since 2023-11-14T22:13:20.000Z
policy         TopologyAwarePolicy
configuration  built-in, generation 1, since 2023-11-14T22:13:20.000Z
requests       2 by oci (estimated)
updates        by the runtime
CPUs           8 online: 3 exclusive, 2 shared, 1 reserved, 0 isolated, 2 idle
node 0         CPUs 0-3; memory 16 GiB dram, 1 GiB granted, 15 GiB free
node 1         CPUs 4-7; memory 16 GiB dram, 1 GiB granted, 15 GiB free

pool            CPUs  shared   exclusive  granted     free   memory
reserved CPUs   0     -        -          0 of 1      1      -
socket #0       0-7   2-3,6-7  1,4-5      3500m of 7  3500m  2 GiB
  NUMA node #1  4-7   6-7      4-5        2 of 4      2      1 GiB
  NUMA node #0  0-3   2-3      1          1500m of 3  1500m  1 GiB

container        asks   pool          CPUs  exclusive  nodes
shop/mixed/main  1500m  NUMA node #0  1-3   1          0
shop/own/main    2      NUMA node #1  4-5   4-5        1"""

EXPLANATION = """\
shop/own/main
  decided  CPUs 4-5 (exclusive: 4-5); memory of nodes 1
  kernel   not known: no cgroup is found
  runtime  as decided
  asks     2 CPU, 1 GiB memory; limits: 2 CPU, 1 GiB memory
  source   oci, estimated; QoS Guaranteed
  of which CPU and limits of cgroup values; memory of them or of the OOM \
score; no devices
  pool     NUMA node #1
why, decided at 2023-11-14T22:13:21.000Z by rule whole-cpus:
  - it is Guaranteed and asks for whole CPUs, so they are exclusive
  - of all pools, NUMA node #1 was chosen: the most CPU was free there
  - its exclusive CPUs are on one NUMA node
if it were placed now, best first:
    pool          better than those below because     scores
  * NUMA node #1  fewer memory nodes are needed       fewer-nodes=-1 depth=1 \
spread=4000 fewer-touched=0 id=-1
    socket #0     the others had not enough free CPU  fewer-nodes=-2 depth=0 \
spread=5500 fewer-touched=-1 id=-2
history:
  event  time                      kind              CPUs  nodes  why
  #2     2023-11-14T22:13:21.000Z  container.placed  4-5   1      it is Guaranteed \
and asks for whole CPUs, so they are exclusive"""

BY_CGROUP: dict[str, Any] = {
    "by": "cgroup",
    "why": "",
    "byRuntime": 0,
    "writes": {
        "written": 7,
        "rewritten": 2,
        "failed": 1,
        "lateStarts": 3,
        "lastSeconds": 0.01,
    },
}


def node() -> Parts:
    parts = make_parts()
    parts.run("own", 2)
    parts.run("mixed", 1.5)
    return parts


def state() -> dict[str, Any]:
    found = state_of(node().daemon)
    found["daemon"] |= {"version": "0.1.0", "uptimeSeconds": 3725}
    return found


def test_the_status_is_a_summary_and_two_tables() -> None:
    assert render_status(state()) == STATUS


def test_without_containers_there_is_no_table_of_them() -> None:
    assert "\ncontainer" not in render_status(state_of(make_parts().daemon))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param(
            {"daemon": {"dryRun": True}},
            "nri-resmgr 0.1.0 as 90-resource-policy, up 1 h 2 min; dry run: nothing "
            "is changed",
            id="a dry run says so",
        ),
        pytest.param(
            {
                "runtime": {"name": ""},
                "session": {"endedWhy": "end of file"},
            },
            "runtime        none: end of file since 2023-11-14T22:13:20.000Z",
            id="a lost runtime says why",
        ),
        pytest.param(
            {"session": {"number": 3}, "runtime": {"nri": "0.9"}},
            "runtime        containerd 2.1.0 (NRI 0.9), disconnected since "
            "2023-11-14T22:13:20.000Z, session 3",
            id="sessions are counted from the second on",
        ),
        pytest.param(
            {
                "configuration": {
                    "error": {
                        "source": "file",
                        "name": "/etc/x.yaml",
                        "why": "$.spec: no",
                        "when": "NOW",
                    }
                }
            },
            "               refused at NOW from file /etc/x.yaml: $.spec: no",
            id="a refused configuration says why",
        ),
        pytest.param(
            {"pendingUpdates": {"count": 2, "oldestSeconds": 65.5}},
            "               2 updates pending, the oldest for 1 min 5 s",
            id="pending updates are counted",
        ),
        pytest.param(
            {"recordUpdates": {"count": 1, "oldestSeconds": 2.5}},
            "               1 record update pending, the oldest for 2 s",
            id="record updates are counted apart",
        ),
        pytest.param(
            {"applyUpdates": {"why": "read-only file system"}},
            "updates        by the runtime: read-only file system",
            id="updates by the runtime have a reason",
        ),
        pytest.param(
            {"applyUpdates": BY_CGROUP},
            "updates        by cgroups: 7 writes, 2 after other programs' writes, "
            "1 failed",
            id="writes are counted by result",
        ),
        pytest.param(
            {"applyUpdates": BY_CGROUP},
            "               3 starts did not wait until others had left their CPUs",
            id="late starts are counted",
        ),
        pytest.param(
            {"kubelet": [{"manager": "cpu", "policy": "static", "why": "it is"}]},
            "kubelet        it is",
            id="a kubelet that is in the way is named",
        ),
        pytest.param(
            {"configuration": {"ineffective": ["$.spec.x", "$.spec.y"]}},
            "               no effect: $.spec.x, $.spec.y",
            id="what has no effect is named",
        ),
        pytest.param(
            {"configuration": {"leftOut": [{"path": "$.spec.x", "why": "no CPU 9"}]}},
            "               left out: $.spec.x: no CPU 9",
            id="what is left out is named",
        ),
    ],
)
def test_the_summary(changes: dict[str, Any], line: str) -> None:
    found = state()
    for part, values in changes.items():
        found[part] = values if isinstance(values, list) else found[part] | values

    assert line in render_status(found).splitlines()


def test_an_explanation_has_the_grant_its_reason_and_its_values() -> None:
    answer = explanation_of(node().daemon, "own", "")

    assert render_explanation(answer) == EXPLANATION


def test_a_removed_container_is_explained_from_its_history() -> None:
    parts = node()
    parts.stop("own")
    lines = render_explanation(explanation_of(parts.daemon, "own", "")).splitlines()

    assert lines[:2] == [
        "shop/own/main (removed)",
        "why, decided at 2023-11-14T22:13:21.000Z by rule whole-cpus:",
    ]
    assert lines[-1].endswith("it is gone, and its resources are free")


CGROUP = "CPU and limits of cgroup values; memory of them or of the OOM score"
CONTRADICT = "CPU, memory and limits of cgroup values, which contradict"


@pytest.mark.parametrize(
    ("source", "own", "sentence"),
    [
        ("oci", "oci", f"{CGROUP}; no devices"),
        ("annotation", "annotation", ""),
        ("kubelet", "kubelet", ""),
        (
            "annotation, resized",
            "annotation, resized",
            "CPU and memory of cgroup values; others of the annotation",
        ),
        (
            "kubelet, resized",
            "kubelet, resized",
            "CPU and memory of cgroup values; others of the kubelet",
        ),
        (
            "stale-annotation",
            "stale-annotation",
            f"{CONTRADICT}; devices of the annotation",
        ),
        (
            "stale-kubelet",
            "stale-kubelet",
            f"{CONTRADICT}; devices of the kubelet",
        ),
        ("adjustment", "kubelet", "what the adjustment does not set: kubelet"),
        (
            "adjustment",
            "oci",
            f"what the adjustment does not set: oci ({CGROUP}; no devices)",
        ),
    ],
)
def test_the_origins_of_amounts_are_explained(
    source: str, own: str, sentence: str
) -> None:
    answer = explanation_of(node().daemon, "own", "")
    answer["containers"][0]["container"] |= {"source": source, "ownSource": own}
    lines = render_explanation(answer).splitlines()

    found = [line for line in lines if line.startswith("  of which ")]
    assert found == [f"  of which {sentence}"] * bool(sentence)


def test_a_refused_container_is_explained_by_its_refusal() -> None:
    parts = node()
    parts.run("huge", 64)
    text = render_explanation(explanation_of(parts.daemon, "huge", ""))

    assert text.startswith("recently refused:\n  2023-11-14T22:13:23.000Z  #4  ")
    assert "NoPoolFits  shop/huge/main asks for 64 exclusive CPUs" in text


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"kind": "gap", "missed": 3, "next": 9}, "... 3 events are no longer kept"),
        ({"kind": "gap", "missed": 0, "next": 1}, "... the daemon was restarted"),
        (
            {"number": 1, "time": "T", "kind": "session.ended", "why": "end of file"},
            "T  #1  session.ended  end of file",
        ),
        (
            {"number": 2, "time": "T", "kind": "drift", "title": "a/b", "why": "c d"},
            "T  #2  drift  a/b  c d",
        ),
        (
            {
                "number": 3,
                "time": "T",
                "kind": "container.placed",
                "containers": [
                    {"id": "x", "title": "a/b/c", "rule": "r", "cpus": "0-1"}
                    | {"pool": "x"}
                ],
                "updates": 2,
            },
            "T  #3  container.placed  a/b/c r cpus=0-1 pool=x  changes 2 others",
        ),
        (
            {
                "number": 4,
                "time": "T",
                "kind": "node.synchronized",
                "containers": [{"id": f"{n}", "rule": "kept"} for n in range(3)]
                + [{"id": "9", "rule": "moved"}],
                "updates": 1,
            },
            "T  #4  node.synchronized  4 containers: 3 kept, 1 moved  changes 1 other",
        ),
    ],
)
def test_an_event_is_a_line(event: dict[str, Any], line: str) -> None:
    assert event_line(event) == line


def test_the_wide_form_of_an_event_names_all_containers() -> None:
    containers = [{"id": f"{n}", "rule": "kept"} for n in range(4)]
    event = {"number": 4, "time": "T", "kind": "k", "containers": containers}

    assert event_line(event, is_wide=True) == "T  #4  k  0 kept  1 kept  2 kept  3 kept"
