"""``nri-resmgr check``: what it says of documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.main import main
from tests.cli.command import ROOT, nri_resmgr

MACHINE: Final = "2s2n2c1t memory=8Gi"
HEAD: Final = "apiVersion: config.nri/v1alpha1\n"
BALLOONS: Final = f"""{HEAD}kind: BalloonsPolicy
spec:
  dra: {{enabled: true}}
  reservedResources: {{cpu: 1}}
  balloonTypes:
  - {{name: fast, minCPUs: 3, minBalloons: 1}}
  - {{name: slow}}
"""
WRONG: Final = f"{HEAD}kind: StaticPolicy\nspec: {{pinCPU: 7, pinMem: 1}}\n"


def check(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    """Run the command in this process; return its status and what it prints."""
    status = main(["check", "--topology", MACHINE, *map(str, words)])
    return status, capsys.readouterr().out


def test_documents_are_checked_and_their_pools_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, wrong = tmp_path / "balloons.yaml", tmp_path / "wrong.yaml"
    path.write_text(BALLOONS)
    wrong.write_text(WRONG)
    missing = tmp_path / "none.yaml"

    assert check(capsys, path, wrong, missing) == (
        2,
        f"""\
{path}:4:9: warning: $.spec.dra.enabled: has no effect here
{wrong}:3:19: $.spec.pinMem: unknown key, did you mean pinMemory?
{wrong}:3:8: $.spec.pinCPU: expected true or false, not 7
cannot read {missing}: no such file or directory

{path}: BalloonsPolicy
pool         kind          CPUs  reserved  nodes  memory
default[0]   balloon       -     -         -      -
fast[0]      balloon       0-2   -         0-1    16 GiB
reserved[0]  balloon       3     3         1      8 GiB
idle CPUs    idle          4-7   -         2-3    -
slow         balloon type  -     -         -      -
""",
    )


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        ("1s4c offline=3", "CPU 3 is offline; used as soon as it is there"),
        ("1s3c", "this machine has no CPU 3; used as soon as it is there"),
    ],
)
def test_missing_cpus_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], machine: str, why: str
) -> None:
    path = tmp_path / "static.yaml"
    spec = "{reservedResources: {cpu: 'cpuset:0,3'}}"
    path.write_text(f"{HEAD}kind: StaticPolicy\nspec: {spec}\n")
    status = main(["check", "--topology", machine, str(path)])

    assert status == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        f"{path}:3:28: warning: $.spec.reservedResources.cpu: {why}"
    )


def test_pools_are_listed_below_their_parents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(f"{HEAD}kind: TopologyAwarePolicy\nspec: {{}}\n")
    status, out = check(capsys, path)

    assert status == 0
    assert [line.split("  ")[0] for line in out.splitlines()[2:]] == [
        *("reserved CPUs", "root"),
        *("socket #0", "NUMA node #0", "NUMA node #1"),
        *("socket #1", "NUMA node #2", "NUMA node #3"),
    ]


def test_a_policy_that_pins_nothing_has_no_pools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(f"{HEAD}kind: NonePolicy\n")

    assert check(capsys, path) == (0, f"{path}: NonePolicy\nno pools\n")


def test_a_mistake_that_hides_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(f"{HEAD}kind: Statics\nspec: {{pinCPU: 7}}\n")

    assert check(capsys, path)[1].splitlines()[1:] == [
        f"{path}: fixing these may reveal more mistakes"
    ]


def test_programs_get_the_same_as_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, wrong = tmp_path / "balloons.yaml", tmp_path / "wrong.yaml"
    path.write_text(BALLOONS)
    wrong.write_text(WRONG)
    status, out = check(capsys, "-o", "json", path, wrong)
    right, other = json.loads(out)["documents"]

    assert status == 2
    assert (right["valid"], right["kind"], right["mistakes"]) == (
        *(True, "BalloonsPolicy"),
        [],
    )
    assert right["warnings"] == [
        {
            "path": "$.spec.dra.enabled",
            "why": "has no effect here",
            "line": 4,
            "column": 9,
        }
    ]
    assert right["pools"][1] == {
        "name": "fast[0]",
        "kind": "balloon",
        "within": None,
        "cpus": "0-2",
        "reserved": "",
        "nodes": "0-1",
        "memory": 16 << 30,
    }
    assert (other["valid"], len(other["mistakes"]), other["pools"]) == (False, 2, [])


@pytest.mark.parametrize(
    "name",
    [
        "balloons.conf",
        "dynamic-pools.conf",
        "none.conf",
        "podpools.conf",
        "rdt-and-blockio.conf",
        "resource-policy.conf",
        "static-plus.conf",
        "static-pools.conf",
        "static.conf",
    ],
)
def test_the_shipped_samples_are_valid(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(capsys, ROOT / "conf.d" / name)[0] == 0


@pytest.mark.process
def test_this_machine_and_standard_input() -> None:
    done = nri_resmgr("check", "-", given=BALLOONS + "\udcff")
    at = len(BALLOONS)
    assert (done.returncode, done.stdout) == (
        2,
        f"cannot read standard input: not UTF-8 at byte {at}\n",
    )
    assert "Traceback" not in done.stderr

    empty = nri_resmgr("check", "-", given="")
    assert (empty.returncode, empty.stderr) == (0, "")
    assert "standard input: TopologyAwarePolicy" in empty.stdout
