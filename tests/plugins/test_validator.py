"""The validator: its documents, and runtimes that cannot validate."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, ContainerAdjustment, Pod
from nri_resmgr.testing import (
    AdjustmentRejected,
    PluginEnded,
    Runtime,
    RuntimeOptions,
    plugin_process,
    running_plugin,
)
from tests.plugins.programs import PLUGINS, check_dropped, installed
from tests.plugins.stories import LEVELS, Stories

pytestmark = pytest.mark.process

PROGRAM = PLUGINS / "validator"
OLD = [level for level in LEVELS if level not in Stories.of("validator").levels]


class SetsVariable:
    """Another plugin, which sets a variable."""

    def create_container(self, _pod: Pod, _container: Container) -> ContainerAdjustment:
        return ContainerAdjustment().set_env("A", "b")


async def create(folder: Path, options: RuntimeOptions) -> None:
    async with (
        Runtime(folder, NriLevel(0, 12), options=options) as runtime,
        running_plugin(runtime, SetsVariable(), "20-setter"),
    ):
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())


async def test_the_document_of_the_runtime_counts(tmp_path: Path) -> None:
    document = "rules: [{fields: [env]}]"
    options = installed(PROGRAM, "validator", document, tmp_path)

    with pytest.raises(AdjustmentRejected, match="20-setter may not adjust env"):
        await create(tmp_path, options)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param("", id="none"),
        pytest.param(
            "{enable: false, rules: [{fields: [env]}], requiredPlugins: [a]}",
            id="disabled",
        ),
        pytest.param("rules: [{fields: [env], namespaces: []}]", id="no namespace"),
    ],
)
async def test_everything_is_allowed_where_the_document_has_no_rule(
    tmp_path: Path, document: str
) -> None:
    await create(tmp_path, installed(PROGRAM, "validator", document, tmp_path))


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        pytest.param("rejectHooks: true", "$.rejectHooks: unknown key", id="a key"),
        pytest.param(
            "rules: [{fields: [hooks]}]",
            "'hooks' is none of annotations,",
            id="a field",
        ),
        pytest.param(
            "rules: [{field: [env]}]",
            "$.rules[0].field: unknown key, did you mean fields?",
            id="a rule",
        ),
        pytest.param(
            "enable: 1", "$.enable: expected true or false, not 1", id="a number"
        ),
    ],
)
async def test_a_wrong_document_is_reported(
    tmp_path: Path, document: str, sentence: str
) -> None:
    options = installed(PROGRAM, "validator", document, tmp_path)

    await check_dropped(tmp_path, options, sentence)


@pytest.mark.parametrize("level", OLD, ids=str)
async def test_where_the_runtime_cannot_validate_it_ends(
    tmp_path: Path, level: NriLevel
) -> None:
    async with Runtime(tmp_path, level) as runtime:
        command = (sys.executable, str(PROGRAM), "--socket", str(runtime.socket_path))
        with pytest.raises(PluginEnded, match="knows none of the events") as ended:
            async with plugin_process(runtime, *command, identity="10-validator"):
                pass

    assert ended.value.exit_status == 1
