"""Flags and the variables that stand in for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.cli.flags import variable_of
from nri_resmgr.cli.main import build_parser
from tests.cli.command import nri_resmgr

FLAGS = [
    ("--nri-socket", "/run/x.sock"),
    ("--nri-plugin-name", "x"),
    ("--nri-plugin-index", "07"),
    ("--config-file", "/etc/x.yaml"),
    ("--host-root", "/host"),
    ("--memory-kinds", "2=hbm"),
    ("--run-dir", "/run/x"),
    ("--state-dir", "/var/x"),
    ("--control-socket", "/run/x.sock"),
    ("--http-endpoint", ":8891"),
    ("--health-endpoint", ":8892"),
    ("--otel-endpoint", "http://127.0.0.1:4318"),
    ("--otel-sampling", "0.1"),
    ("--log-level", "debug"),
    ("--log-format", "json"),
    ("--log-debug", "stub.*"),
    ("--log-to", "stderr"),
]


def options(words: list[str], environment: dict[str, str]) -> dict[str, object]:
    return vars(build_parser(environment).parse_args(["run", *words]))


@pytest.mark.parametrize(("flag", "value"), FLAGS)
def test_a_variable_has_the_effect_of_its_flag(flag: str, value: str) -> None:
    by_flag = options([flag, value], {})

    assert by_flag == options([], {variable_of(flag): value})
    assert by_flag != options([], {})


@pytest.mark.parametrize(("flag", "value"), FLAGS)
def test_a_flag_takes_precedence_over_its_variable(flag: str, value: str) -> None:
    other = {"--log-level": "error", "--log-format": "text"}.get(flag, "/other")

    assert options([flag, value], {variable_of(flag): other}) == options(
        [flag, value], {}
    )


def test_an_alias_shares_the_variable() -> None:
    assert options(["--force-config", "x"], {}) == options(["--config-file", "x"], {})


@pytest.mark.parametrize(
    ("value", "is_set"),
    [
        ("1", True),
        ("true", True),
        ("YES", True),
        ("", False),
        ("0", False),
        ("False", False),
        ("no", False),
    ],
)
def test_a_switch_is_set_by_its_variable(value: str, *, is_set: bool) -> None:
    environment = {"NRI_RESMGR_DRY_RUN": value}

    assert options([], environment)["dry_run"] is is_set
    assert options(["--dry-run"], environment)["dry_run"] is True


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "environment", "sentence"),
    [
        pytest.param(
            ["run", "--log-level", "loud"],
            {},
            "argument --log-level: 'loud' is not one of debug, info, warning, error",
            id="a wrong value",
        ),
        pytest.param(
            ["run", "--verify-interval=soon"],
            {},
            "argument --verify-interval: 'soon': 0, or 1 to 86400 seconds",
            id="no number of seconds",
        ),
        pytest.param(
            ["run", "--verify-interval=0.5"],
            {},
            "argument --verify-interval: '0.5': 0, or 1 to 86400 seconds",
            id="too few seconds",
        ),
        pytest.param(
            ["run", "--verify-interval=nan"],
            {},
            "argument --verify-interval: 'nan': 0, or 1 to 86400 seconds",
            id="not even a number",
        ),
        pytest.param(
            ["run"],
            {"NRI_RESMGR_LOG_FORMAT": "xml"},
            "argument --log-format: 'xml' is not one of text, json",
            id="a wrong value of a variable",
        ),
        pytest.param(
            ["run"],
            {"NRI_RESMGR_DRY_RUN": "maybe"},
            "NRI_RESMGR_DRY_RUN='maybe': 1 or 0 is needed",
            id="a wrong value of a switch's variable",
        ),
        pytest.param(
            ["run", "--nonsense"],
            {},
            "unrecognized arguments: --nonsense; see nri-resmgr run --help",
            id="a flag that is none",
        ),
        pytest.param(
            ["--nonsense"],
            {},
            "unrecognized arguments: --nonsense; see nri-resmgr run --help",
            id="the same without a command",
        ),
        pytest.param(
            ["run", "--config-file"],
            {},
            "argument --config-file/--force-config: expected one argument",
            id="a flag without its value",
        ),
    ],
)
def test_a_mistake_is_reported_and_the_status_is_2(
    words: list[str], environment: dict[str, str], sentence: str
) -> None:
    done = nri_resmgr(*words, env=environment)

    assert (done.returncode, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert f": {sentence}" in said
    assert "; see nri-resmgr" in said
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_an_unknown_command_is_rejected() -> None:
    done = nri_resmgr("fly")

    assert done.returncode == 2
    assert "invalid choice: 'fly'" in done.stderr.splitlines()[-1]


@pytest.mark.process
def test_the_help_reports_each_variable_and_has_examples(tmp_path: Path) -> None:
    page = nri_resmgr("run", "--help").stdout
    first = nri_resmgr("--help")

    assert [name for name, _ in FLAGS if f"[{variable_of(name)}]" not in page] == []
    assert first.returncode == 0
    assert "examples:" in first.stdout


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "width"),
    [
        pytest.param("60", 58, id="as wide as the variable says"),
        pytest.param("200", 198, id="wider than most"),
        pytest.param("0", 78, id="80 columns where there is no terminal"),
        pytest.param("many", 78, id="80 columns where the variable is no number"),
    ],
)
def test_the_help_is_as_wide_as_the_terminal(given: str, width: int) -> None:
    page = nri_resmgr("run", "--help", env={"COLUMNS": given}).stdout

    assert width - 20 < max(map(len, page.splitlines())) <= width
