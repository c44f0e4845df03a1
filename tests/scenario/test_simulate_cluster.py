"""``simulate --cluster``: folders, tables, JSON and exit statuses of the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command import ROOT, nri_resmgr
from tests.scenario.cluster_objects import pod, rolled, web_pod

pytestmark = pytest.mark.process

DOCS = Path("docs/simulate.md")
MACHINES = {"node-a": "2s1n4c2t", "node-b": "1s1n4c2t"}
# For the daemon's pod of a node it answers with the machine of the node.
KUBECTL = """#!/bin/sh
dump="nri-resmgr topology --host-root /host dump -"
pods="get pods --all-namespaces --field-selector spec.nodeName"
json="import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)"
case "$*" in
"get pods -n kube-system -l app.kubernetes.io/name=nri-resmgr "*)
  printf 'daemon-a   node-a\\ndaemon-b   node-b\\n' ;;
"exec -n kube-system daemon-a -c nri-resmgr -- $dump") cat {cluster}/node-a.tgz ;;
"exec -n kube-system daemon-b -c nri-resmgr -- $dump")
  {python} -m nri_resmgr topology --load {cluster}/node-b.tgz dump - ;;
"$pods=node-a -o json") {python} -c "$json" {cluster}/node-a.yaml ;;
"$pods=node-b -o json") {python} -c "$json" {cluster}/node-b.yaml ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
"""
HEAD = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\nspec: "


def write(path: Path, *documents: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return path


def listed(*pods: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(pods)}


def dump(machine: str, path: Path) -> None:
    done = nri_resmgr("topology", "--machine", machine, "dump", path)
    assert done.returncode == 0


def document(*words: str | Path) -> dict[str, Any]:
    done = nri_resmgr("simulate", *words, "-o", "json")
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """The folder of the page: two nodes with a Deployment, and a StatefulSet."""
    folder = tmp_path / "cluster"
    web = [web_pod(f"web-7d4b9-{n}", f"node-{where}") for n, where in enumerate("aab")]
    db = pod("db-0", "node-b", owner="StatefulSet db", cpu=4)
    write(folder / "node-a.yaml", listed(*web[:2]))
    write(folder / "node-b.yaml", listed(db, web[2]))
    for name, machine in MACHINES.items():
        dump(machine, folder / f"{name}.tgz")
    return folder


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """The workload of the page."""
    return write(tmp_path / "web.yaml", rolled("Deployment", "web", replicas=5))


def test_the_page_shows_the_printed_nodes(cluster: Path, web: Path) -> None:
    done = nri_resmgr("simulate", "--cluster", cluster, web)

    section = DOCS.read_text(encoding="utf-8").split("### Nodes of a cluster")[1]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == section.split("```text\n")[1].split("```")[0]


def test_the_loop_of_the_page_collects_a_folder(cluster: Path, tmp_path: Path) -> None:
    """With a kubectl that has two nodes and knows nothing but this loop's calls."""
    section = DOCS.read_text(encoding="utf-8").split("### Nodes of a cluster")[1]
    lines = section.split("```console\n")[2].split("```")[0].splitlines()
    loop = "\n".join(line[2:] for line in lines if "simulate" not in line)
    double = tmp_path / "bin" / "kubectl"
    double.parent.mkdir()
    double.write_text(KUBECTL.format(python=sys.executable, cluster=cluster))
    double.chmod(0o755)
    path = f"{double.parent}:{os.environ['PATH']}"

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", loop],
        env={"PATH": path, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path / "bin",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = document("--cluster", tmp_path / "bin" / "cluster")
    assert found == document("--cluster", cluster)
    assert found["left_out"] == found["skipped"] == []


def test_a_cluster_is_shown_as_it_is(cluster: Path) -> None:
    (cluster / "notes.txt").write_text("x")
    words = ("--fail-on-refused", "--cluster", cluster)

    done, found = nri_resmgr("simulate", *words), document(*words)

    assert done.returncode == 0
    table, summary, left_out = done.stdout.split("\n\n")
    assert [line.split()[:5] for line in table.splitlines()[1:]] == [
        ["node-a", "16", "2", "0", "0"],
        ["node-b", "8", "2", "0", "0"],
    ]
    free = sum(int(line.split()[5]) for line in table.splitlines()[1:])
    assert summary.startswith(f"{free} of 24 CPUs could be granted exclusively; ")
    assert left_out == (
        f"left out\n  file {cluster}/notes.txt: "
        "its name does not end in .yaml, .yml, .json or .tgz\n"
    )
    assert [
        (one["node"], one["cpus"], one["present"], one["accepted"])
        for one in found["nodes"]
    ] == [("node-a", "0-15", 2, True), ("node-b", "0-7", 2, True)]
    assert found["new"] == []


def test_each_node_is_as_if_simulated_alone(cluster: Path, tmp_path: Path) -> None:
    """With the pods that stay, oldest first, and as many of the new template."""
    old = pod("old", "node-b", cpu=1, since="2025-01-01T00:00:00Z")
    write(cluster / "more" / "old.yaml", old)
    fits = write(tmp_path / "fits.yaml", rolled("Deployment", "web", cpu=3))
    db = pod("db-0", "node-b", cpu=4)
    alone = {
        "node-a": [rolled("Deployment", "web", replicas=2, cpu=3)],
        "node-b": [old, db, rolled("Deployment", "web", replicas=1, cpu=3)],
    }

    found = document("--cluster", cluster, fits)["nodes"]

    assert [one["node"] for one in found] == list(alone)
    for one in found:
        name = one["node"]
        pods = write(tmp_path / name / "alone.yaml", *alone[name])
        expected = document("--topology", cluster / f"{name}.tgz", pods)
        about = ("apiVersion", "kind", "left_out", "skipped", "by_shape")
        assert expected["containers"]
        assert {key: one[key] for key in expected if key not in about} == {
            key: value for key, value in expected.items() if key not in about
        }
    assert [len(one["refusals"]) for one in found] == [0, 1]


def test_what_is_refused_is_an_exit_status(cluster: Path, tmp_path: Path) -> None:
    words = ("--fail-on-refused", "--cluster", cluster)

    def status(kind: str, name: str, **about: int) -> int:
        file = write(tmp_path / "rollout.yaml", rolled(kind, name, **about))
        return nri_resmgr("simulate", *words, file).returncode

    assert status("Deployment", "web", replicas=3, cpu=1) == 0
    assert status("Deployment", "web", replicas=3, cpu=4) == 1  # on node-b
    assert status("Deployment", "web", replicas=4, cpu=1) == 0
    assert status("Deployment", "web", replicas=40, cpu=1) == 1  # the new ones
    assert status("Deployment", "api", replicas=2, cpu=4) == 0  # both on node-a
    assert status("DaemonSet", "api", cpu=4) == 1  # node-b needs one, too


def test_refusals_of_running_pods_are_listed_apart(cluster: Path) -> None:
    write(cluster / "big.yaml", pod("big", "node-b", cpu=7, since="2027"))

    done = nri_resmgr("simulate", "--fail-on-refused", "--cluster", cluster)

    assert done.returncode == 1
    assert (
        "refused on node-b, of pods that run there already\n  shop/big" in done.stdout
    )
    assert document("--cluster", cluster)["nodes"][1]["accepted"]


def test_containers_that_fall_back_are_listed_and_not_refused(
    cluster: Path, web: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.yaml"
    shared.write_text(f"{HEAD}{{onFailure: shared, reservedResources: {{cpu: 1}}}}")
    words = ("--config-file", shared, "--fail-on-refused")

    done = nri_resmgr("simulate", "--cluster", cluster, *words, web)

    assert (done.returncode, done.stderr) == (0, "")
    assert "on shared CPUs of node-b, by onFailure\n  shop/web/app\n" in done.stdout


def test_configurations_are_compared_on_each_node(cluster: Path, web: Path) -> None:
    one, two = cluster.parent / "one", cluster.parent / "two"
    one.write_text(f"{HEAD}{{reservedResources: {{cpu: 'cpuset:0'}}}}")
    two.write_text(f"{HEAD}{{reservedResources: {{cpu: 'cpuset:0-6'}}}}")
    words = ("--cluster", cluster, "--config-file", one, "--against")

    same, other = (nri_resmgr("simulate", *words, file, web) for file in (one, two))
    found = document(*words, two, web)

    assert (same.returncode, same.stdout) == (0, "no difference\n")
    assert other.returncode == 1
    summary, before, after, *nodes = other.stdout.split("\n\n")
    rows = [line.split() for line in summary.splitlines()[1:]]
    assert [row[0] for row in rows] == ["node-a", "node-b"]
    assert [row[2:] for row in rows] == [["0", "0"], ["1", "2"]]
    assert before.startswith("new pods before\n  shop/web-new: 1 of 2 granted (node-a")
    assert after.startswith("new pods after\n  shop/web-new: 0 of 2 granted; no node")
    heads = [part.splitlines()[0] for part in nodes]
    assert [head for head in heads if head in MACHINES] == ["node-a", "node-b"]
    for row, node in zip(rows, found["nodes"], strict=True):
        titles = {
            change["title"]
            for change in node["changes"]
            if change["title"] != "node" and change["what"] != "refused"
        }
        assert (row[0], int(row[1])) == (node["node"], len(titles))
    (new,) = found["new"]
    assert (new["before"]["refused"], new["after"]["refused"]) == (1, 2)


def test_a_hundred_nodes_are_one_run(tmp_path: Path) -> None:
    """Of 5,000 pods 4,900 fit nowhere, which does not take 100 trials for each."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    dump("1s1n4c1t", folder / "n0.tgz")
    for number in range(100):
        name = f"n{number}"
        if number:
            shutil.copy(folder / "n0.tgz", folder / f"{name}.tgz")
        pods = listed(pod(f"old-{number}", name, cpu=1))
        (folder / f"{name}.json").write_text(json.dumps(pods), encoding="utf-8")
    rollout = write(
        tmp_path / "api.yaml", rolled("Deployment", "api", replicas=5000, cpu=2)
    )

    found = document("--cluster", folder, rollout)

    assert len(found["nodes"]) == 100
    (new,) = found["new"]
    assert (len(new["granted"]), new["refused"]) == (100, 4900)
    assert all(len(one["containers"]) == 2 for one in found["nodes"])


def test_a_folder_without_pods_is_a_choice_of_machines(
    cluster: Path, web: Path
) -> None:
    for file in cluster.glob("*.yaml"):
        file.unlink()

    (new,) = document("--cluster", cluster, web)["new"]

    assert (new["title"], new["pods"], new["refused"]) == ("shop/web", 5, 1)


def test_a_mistake_names_its_file(cluster: Path) -> None:
    words = ("simulate", "--cluster", cluster)

    def sentence(*more: str | Path) -> str:
        done = nri_resmgr(*words, *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        return done.stderr.replace(str(cluster), "FOLDER")

    bad = write(cluster / "bad.yaml", pod("bad", "node-a"))
    bad.write_text(bad.read_text().replace("cpu: 2", "cpu: lots"))
    assert "FOLDER/bad.yaml: $[0].spec.containers[0].resources" in sentence()
    bad.write_text("{")
    assert "FOLDER/bad.yaml: line " in sentence()
    write(bad, pod("db-0", "node-b"))
    assert "Pod shop/db-0 is in FOLDER/bad.yaml and in FOLDER/node-b.yaml" in sentence()
    write(bad, pod("twice", "node-b"), pod("twice", "node-b"))
    assert "node node-b: $.story[2]: 'twice' runs already" in sentence()
    bad.unlink()

    whole = (cluster / "node-a.tgz").read_bytes()
    (cluster / "node-a.tgz").write_bytes(whole[:100])
    assert "FOLDER/node-a.tgz: not a dump of a machine: " in sentence()
    (cluster / "node-a.tgz").write_bytes(whole)
    shutil.copytree(cluster, cluster / "copy", ignore=lambda *_: {"copy"})
    assert (
        "FOLDER/copy/node-a.tgz and FOLDER/node-a.tgz are dumps of the same node"
        in (sentence())
    )
    shutil.rmtree(cluster / "copy")

    story = cluster.parent / "story.yaml"
    story.write_text("story: []")
    assert "a scenario is of one node" in sentence(story)
    config = cluster.parent / "config.yaml"
    config.write_text(f"{HEAD}{{pinCpu: true}}")
    assert f"{config}: $.spec.pinCpu: unknown key" in sentence("--config-file", config)


def test_what_the_log_says_of_a_configuration_names_the_node(cluster: Path) -> None:
    config = cluster.parent / "config.yaml"
    config.write_text(f"{HEAD}{{reservedResources: {{cpu: 'cpuset:8'}}}}")

    done = nri_resmgr("simulate", "--cluster", cluster, "--config-file", config)

    (line,) = done.stderr.splitlines()
    assert "configuration.left-out " in line
    assert " node=node-b path=$.spec.reservedResources.cpu " in line


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param((), "WORKLOAD is missing", id="nothing to simulate"),
        pytest.param(
            ("--cluster", ".", "--topology", "1s1c"),
            "--topology: the folder of --cluster has the machines",
            id="another machine",
        ),
        pytest.param(
            ("--cluster", ".", "--picture", "x.svg"),
            "--picture draws one machine, and --cluster has several",
            id="a picture",
        ),
        pytest.param(
            ("--cluster", "docs"),
            "--cluster docs: no file in it ends in .tgz; write NODE.tgz for each",
            id="a folder of something else",
        ),
        pytest.param(("--cluster", "nowhere"), "cannot read nowhere", id="no folder"),
        pytest.param(
            ("--cluster", "Makefile"), "cannot read Makefile: not a dir", id="a file"
        ),
    ],
)
def test_bad_arguments_are_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    done = nri_resmgr("simulate", *words)

    assert done.returncode == 2
    assert done.stderr.startswith(f"nri-resmgr: {sentence}")
    assert done.stderr.count("\n") == 1
