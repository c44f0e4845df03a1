"""The quickstart: its files, its commands, and what our own commands print."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any, Final

import attrs
import kubernetes_validate
import msgspec
import pytest
import yaml

from nri_resmgr.cli.main import build_parser
from nri_resmgr.cli.workload import Workload
from nri_resmgr.kubectl.command_line import parsed, words_of_query
from nri_resmgr.runtimes.containerd import MAIN
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import ROOT, nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.test_control import ask, socket_in
from tests.runtimes.containerd_files import STOCK_1_7
from tests.runtimes.test_command import Node

PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
FOLDER: Final = ROOT / "deploy" / "kind"
CHART: Final = yaml.safe_load((ROOT / "deploy/helm/Chart.yaml").read_text())
VERSION: Final = str(CHART["appVersion"])
# What the first step makes, by the target of make that does.
MADE: Final = {
    f"build/nri-resmgr-{VERSION}.oci.tar": "image",
    "build/kubectl-nri_resmgr": "kubectl-plugin",
}
LEFT_OUT: Final = "..."


@attrs.frozen
class Command:
    """A command of the page, and the lines that it prints there."""

    words: tuple[str, ...]
    printed: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words."""
        return " ".join(self.words)


def blocks(language: str) -> list[str]:
    """Return the blocks of a language, in order."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE)


def commands() -> list[Command]:
    """Return all commands of the page, in order."""
    found = []
    for block in blocks("console"):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            line, *printed = part.splitlines()
            found.append(Command(tuple(shlex.split(line)), tuple(printed)))
    return found


COMMANDS: Final = commands()
OURS: Final = [one for one in COMMANDS if one.text.startswith("kubectl nri-resmgr")]
PODS: Final = [*yaml.safe_load_all((FOLDER / "pods.yaml").read_text())]
POLICY: Final = FOLDER / "policy.yaml"
WEB: Final = Workload("web", QosClass.GUARANTEED, 2000)
BATCH: Final = Workload("batch", QosClass.BEST_EFFORT)
# Some of what a cluster of kind runs besides.
SYSTEM: Final = {
    "kube-system": Workload("kube-apiserver", QosClass.BURSTABLE, 250),
    "local-path-storage": Workload("local-path-provisioner", QosClass.BEST_EFFORT),
}


def query(command: Command) -> tuple[str, ...]:
    """Return what ``nri-resmgr`` gets in the daemon's pod."""
    options = parsed(list(command.words[2:]), {})
    return words_of_query(options, *filter(None, [_explained(options)]))


def _explained(options: Any) -> str:
    return str(options.pod) if options.command == "explain" else ""


def steps() -> list[str]:
    return re.split(r"(?m)^## (?=\d)", PAGE.partition("\n## If a check")[0])[1:]


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.splitlines()[0])
def test_each_step_has_a_check_with_what_it_prints(step: str) -> None:
    _, check, below = step.partition("**Check.** ")
    block = re.search(r"(?ms)^```console\n(.*?)^```$", below)

    assert check
    assert block
    first, *printed = block[1].splitlines()
    assert first.startswith("$ ")
    assert printed


