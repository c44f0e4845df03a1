"""Workloads of several files, of folders and of standard input, as people name them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, nri_resmgr

pytestmark = pytest.mark.process

TOPOLOGY = ("--topology", "2s2n2c2t")


def pod(name: str, cpu: str = "1") -> str:
    amounts = f"resources: {{limits: {{cpu: {cpu}, memory: 1Gi}}}}"
    spec = f"spec: {{containers: [{{name: app, {amounts}}}]}}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, {spec}}}\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def simulated(*words: str | Path, given: str | None = None) -> dict[str, object]:
    done = nri_resmgr("simulate", *TOPOLOGY, "-o", "json", *words, given=given)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def titles(found: dict[str, object]) -> list[str]:
    containers = found["containers"]
    assert isinstance(containers, list)
    return [one["title"].split("/")[1] for one in containers]


def test_files_folders_and_standard_input_are_one_workload(tmp_path: Path) -> None:
    one = write(tmp_path / "one.yaml", pod("one"))
    folder = tmp_path / "folder"
    write(folder / "b.yml", pod("b"))
    write(folder / "a" / "deep.json", pod("deep"))
    write(folder / ".git" / "hidden.yaml", pod("hidden"))
    notes = write(folder / "notes.md", "not YAML: [")
    values = write(folder / "values.yaml", "replicas: 3\n")

    found = simulated(one, folder, "-", one, given=pod("given"))

    assert titles(found) == ["one", "deep", "b", "given"]
    left_out = found["left_out"]
    assert isinstance(left_out, list)
    assert {(row["file"], row["is_file"], row["why"]) for row in left_out} == {
        (str(notes), True, "its name does not end in .yaml, .yml or .json"),
        (str(values), True, "it has no Kubernetes object"),
    }
    shown = nri_resmgr("simulate", *TOPOLOGY, folder).stdout
    assert f"  file {notes}: its name does not end in" in shown


def test_objects_that_are_left_out_have_their_file(tmp_path: Path) -> None:
    one = write(tmp_path / "one.yaml", pod("one"))
    two = write(
        tmp_path / "two.yaml", "{apiVersion: a.io/v1, kind: Odd, metadata: {name: o}}"
    )

    shown = nri_resmgr("simulate", *TOPOLOGY, one, two).stdout

    assert f"  Odd o (a.io/v1) in {two}: its kind is unknown\n" in shown


def test_standard_input_alone_may_be_a_scenario() -> None:
    assert titles(simulated("-", given="story: [{create: x, guaranteed: 1}]")) == [
        "pod-of-x"
    ]


def all_of(terminal: int) -> Iterator[str]:
    """Yield what a terminal got whose other end is closed."""
    with contextlib.suppress(OSError):
        while text := os.read(terminal, 1 << 16):
            yield text.decode()


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        pytest.param(
            {"a.yaml": "story: []", "b.yaml": pod("b")},
            "%s/a.yaml: $: a scenario is of one node, and has to be the only file",
            id="a scenario beside manifests",
        ),
        pytest.param(
            {"a.yaml": pod("b"), "b.yaml": pod("x") + "---\n" + pod("b")},
            "Pod default/b is in %s/a.yaml and in %s/b.yaml",
            id="the same object twice",
        ),
        pytest.param(
            {"a.yaml": pod("b"), "b.yaml": pod("x", "lots")},
            "%s/b.yaml: $[0].spec.containers[0].resources.limits.cpu: bad quantity",
            id="a mistake in one of them",
        ),
        pytest.param(
            {"a.yaml": "a: [", "b.yaml": pod("x")}, "%s/a.yaml: line 2", id="no YAML"
        ),
        pytest.param(
            {"a.txt": pod("b")},
            "%s: no file in it ends in .yaml, .yml or .json",
            id="a folder without manifests",
        ),
        pytest.param(
            {"a.yaml": "a: 1", "b.yaml": "b: 1"},
            "left out: file %s/a.yaml, file %s/b.yaml",
            id="no object at all",
        ),
    ],
)
def test_a_mistake_names_its_file(
    tmp_path: Path, files: dict[str, str], sentence: str
) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)

    done = nri_resmgr("simulate", *TOPOLOGY, tmp_path)

    assert done.returncode == 2
    assert sentence.replace("%s", str(tmp_path)) in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path / "folder" / "a.yaml", pod("a"))
    (tmp_path / "folder").chmod(0)

    done = nri_resmgr("simulate", *TOPOLOGY, tmp_path, weak=True)
    (tmp_path / "folder").chmod(0o700)

    assert done.returncode == 2
    sentence = f"cannot read {tmp_path}/folder: permission denied\n"
    assert done.stderr == f"nri-resmgr: {sentence}"


def test_refusals_are_an_exit_status_on_request(tmp_path: Path) -> None:
    fits = write(tmp_path / "fits.yaml", pod("fits"))
    large = write(tmp_path / "large.yaml", pod("large", "99"))
    words = ("simulate", *TOPOLOGY)

    def status(*more: str | Path) -> int:
        return nri_resmgr(*words, *more).returncode

    assert status(large) == 0
    assert status("--fail-on-refused", fits) == 0
    assert status("--fail-on-refused", fits, large) == 1


def test_refusals_of_two_configurations_are_an_exit_status(tmp_path: Path) -> None:
    head = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\nspec: "
    small = write(
        tmp_path / "small", f"{head}{{reservedResources: {{cpu: 'cpuset:0'}}}}"
    )
    large = write(tmp_path / "large.yaml", pod("large", "99"))
    words = ("simulate", *TOPOLOGY, "--config-file", small, "--against", small, large)

    same, failed = nri_resmgr(*words), nri_resmgr(*words, "--fail-on-refused")

    assert (same.returncode, same.stdout) == (0, "no difference\n")
    assert (failed.returncode, failed.stdout) == (1, "no difference\n")


def test_progress_is_shown_on_a_terminal(tmp_path: Path) -> None:
    """Of so many refusals that no machine is done within a second."""
    amounts = "resources: {requests: {cpu: 1m, memory: 1Gi}}"
    spec = f"template: {{spec: {{containers: [{{name: app, {amounts}}}]}}}}"
    many = write(
        tmp_path / "many.yaml",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, "
        f"spec: {{replicas: 4000, {spec}}}}}",
    )
    words = (sys.executable, "-m", "nri_resmgr", "simulate", *TOPOLOGY, str(many))
    environment = {"PYTHONPATH": str(ROOT)}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        table = process.stdout.read().decode()
    shown = "".join(all_of(ours))
    os.close(ours)

    assert process.returncode == 0
    assert "pods simulated" not in table
    assert " of 4000 pods simulated\r" in shown
    assert shown.endswith("\r")
