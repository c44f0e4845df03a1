"""``nri-resmgr completion``: what real shells complete with its scripts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.commands import COMMANDS
from nri_resmgr.cli.main import build_parser
from tests.cli.command import nri_resmgr
from tests.cli.terminal import Terminal, running_on_a_terminal
from tests.cli.test_examples import parsers_below
from tests.real_host.absent import give_up

pytestmark = pytest.mark.process

NAMES: Final = [command.name for command in COMMANDS]
FORMS: Final = ["table", "wide", "json", "yaml"]

# What bash does when a person presses Tab.
COMPLETE: Final = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(( $# - 1 ))
_nri_resmgr
(( ${#COMPREPLY[@]} )) && printf '%s\\n' "${COMPREPLY[@]}"
exit 0
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write the script of each shell to a file."""
    folder = tmp_path_factory.mktemp("completion")
    found = {shell: folder / shell for shell in ("bash", "zsh")}
    for shell, path in found.items():
        done = nri_resmgr("completion", shell, env={"NRI_RESMGR_LOG_LEVEL": "debug"})
        assert (done.returncode, done.stderr) == (0, "")
        path.write_text(done.stdout)
    return found


def completed(script: Path, *words: str, folder: Path = Path("/")) -> list[str]:
    """Return what bash offers for the last word of a command line."""
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", script, "nri-resmgr", *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param([""], NAMES, id="all commands"),
        pytest.param(["to"], ["top", "topology"], id="commands that begin so"),
        pytest.param(["status", "--n"], ["--namespace"], id="a flag"),
        pytest.param(["status", "-o", ""], FORMS, id="the words of a flag"),
        pytest.param(["status", "-o", "w"], ["wide"], id="one of them"),
        pytest.param(["status", "--output", "=", "j"], ["json"], id="after ="),
        pytest.param(["status", "--output", "="], FORMS, id="after = alone"),
        pytest.param(["log", "info", "-o", "t"], ["table"], id="after an argument"),
        pytest.param(["run", "--log-level", "w"], ["warning"], id="words of a type"),
        pytest.param(["run", "--nri-plugin-name", ""], [], id="a value of any text"),
        pytest.param(["topology", "d"], ["dump"], id="an action"),
        pytest.param(
            ["topology", "--machine", "1s", "s"], ["sysfs"], id="after a flag"
        ),
        pytest.param(["topology", "dump", "-"], ["-h", "--help"], id="its own flags"),
        pytest.param(["completion", ""], ["bash", "zsh"], id="words of an argument"),
        pytest.param(["fly", "--"], [], id="no command"),
    ],
)
def test_bash_offers(
    words: list[str], offered: list[str], scripts: dict[str, Path]
) -> None:
    if words == ["fly", "--"]:  # those without a command
        offered = ["--help", "--version"]

    assert completed(scripts["bash"], *words) == offered


def test_bash_offers_the_flags_of_each_command(scripts: dict[str, Path]) -> None:
    for name, parser in parsers_below(build_parser({})):
        page = parser.format_help().partition("examples:")[0]
        lines = re.findall(r"^  (-.*?)(?:  |$)", page, re.MULTILINE)
        flags = [
            flag for line in lines for flag in re.findall(r"(?<!\S)--?[\w-]+", line)
        ]

        assert completed(scripts["bash"], *name.split(), "-") == flags


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["check"], id="an argument"),
        pytest.param(["simulate", "x.yaml"], id="a further one"),
        pytest.param(["run", "--config-file"], id="a flag"),
        pytest.param(["run", "--config-file", "="], id="a flag with ="),
        pytest.param(["simulate", "--topology"], id="a file or something else"),
    ],
)
def test_bash_offers_files(
    words: list[str], scripts: dict[str, Path], tmp_path: Path
) -> None:
    for name in ("my config.yaml", "my.yaml", "other"):
        (tmp_path / name).touch()

    found = completed(scripts["bash"], *words, "my", folder=tmp_path)
    assert sorted(found) == ["my config.yaml", "my.yaml"]


def prepared(terminal: Terminal, *lines: str) -> None:
    """Run lines in the shell of a terminal."""
    for line in lines:
        terminal.press(f"{line}\n")
    terminal.press("echo rea''dy\n")
    terminal.until(lambda _: "ready" in terminal.text)


def typed(terminal: Terminal, keys: str, wanted: str) -> None:
    """Type *keys*, and wait until the shell has made *wanted* of them."""
    terminal.press(keys)
    terminal.until(lambda _: wanted in terminal.text)
    terminal.press("\x15")  # Ctrl-U: away with the line


def test_an_interactive_bash_completes(scripts: dict[str, Path]) -> None:
    environment = {"PATH": "/usr/bin:/bin", "TERM": "dumb"}
    command = ("bash", "--norc", "--noprofile", "-i")
    with running_on_a_terminal(command, environment, columns=200) as terminal:
        prepared(terminal, f"source {scripts['bash']}")

        typed(terminal, "nri-resmgr enab\t", "nri-resmgr enable-runtime ")
        typed(terminal, "nri-resmgr status -o y\t", "nri-resmgr status -o yaml ")
        typed(terminal, "nri-resmgr status --output=w\t", "status --output=wide ")


@pytest.mark.parametrize("how", ["source", "autoload"])
def test_an_interactive_zsh_completes(
    how: str, scripts: dict[str, Path], tmp_path: Path
) -> None:
    zsh = shutil.which("zsh")
    if zsh is None:
        give_up("zsh is not installed")
    (tmp_path / "_nri-resmgr").write_text(scripts["zsh"].read_text())
    environment = {"PATH": "/usr/bin:/bin", "TERM": "dumb", "HOME": str(tmp_path)}
    start = ["autoload -Uz compinit", "compinit -u -D"]
    if how == "autoload":
        start.insert(0, f"fpath=({tmp_path} $fpath)")
    else:
        start.append(f"source {scripts['zsh']}")
    command = (zsh, "-f", "-i")
    with running_on_a_terminal(command, environment, columns=200) as terminal:
        prepared(terminal, *start)

        typed(terminal, "nri-resmgr enab\t", "nri-resmgr enable-runtime ")
        typed(terminal, "nri-resmgr status -o y\t", "nri-resmgr status -o yaml ")
        typed(terminal, "nri-resmgr status --output=w\t", "status --output=wide ")
        typed(terminal, "nri-resmgr topology du\t", "nri-resmgr topology dump ")
        # Ctrl-D lists, with the sentences of the help.
        typed(terminal, "nri-resmgr status --names\x04", "containers of this namespace")