def test_its_files_are_those_of_the_repository() -> None:
    shown = blocks("yaml")

    assert len(shown) == len([*FOLDER.iterdir()])
    for text, name in zip(shown, ("cluster", "policy", "pods"), strict=True):
        assert text == (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def test_every_file_that_a_command_names_is_there_or_made() -> None:
    words = {word for one in COMMANDS for word in one.words}
    named = {word for word in words if re.match(r"(?!/)[\w.-]+/[\w./-]+$", word)}
    files = {one for one in named if one.startswith(("build/", "deploy/"))}
    [make] = [one for one in COMMANDS if one.words[:2] == ("sudo", "make")]

    # The others are objects of the cluster, such as pod/web.
    assert named - files == {"daemonset/nri-resmgr", "pod/web", "pod/batch"}
    assert len(files) > 5
    assert [one for one in files - MADE.keys() if not (ROOT / one).exists()] == []
    assert set(make.words[2:]) == set(MADE.values())


def test_the_node_looks_for_the_image_that_the_chart_names() -> None:
    values = yaml.safe_load((ROOT / "deploy/helm/values.yaml").read_text())
    image = f"docker.io/library/{values['image']['repository']}:{VERSION}"
    [listed] = [one for one in COMMANDS if "images" in one.words]

    assert listed.words[-1] == f"name=={image}"
    assert listed.printed == (image,)


@pytest.mark.parametrize("command", OURS, ids=lambda one: one.text)
def test_a_command_of_ours_parses(command: Command) -> None:
    words = query(command)

    assert build_parser({}, words[0]).parse_args(words)


@pytest.mark.parametrize("version", ["1.26", "1.37"], ids=["oldest", "newest"])
def test_the_pods_are_valid_and_of_the_amounts_that_are_tried(version: str) -> None:
    for one in PODS:
        kubernetes_validate.validate(one, version, strict=True)
    [web], [batch] = (one["spec"]["containers"] for one in PODS)
    assert (web["name"], batch["name"]) == (WEB.name, BATCH.name)
    amounts = {"cpu": WEB.milli_cpus // 1000, "memory": "1Gi"}
    assert web["resources"] == {"requests": amounts, "limits": amounts}
    assert "resources" not in batch


def test_the_cluster_is_one_node_with_nri_on() -> None:
    cluster = yaml.safe_load((FOLDER / "cluster.yaml").read_text())
    names = {word for one in COMMANDS for word in one.words if "control-plane" in word}

    # kind merges the patch into containerd's file.
    assert [one["role"] for one in cluster["nodes"]] == ["control-plane"]
    assert names == {f"{cluster['name']}-control-plane"}
    [patch] = cluster["containerdConfigPatches"]
    assert tomllib.loads(patch)


@pytest.mark.process
def test_enable_runtime_has_nothing_to_add_to_the_patch(tmp_path: Path) -> None:
    node = Node(tmp_path)
    cluster = yaml.safe_load((FOLDER / "cluster.yaml").read_text())
    [patch] = cluster["containerdConfigPatches"]
    node.put(MAIN, STOCK_1_7)
    without = node.call("--dry-run")
    node.put(MAIN, f"version = 2\n{patch}\n")
    patched = node.call("--dry-run")

    assert "disable = false" in without.stdout
    assert patched.stdout.endswith("nothing to do: NRI is enabled\n")


@pytest.mark.process
def test_the_document_is_one_that_the_daemon_takes() -> None:
    done = nri_resmgr("check", POLICY, "--topology", "1s1n4c2t")

    assert (done.returncode, done.stderr) == (0, "")


def test_the_columns_of_a_node_are_those_of_its_definition() -> None:
    path = "deploy/crds/config.nri_noderesourcemanagers.yaml"
    [version] = yaml.safe_load((ROOT / path).read_text())["spec"]["versions"]
    columns = [
        str(one["name"]).upper()
        for one in version["additionalPrinterColumns"]
        if not one.get("priority")
    ]
    [shown] = [one for one in COMMANDS if one.text == "kubectl get nrm"]

    assert [one for one in shown.printed[0].split() if one != "AGE"] == [
        "NAME",
        *(one for one in columns if one != "AGE"),
    ]


async def place(running: RunningDaemon) -> None:
    """Run what the cluster runs, and then the pods of the page."""
    for namespace, one in SYSTEM.items():
        pod = msgspec.structs.replace(one.pod, namespace=namespace)
        await running.runtime.run_pod(pod)
        await running.runtime.create_container(pod.id, one.container)
    for workload in (WEB, BATCH):
        await running.place(workload)


def left_out(printed: tuple[str, ...], real: str) -> list[str]:
    """Return the lines that a command does not print in this order.

    ``...`` stands for any number of lines; numbers of seconds are not compared.
    """
    lines = [_timeless(one) for one in real.splitlines()]
    missing, place, free = [], 0, False
    for line in printed:
        if line == LEFT_OUT:
            free = True
            continue
        wanted = _timeless(line)
        there = lines[place:] if free else lines[place : place + 1]
        if wanted in there:
            place += there.index(wanted) + 1
        else:
            missing.append(line)
        free = False
    if not free and place < len(lines):
        missing.append(LEFT_OUT)
    return missing


def _timeless(line: str) -> str:
    return re.sub(r"\bup \d+ s$", "up N s", line)


@pytest.mark.process
async def test_what_the_page_shows_of_our_commands_is_what_they_print(
    tmp_path: Path,
) -> None:
    flags = (
        *("--control-socket", str(socket_in(tmp_path))),
        *("--config-file", str(POLICY), "--state-dir", str(tmp_path / "state")),
    )
    machine = parse_spec("1s1n4c2t memory=16Gi")
    async with daemon(tmp_path, machine, *flags) as running:
        await running.line("control.listening")
        await place(running)
        answers = [await ask(tmp_path, *query(one)) for one in OURS]
        state = await ask(tmp_path, "status", "-o", "json")

    assert {query(one)[0] for one in OURS} == {"status", "explain"}
    for command, answer in zip(OURS, answers, strict=True):
        assert left_out(command.printed, answer.stdout) == [], command.text
    rows = msgspec.json.decode(state.stdout)["containers"]
    cpus = {one["name"]: one["cpus"] for one in rows}
    # The kernel's list is in the form of ours.
    execs = [one for one in COMMANDS if one.words[:2] == ("kubectl", "exec")]
    assert {one.words[2]: one.printed for one in execs} == {
        name: (f"Cpus_allowed_list:\t{cpus[name]}",) for name in ("web", "batch")
    }


@pytest.mark.parametrize(
    ("printed", "missing"),
    [
        pytest.param(("a", "b", "c"), [], id="all"),
        pytest.param(("a", "...", "c"), [], id="one is left out"),
        pytest.param(("...", "b", "..."), [], id="at both ends"),
        pytest.param(("a", "c"), ["c", "..."], id="left out without a mark"),
        pytest.param(("a", "b"), ["..."], id="the end without a mark"),
        pytest.param(("...", "b", "...", "a", "..."), ["a"], id="in another order"),
        pytest.param(("...", "d", "..."), ["d"], id="a line that is not printed"),
    ],
)
def test_a_line_that_is_not_printed_is_found(
    printed: tuple[str, ...], missing: list[str]
) -> None:
    assert left_out(printed, "a\nb\nc\n") == missing
