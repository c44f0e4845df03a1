"""The resource policy as a program of the plugin folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.testing import Runtime
from tests.plugins.programs import PLUGINS, run_to_end, running

pytestmark = pytest.mark.process

PROGRAM = PLUGINS / "resource-policy"


async def test_the_program_registers_as_the_command_does(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        socket = str(runtime.socket_path)
        async with running(PROGRAM, "--nri-socket", socket, "--dry-run"):
            await runtime.synchronized("90-resource-policy")

            assert runtime.plugins == ("90-resource-policy",)


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        pytest.param(
            ["--nri-plugin-index", "9"], 2, "plugin index '9'", id="a wrong index"
        ),
        pytest.param(
            ["--config-file", "/no/where"], 2, "/no/where", id="a missing document"
        ),
        pytest.param([], 1, "cannot connect to the NRI socket", id="no socket"),
    ],
)
def test_bad_input_ends_it_with_a_sentence(
    tmp_path: Path, arguments: list[str], status: int, sentence: str
) -> None:
    socket = str(tmp_path / "none")

    ended, said = run_to_end(PROGRAM, *arguments, "--nri-socket", socket)

    assert (ended, "Traceback" in said) == (status, False)
    assert sentence in said.splitlines()[-1]
