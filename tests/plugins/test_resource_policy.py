"""The resource policy as a program of the plugin folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime, RuntimeOptions
from tests.plugins.programs import PLUGINS, run_to_end, running
from tests.plugins.stories import LEVELS

pytestmark = pytest.mark.process

PROGRAM = PLUGINS / "resource-policy"


@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_the_program_serves_as_the_command_does(
    tmp_path: Path, level: NriLevel
) -> None:
    patient = RuntimeOptions(request_timeout=10.0)
    async with Runtime(tmp_path, level, options=patient) as runtime:
        socket = str(runtime.socket_path)
        async with running(PROGRAM, "--nri-socket", socket, "--dry-run"):
            await runtime.synchronized("90-resource-policy", 60)
            pod = await runtime.run_pod(Pod())
            created = await runtime.create_container(pod.id, Container())
            await runtime.start_container(created.container.id)
            await runtime.remove_pod(pod.id)

            assert runtime.plugins == ("90-resource-policy",)
            assert runtime.ignored == []
            calls = runtime.calls_to("90-resource-policy")
            assert calls.count("CreateContainer") == 1


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
