"""The unit is what systemd takes, and its drop-ins grant what components do."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli import run
from nri_resmgr.cli.main import build_parser
from nri_resmgr.daemon.defaults import DEFAULT_RUN_DIR, DEFAULT_STATE_DIR
from nri_resmgr.daemon.targets import HOST_LEFTOVERS, RDT_LEFTOVERS
from tests.deploy.kubectl import COMPONENTS, MANIFESTS
from tests.deploy.readme import block_below, table_below
from tests.deploy.unit_files import (
    PROGRAM,
    UNIT,
    analyze,
    drop_ins_of,
    put,
    settings_of,
)

DROP_INS: Final = tuple(path.stem for path in drop_ins_of(UNIT))


def drop_in(name: str) -> Path:
    return UNIT.parent / f"{UNIT.name}.d" / f"{name}.conf"


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A folder of units, with ours as installed on a machine that has us."""
    put(UNIT, tmp_path)
    return tmp_path


@pytest.mark.process
@pytest.mark.parametrize(
    "chosen",
    [(), *((name,) for name in DROP_INS), DROP_INS],
    ids=["the unit alone", *DROP_INS, "all drop-ins"],
)
def test_systemd_accepts_the_unit_without_warnings(
    units: Path, chosen: tuple[str, ...]
) -> None:
    for name in chosen:
        shutil.copy(drop_in(name), units / f"{UNIT.name}.d")

    assert analyze(units, UNIT, "verify", "--man=no") == (0, "")


@pytest.mark.process
def test_the_unit_works_without_writable_cgroups(units: Path) -> None:
    text = block_below("Without write access to cgroups", "ini")
    (units / f"{UNIT.name}.d" / "override.conf").write_text(text)
    assignment = text.partition("Environment=")[2].strip()
    variables = dict([assignment.split("=", 1)])

    assert analyze(units, UNIT, "verify", "--man=no") == (0, "")
    assert build_parser(variables).parse_args(["run"]).apply_updates == "runtime"


@pytest.mark.process
def test_a_misspelt_setting_would_be_noticed(units: Path) -> None:
    bad = units / f"{UNIT.name}.d" / "bad.conf"
    bad.write_text("[Service]\nReadWritePath=/sys\n")

    assert "ReadWritePath" in analyze(units, UNIT, "verify", "--man=no")[1]


@pytest.mark.process
@pytest.mark.parametrize(
    ("chosen", "most"),
    [pytest.param((), 20, id="alone"), pytest.param(DROP_INS, 35, id="all drop-ins")],
)
def test_the_unit_is_exposed_no_more_than_documented(
    units: Path, chosen: tuple[str, ...], most: int
) -> None:
    for name in chosen:
        shutil.copy(drop_in(name), units / f"{UNIT.name}.d")

    status, said = analyze(
        units, UNIT, "security", "--offline=true", f"--threshold={most}", "--no-pager"
    )

    assert (status, said) == (0, "")


def test_the_unit_runs_an_existing_command() -> None:
    (start,) = (value for key, value in settings_of(UNIT) if key == "ExecStart")
    program, *arguments = shlex.split(start)
    options = build_parser({}).parse_args(arguments)

    assert program == PROGRAM
    assert options.command is run.run


def test_the_unit_may_write_the_directories_of_the_flags() -> None:
    settings = dict(settings_of(UNIT))

    assert f"/run/{settings['RuntimeDirectory']}" == DEFAULT_RUN_DIR
    assert f"/var/lib/{settings['StateDirectory']}" == DEFAULT_STATE_DIR


def test_the_unit_starts_after_the_runtimes_and_requires_none() -> None:
    settings = list(settings_of(UNIT))
    ties = {"Requires", "BindsTo", "PartOf", "Requisite", "Wants", "Before"}

    assert ("After", "containerd.service crio.service") in settings
    assert not ties & {key for key, _ in settings}


def test_the_unit_is_restarted_without_a_limit_until_a_runtime_starts() -> None:
    """By default systemd does, after five starts within ten seconds."""
    settings = dict(settings_of(UNIT))

    assert (settings["Restart"], settings["StartLimitIntervalSec"]) == ("always", "0")


def test_drop_ins_set_variables_of_existing_flags() -> None:
    variables = dict(
        value.split("=", 1)
        for name in DROP_INS
        for key, value in settings_of(drop_in(name))
        if key == "Environment"
    )
    options = build_parser(variables).parse_args(["run"])

    assert variables == {
        "NRI_RESMGR_HTTP_ENDPOINT": options.http_endpoint,
        "NRI_RESMGR_SPOOL": options.spool,
    }


def test_there_is_a_drop_in_for_each_component_of_the_daemon_set() -> None:
    """SELinux does not confine a unit, which reaches the bus; pods serve metrics.

    The agent is a container of another base, of which claims are an option.
    """
    assert {*DROP_INS} - {"http", "cluster", "dra"} == {*COMPONENTS} - {
        "selinux",
        "systemd",
    }


@pytest.mark.parametrize("name", [name for name in DROP_INS if name in COMPONENTS])
def test_drop_in_and_component_grant_the_same_capabilities(name: str) -> None:
    text = (MANIFESTS / "components" / name / "kustomization.yaml").read_text()
    in_pod = {f"CAP_{right}" for right in re.findall(r"value: (SYS_[A-Z]+)", text)}
    in_unit = {
        right
        for key, value in settings_of(drop_in(name))
        if key == "CapabilityBoundingSet"
        for right in value.split()
    }
    # A pod does not reach irqbalance, so it need not know how that was started.
    more = {"CAP_SYS_PTRACE"} if name == "interrupts" else set()

    assert in_unit == in_pod | more


def test_the_readme_names_all_that_reports_of_a_host_not_put_back() -> None:
    documented = {name.strip("`") for name, _ in table_below("File")}

    assert documented == {*HOST_LEFTOVERS, *RDT_LEFTOVERS}
