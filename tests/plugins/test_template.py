"""The template as a process: what an author starts from has to work."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime, RuntimeRefusal
from tests.plugins.programs import (
    PLUGINS,
    check_dropped,
    installed,
    run_to_end,
    running,
)
from tests.plugins.stories import LEVELS

pytestmark = pytest.mark.process

TEMPLATE = PLUGINS / "template"


async def greet(runtime: Runtime) -> Container:
    pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
    created = await runtime.create_container(pod.id, Container(name="app"))
    return created.container


@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_the_template_greets_new_containers(
    tmp_path: Path, level: NriLevel
) -> None:
    async with Runtime(tmp_path, level) as runtime:
        socket = str(runtime.socket_path)
        async with running(TEMPLATE, "--socket", socket):
            await runtime.synchronized("10-template")
            container = await greet(runtime)

    assert container.env == ("GREETING=hello shop/web",)
    assert container.annotations == {"template.example.com/greeted": "app"}


async def test_the_template_refuses_a_container_that_has_a_greeting(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--index", "10")
        async with running(TEMPLATE, *flags):
            await runtime.synchronized("10-template")
            pod = await runtime.run_pod(Pod())
            rude = Container(name="app", env=("GREETING=hi",))
            with pytest.raises(RuntimeRefusal, match="container app: GREETING is"):
                await runtime.create_container(pod.id, rude)


async def test_launched_by_the_runtime_it_obeys_its_document(tmp_path: Path) -> None:
    options = installed(TEMPLATE, "template", "greeting: ahoy\n", tmp_path)
    async with Runtime(tmp_path, options=options) as runtime:
        assert runtime.plugins == ("10-template",)
        container = await greet(runtime)
        await runtime.stop_container(container.id)
        process = runtime.processes[0]

    assert container.env == ("GREETING=ahoy shop/web",)
    assert process.exit_status == 0


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param(
            "greting: hi",
            "$.greting: unknown key, did you mean greeting?",
            id="an unknown key",
        ),
        pytest.param("greeting: 1", "$.greeting: expected text, not 1", id="a number"),
        pytest.param("[hi]", "$: expected a mapping, not a list", id="no keys"),
        pytest.param("a: [", "did not find expected node content", id="no YAML"),
    ],
)
async def test_a_bad_document_is_reported_to_the_runtime(
    tmp_path: Path, config: str, sentence: str
) -> None:
    options = installed(TEMPLATE, "template", config, tmp_path)
    await check_dropped(tmp_path, options, sentence)


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        pytest.param(["--config", "/no"], 2, "no such file", id="no configuration"),
        pytest.param(["--index", "100"], 2, "plugin index '100'", id="a wrong index"),
        pytest.param([], 1, "cannot connect to the NRI socket", id="no socket"),
    ],
)
def test_bad_input_ends_it_with_one_sentence(
    tmp_path: Path, arguments: list[str], status: int, sentence: str
) -> None:
    socket = str(tmp_path / "none")

    ended, said = run_to_end(TEMPLATE, *arguments, "--socket", socket)

    assert (ended, len(said.splitlines())) == (status, 1)
    assert sentence in said
