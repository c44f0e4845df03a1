"""The agent's unit: what systemd takes, its user, and no tie to the daemon's."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli import agent
from nri_resmgr.cli.main import build_parser
from tests.deploy.unit_files import (
    AGENT_UNIT,
    PROGRAM,
    UNIT,
    analyze,
    drop_ins_of,
    put,
    settings_of,
)

DROP_INS: Final = drop_ins_of(AGENT_UNIT)
TIES: Final = {"Requires", "BindsTo", "PartOf", "Requisite", "Wants", "Before"}


def variables_of(*paths: Path) -> dict[str, str]:
    return dict(
        value.split("=", 1)
        for path in paths
        for key, value in settings_of(path)
        if key == "Environment"
    )


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A folder with both units, and the agent's user as one that there is."""
    for unit in (UNIT, AGENT_UNIT):
        put(unit, tmp_path)
    return tmp_path


@pytest.mark.process
@pytest.mark.parametrize("chosen", [(), DROP_INS], ids=["alone", "all drop-ins"])
def test_systemd_accepts_the_unit_without_warnings(
    units: Path, chosen: tuple[Path, ...]
) -> None:
    for path in chosen:
        shutil.copy(path, units / f"{AGENT_UNIT.name}.d")

    assert analyze(units, AGENT_UNIT, "verify", "--man=no") == (0, "")


@pytest.mark.process
def test_the_unit_is_exposed_no_more_than_documented(units: Path) -> None:
    status, said = analyze(
        units, AGENT_UNIT, "security", "--offline=true", "--threshold=14", "--no-pager"
    )

    assert (status, said) == (0, "")


def test_the_unit_runs_an_existing_command() -> None:
    settings = dict(settings_of(AGENT_UNIT))
    program, *arguments = shlex.split(settings["ExecStart"])
    options = build_parser(variables_of(AGENT_UNIT)).parse_args(arguments)

    assert program == PROGRAM
    assert options.command is agent.run
    assert options.kubeconfig == "/etc/nri-resmgr/kubeconfig"


def test_the_folder_of_the_unit_is_the_spool_of_agent_and_daemon() -> None:
    settings = dict(settings_of(AGENT_UNIT))
    cluster = UNIT.parent / f"{UNIT.name}.d" / "cluster.conf"
    daemon = build_parser(variables_of(cluster)).parse_args(["run"])
    ours = build_parser({}).parse_args(["agent"])

    assert f"/var/lib/{settings['StateDirectory']}" == ours.spool == daemon.spool


def test_the_agent_runs_as_a_user_of_its_own_without_rights() -> None:
    settings = dict(settings_of(AGENT_UNIT))
    (line,) = (
        line
        for line in AGENT_UNIT.with_suffix(".sysusers").read_text().splitlines()
        if not line.startswith("#")
    )

    assert shlex.split(line)[:2] == ["u", settings["User"]]
    assert settings["CapabilityBoundingSet"] == ""


def test_neither_unit_needs_the_other() -> None:
    daemon, ours = list(settings_of(UNIT)), list(settings_of(AGENT_UNIT))

    assert ("After", "network-online.target nri-resmgr.service") in ours
    assert not TIES & {key for key, _ in ours}
    assert not any("agent" in value for key, value in daemon if key in {"After", *TIES})


def test_the_agent_is_restarted_without_a_limit() -> None:
    settings = dict(settings_of(AGENT_UNIT))

    assert (settings["Restart"], settings["StartLimitIntervalSec"]) == ("always", "0")


def test_drop_ins_set_variables_of_existing_flags() -> None:
    variables = variables_of(*DROP_INS)
    options = build_parser(variables).parse_args(["agent"])

    assert variables == {"NRI_RESMGR_HTTP_ENDPOINT": options.http_endpoint}
