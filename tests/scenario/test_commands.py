"""``simulate``, ``run --record`` and ``replay``, as people call them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nri_resmgr.recordings.entries import Answered, Called, Decided, RecordedCheckpoint
from nri_resmgr.testing import plugin_process
from nri_resmgr.topology.synthetic import parse_spec
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import IDENTITY, daemon
from tests.scenario.recorded import MACHINE, churn, document, load

pytestmark = pytest.mark.process

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template:
    spec:
      containers: [{name: app, resources: {limits: {cpu: 2, memory: 1Gi}}}]
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_deployment_is_simulated(tmp_path: Path) -> None:
    workload = write(tmp_path / "web.yaml", DEPLOYMENT)
    words = ("simulate", "--topology", "2s2n2c2t", str(workload))
    picture = tmp_path / "node.html"

    table = nri_resmgr(*words, "--picture", picture)
    found = nri_resmgr(*words, "-o", "json")

    assert (table.returncode, table.stderr) == (0, "")
    assert "default/web-0/app  Guaranteed  2     1 GiB" in table.stdout
    rows = json.loads(found.stdout)["containers"]
    assert [(row["title"], row["request"]) for row in rows] == [
        ("default/web-0/app", 2000),
        ("default/web-1/app", 2000),
    ]
    assert "default/web-1/app" in picture.read_text()


def test_objects_left_out_of_a_workload_are_named(tmp_path: Path) -> None:
    hidden = "\\u001b[8m"
    service = (
        "apiVersion: serving.knative.dev/v1\nkind: Service\n"
        f'metadata: {{name: "x{hidden}", namespace: shop}}\n'
        "spec: {template: {spec: {containers: [{image: x}]}}}\n"
    )
    workload = write(tmp_path / "web.yaml", f"{DEPLOYMENT}---\n{service}")
    config = write(tmp_path / "config.yaml", document())
    words = ("simulate", "--topology", "2s2n2c2t", workload, "--config-file", config)

    table, changes = nri_resmgr(*words), nri_resmgr(*words, "--against", config)
    found = nri_resmgr(*words, "-o", "json")
    compared = nri_resmgr(*words, "--against", config, "-o", "json")

    why = (
        "its pods cannot be read: "
        "$[1].spec.template.spec.containers[0].name: missing, expected text"
    )
    section = (
        f"\n\nleft out\n  Service shop/x\\x1b[8m (serving.knative.dev/v1): {why}\n"
    )
    assert table.stdout.endswith(section)
    assert changes.stdout == f"no difference{section}"
    (row,) = json.loads(found.stdout)["left_out"]
    assert row == {
        "api": "serving.knative.dev/v1",
        "kind": "Service",
        "title": "shop/x\x1b[8m",
        "why": why,
        "file": "",
        "is_file": False,
    }
    assert json.loads(compared.stdout)["left_out"] == [row]


def test_nothing_is_granted_by_a_policy_that_pins_nothing(tmp_path: Path) -> None:
    workload = write(tmp_path / "web.yaml", DEPLOYMENT.replace("cpu: 2", "cpu: 200"))
    none = "apiVersion: config.nri/v1alpha1\nkind: NonePolicy\n"
    document = write(tmp_path / "none.yaml", none)
    words = ("simulate", "--topology", "2s2n2c2t", workload, "--config-file", document)

    done = nri_resmgr(*words)
    title, table, why = done.stdout.split("\n\n")
    header, *rows = table.splitlines()

    assert title == "NonePolicy on 16 CPUs"
    assert header.split()[-1] == "rule"
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [
        ("default/web-[0-1]/app", "not-pinned")
    ]
    assert why == (
        "Guaranteed, but without exclusive CPUs\n"
        "  default/web-[0-1]/app: the policy pins no container\n"
    )


def test_two_configurations_are_compared(tmp_path: Path) -> None:
    workload = write(tmp_path / "web.yaml", DEPLOYMENT)
    one = write(tmp_path / "one.yaml", document())
    two = write(tmp_path / "two.yaml", document(kind="BalloonsPolicy"))
    words = ("simulate", "--topology", "2s2n2c2t", str(workload), "--config-file", one)

    same = nri_resmgr(*words, "--against", one)
    other = nri_resmgr(*words, "--against", two)

    assert (same.returncode, same.stdout) == (0, "no difference\n")
    assert other.returncode == 1
    assert "default/web-0/app  pool" in other.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(
            ("simulate", "nowhere.yaml"), "cannot read nowhere.yaml", id="no workload"
        ),
        pytest.param(
            ("simulate", "--picture", "x.png", "w.yaml"),
            "that ends in .svg",
            id="a PNG",
        ),
        pytest.param(("replay", "nowhere"), "cannot read nowhere", id="no recording"),
        pytest.param(
            ("replay", "/proc/version"), "line 1: not a recording", id="another file"
        ),
        pytest.param(
            ("run", "--record", "/nowhere/rec", "--nri-socket", "/nowhere"),
            "--record /nowhere/rec: no such file or directory",
            id="nowhere to record to",
        ),
        pytest.param(
            ("run", "--record", "rec", "--record-limit", "much"),
            "--record-limit: bad quantity 'much'",
            id="a limit that is none",
        ),
    ],
)
def test_a_mistake_is_reported_in_one_sentence(
    words: tuple[str, ...], sentence: str
) -> None:
    ended = nri_resmgr(*words)

    assert ended.returncode == 2
    assert sentence in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


async def test_a_real_daemon_is_recorded_and_replayed(tmp_path: Path) -> None:
    file, config = tmp_path / "rec", write(tmp_path / "config", document())
    flags = (
        *("--record", str(file), "--config-file", str(config)),
        *("--run-dir", str(tmp_path / "run"), "--state-dir", ""),
        *("--control-socket", ""),
    )
    async with daemon(tmp_path, parse_spec(MACHINE), *flags) as running:
        await churn(running.runtime, 5, 20)
        running.process.kill()
        await running.process.wait()

    same = nri_resmgr("replay", file)
    other_config = write(tmp_path / "other", document("{availableResources: {cpu: 4}}"))
    other = nri_resmgr("replay", file, "--config-file", other_config, "-o", "json")
    shown = nri_resmgr("replay", file, "--show")

    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout.endswith("decisions: no difference\n")
    assert other.returncode == 1
    assert json.loads(other.stdout)["differences"] != []
    assert "runtime -> plugin  CreateContainer #" in shown.stdout
    assert "hidden" not in shown.stdout
    kinds = {type(entry) for entry in load(file).entries}
    assert {Called, Answered, Decided} <= kinds


async def test_a_daemon_with_a_checkpoint_is_replayed_with_it(
    tmp_path: Path,
) -> None:
    file, config = tmp_path / "rec", write(tmp_path / "config", document())
    flags = (
        *("--config-file", str(config), "--run-dir", str(tmp_path / "run")),
        *("--state-dir", str(tmp_path / "state"), "--control-socket", ""),
    )
    async with daemon(tmp_path, parse_spec(MACHINE), *flags) as first:
        await churn(first.runtime, 6, 12)
        first.process.terminate()
        await first.process.wait()
        command = (
            *(sys.executable, "-m", "nri_resmgr", "run", *flags),
            *("--nri-socket", str(first.runtime.socket_path)),
            *("--host-root", str(tmp_path / "host"), "--record", str(file)),
        )
        async with plugin_process(first.runtime, *command, identity=IDENTITY):
            await churn(first.runtime, 7, 12)

    same = nri_resmgr("replay", file)
    (kept,) = [one for one in load(file).entries if isinstance(one, RecordedCheckpoint)]

    assert (same.stdout[-15:], same.returncode) == (" no difference\n", 0)
    assert '"checkpoint"' in kept.text
    assert "hidden" not in kept.text
