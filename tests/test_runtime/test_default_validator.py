"""The test runtime requires plugins, as the built-in validator of real ones does."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import (
    AdjustmentRejected,
    DefaultValidator,
    Runtime,
    RuntimeOptions,
    running_plugin,
)
from nri_resmgr.topology.synthetic import parse_spec

TOLERATED = "example.com"
REQUIRED = "required-plugins.noderesource.dev"
SENTENCE = (
    'validator "00-default-validator" rejected container adjustment, reason: '
    "validation error: required plugin"
)


def runtime_in(
    folder: Path, *required: str, level: NriLevel = NriLevel(0, 11)
) -> Runtime:
    validator = DefaultValidator(
        required_plugins=required, tolerate_annotation=TOLERATED
    )
    return Runtime(folder, level, options=RuntimeOptions(validator=validator))


async def refusal_of(runtime: Runtime, **annotations: str) -> str:
    """Create a container; return the sentence of the refusal, or nothing."""
    keys = {"tolerated": TOLERATED, "required": REQUIRED}
    given = {
        f"{keys[name.partition('_')[0]]}{'/' + scope if scope else ''}": value
        for name, value in annotations.items()
        for scope in [name.partition("_")[2].replace("_", ".")]
    }
    pod = await runtime.run_pod(Pod(annotations=given))
    try:
        await runtime.create_container(pod.id, Container(name="c"))
    except AdjustmentRejected as error:
        return str(error)
    return ""


async def test_no_container_is_created_without_the_required_plugin(
    tmp_path: Path,
) -> None:
    policy = ResourcePolicy(parse_spec("1s2c1t"))
    async with runtime_in(tmp_path, "plugin") as runtime:
        before = await refusal_of(runtime)
        async with running_plugin(runtime, policy):
            during = await refusal_of(runtime)
        after = await refusal_of(runtime)

        assert before == f'{SENTENCE} "plugin" not present'
        assert (during, after) == ("", before)
        assert len(runtime.containers) == 1
        # What is refused here was decided for no container.
        assert len(policy.state.ledger.entries) == 1


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        pytest.param({}, f'{SENTENCE}s "a,90-b" not present', id="none"),
        pytest.param({"tolerated": "true"}, "", id="tolerated"),
        pytest.param({"tolerated_container_c": "1"}, "", id="for the container"),
        pytest.param(
            {"tolerated_pod": "false", "tolerated": "true"},
            f'{SENTENCE}s "a,90-b" not present',
            id="the narrower scope counts",
        ),
        pytest.param(
            {"tolerated_container_other": "true"},
            f'{SENTENCE}s "a,90-b" not present',
            id="for another container",
        ),
        pytest.param(
            {"required": "[d]"}, f'{SENTENCE}s "a,90-b,d" not present', id="more"
        ),
        pytest.param(
            {"required": "[d]", "tolerated": "true"}, "", id="tolerated as well"
        ),
    ],
)
async def test_annotations_of_pods_count(
    annotations: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    async with runtime_in(tmp_path, "a", "90-b") as runtime:
        assert await refusal_of(runtime, **annotations) == sentence


@pytest.mark.parametrize("annotations", [{"tolerated": "yes"}, {"required": "{"}])
async def test_an_annotation_that_cannot_be_read_refuses(
    annotations: dict[str, str], tmp_path: Path
) -> None:
    async with runtime_in(tmp_path) as runtime:
        assert "reason: invalid" in await refusal_of(runtime, **annotations)


async def test_older_runtimes_ignore_it(tmp_path: Path) -> None:
    async with runtime_in(tmp_path, "plugin", level=NriLevel(0, 8)) as runtime:
        assert await refusal_of(runtime, required="[plugin]") == ""
