"""The policy in CEL writes the same text as the webhook.

Evaluated by Google's C++ implementation, which is 50 MB and therefore not among the
development tools: ``pip install -e .[cel]``. What only API servers have, the patch
itself, is not evaluated here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml
from hypothesis import given

from nri_resmgr.webhook.pods import Form, PodSpec, annotation_of
from tests.webhook.pods import Json, pods

pytest.importorskip("cel_expr_python", reason="needs the extra cel")

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

POLICY: Final = (
    Path(__file__).parents[2] / "deploy/kubernetes/options/requests-policy/policy.yaml"
)
SPEC: Final[Json] = next(yaml.safe_load_all(POLICY.read_text()))["spec"]
KEY: Final = Form.NRI_PLUGINS.value


def _plain(values: list[Any]) -> list[Any]:
    return [one.value() if hasattr(one, "value") else one for one in values]


def _extension(name: str, result: Any, of: Any, apply: Any) -> Any:
    """A function of Kubernetes' CEL libraries that the implementation lacks."""
    overload = cel.Overload(f"{name}_of", result, [of], True, apply)
    return cel.CelExtension(name, [cel.FunctionDecl(name, [overload])])


def environment() -> Any:
    kinds = cel.Type
    return cel.NewEnv(
        variables={
            "object": kinds.DYN,
            "variables": kinds.Map(kinds.STRING, kinds.DYN),
        },
        extensions=[
            _extension(
                "sort",
                kinds.List(kinds.STRING),
                kinds.List(kinds.DYN),
                lambda found: sorted(_plain(found)),
            ),
            _extension(
                "sum",
                kinds.INT,
                kinds.List(kinds.INT),
                lambda found: sum(_plain(found)),
            ),
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
        ],
    )


PROGRAMS: Final = {
    one["name"]: environment().compile(one["expression"]) for one in SPEC["variables"]
}
(CONDITION,) = (
    environment().compile(one["expression"]) for one in SPEC["matchConditions"]
)


def variables_of(pod: Json) -> Json:
    """Evaluate the variables in their order, as API servers do."""
    found: Json = {}
    for name, program in PROGRAMS.items():
        data = {"object": pod, "variables": found}
        found[name] = program.eval(data=data).plain_value()
    return found


@given(pods())
def test_the_policy_computes_the_annotation_of_the_webhook(pod: Json) -> None:
    spec = msgspec.convert(pod["spec"], PodSpec)
    found = variables_of(pod)

    assert found["text"] == annotation_of(spec, Form.NRI_PLUGINS)
    assert found["fits"] is True
    assert found["present"] is (KEY in pod["metadata"].get("annotations", {}))


def test_mirror_pods_are_left_alone() -> None:
    mirror = {"kubernetes.io/config.mirror": "1"}
    wanted = [({}, True), ({"annotations": {}}, True), ({"annotations": mirror}, False)]

    for metadata, matches in wanted:
        data = {"object": {"metadata": metadata}}
        assert CONDITION.eval(data=data).plain_value() is matches


@pytest.mark.parametrize(
    ("annotations", "containers", "fits"),
    [
        ({}, 400, True),
        ({}, 600, False),
        # The bytes of all annotations but ours, keys included.
        ({"big": "\N{SNOWMAN}" * 87_000}, 1, True),
        ({"big": "\N{SNOWMAN}" * 87_400}, 1, False),
        ({KEY: "\N{SNOWMAN}" * 87_400}, 1, True),
    ],
)
def test_a_pod_is_not_refused_for_its_size(
    annotations: dict[str, str], containers: int, *, fits: bool
) -> None:
    names = [f"{number:04}-{'x' * 58}" for number in range(containers)]
    pod = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": name} for name in names]},
    }

    assert variables_of(pod)["fits"] is fits
