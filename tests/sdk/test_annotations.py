"""Annotations of pods, as a plugin reads them for one container."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from nri_resmgr.app.annotations.scopes import effective, split_keys
from nri_resmgr.sdk.annotations import (
    Annotation,
    BadAnnotation,
    annotation_of,
    read_annotation,
)
from nri_resmgr.sdk.settings import Settings
from nri_resmgr.stub import Container, ContainerAdjustment, Device, Pod
from nri_resmgr.testing import Runtime, RuntimeRefusal, running_plugin
from nri_resmgr.values.annotations import narrowest

KEY = "devices.example.com"
WEB = Container(name="web")


def pod_with(annotations: Mapping[str, str]) -> Pod:
    return Pod(name="shop", namespace="prod", annotations=annotations)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param(
            {KEY: "1", f"{KEY}/pod": "2", f"{KEY}/container.web": "3"},
            Annotation(f"{KEY}/container.web", "3"),
            id="the container's before all others",
        ),
        pytest.param(
            {KEY: "1", f"{KEY}/pod": "2", f"{KEY}/container.log": "3"},
            Annotation(f"{KEY}/pod", "2"),
            id="the pod's, not another container's",
        ),
        pytest.param({KEY: "1"}, Annotation(KEY, "1"), id="without a scope"),
        pytest.param(
            {KEY: "1", f"{KEY}/container.web": ""},
            Annotation(f"{KEY}/container.web", ""),
            id="empty text is a value",
        ),
        pytest.param({"other": "1", f"x.{KEY}": "2"}, None, id="none"),
    ],
)
def test_the_narrowest_scope_applies(
    annotations: Mapping[str, str], expected: Annotation | None
) -> None:
    assert annotation_of(pod_with(annotations), WEB, KEY) == expected


NAMES = st.sampled_from(["web", "log", "pod", "container.web"])
SCOPES = st.sampled_from(["", "/pod", "/", "/web"]) | NAMES.map("/container.{}".format)


KEYS = SCOPES.map("memory-type.resource-policy.nri.io{}".format)


@given(st.dictionaries(KEYS, st.text(max_size=3)), NAMES)
def test_scopes_mean_the_same_as_in_annotations_of_the_daemon(
    annotations: dict[str, str], container: str
) -> None:
    ours = effective(split_keys(sorted(annotations.items()), container))

    found = narrowest(annotations, "memory-type.resource-policy.nri.io", container)

    expected = ours.get("memory-type")
    assert found == (expected and Annotation(expected.key, expected.value))


@pytest.mark.parametrize("scope", ["container", "containers.web", "container.", "web"])
def test_a_scope_of_no_container_is_logged(scope: str) -> None:
    with capture_logs() as lines:
        found = annotation_of(pod_with({f"{KEY}/{scope}": "1", KEY: "2"}), WEB, KEY)

    assert found == Annotation(KEY, "2")
    assert [(line["event"], line["pod"], line["key"]) for line in lines] == [
        ("annotation.ignored", "prod/shop", f"{KEY}/{scope}")
    ]


def test_scopes_of_other_containers_and_other_keys_are_not_logged() -> None:
    keys = (f"{KEY}/container.log", f"{KEY}/pod", f"{KEY}.x/web", "example.com/web")
    with capture_logs() as lines:
        annotation_of(pod_with(dict.fromkeys(keys, "1")), WEB, KEY)

    assert lines == []


class DeviceToAdd(Settings, frozen=True):
    """A value of the annotation."""

    path: str
    type: str = "c"
    major: int = 0
    minor: int = 0


LIST = "[{path: /dev/null, major: 1, minor: 3}]"


def test_a_value_has_the_type_of_its_author() -> None:
    pod = pod_with({KEY: LIST, "text.io": "[5]", "number.io/pod": "5"})

    assert read_annotation(pod, WEB, KEY, tuple[DeviceToAdd, ...]) == (
        DeviceToAdd("/dev/null", major=1, minor=3),
    )
    assert read_annotation(pod, WEB, "text.io", str) == "[5]"
    assert read_annotation(pod, WEB, "number.io", int) == 5
    assert read_annotation(pod, WEB, "none.io", int) is None


@pytest.mark.parametrize("empty", ["", " \n", "# nothing", "~"])
def test_an_empty_value_cancels_that_of_a_wider_scope(empty: str) -> None:
    pod = pod_with({f"{KEY}/container.web": empty, KEY: "5"})

    assert read_annotation(pod, WEB, KEY, int) is None
    assert read_annotation(pod, Container(name="log"), KEY, int) == 5
    assert read_annotation(pod, WEB, KEY, str) == empty


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"new.io": "1", "old.io": "2"}, 1),
        ({"old.io": "2"}, 2),
        ({"new.io": "1", "old.io/container.web": "2"}, 2),
        ({"new.io/container.web": "1", "old.io/container.web": "2"}, 1),
    ],
)
def test_of_several_keys_the_narrowest_then_the_first_counts(
    annotations: dict[str, str], expected: int
) -> None:
    found = read_annotation(pod_with(annotations), WEB, ("new.io", "old.io"), int)

    assert found == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(
            "[{pth: /a}]", "$[0].pth: unknown key, did you mean path?", id="key"
        ),
        pytest.param("[{}]", "$[0].path: missing", id="no path"),
        pytest.param("/dev/null", "$: expected a list, not '/dev/null'", id="no list"),
        pytest.param("[", "line ", id="no YAML"),
        pytest.param("[&a {path: /a}, *a]", "line 1: references (*)", id="references"),
    ],
)
async def test_a_bad_value_fails_the_container_with_a_sentence(
    value: str, why: str, tmp_path: Path
) -> None:
    class Injector:
        def create_container(
            self, pod: Pod, container: Container
        ) -> ContainerAdjustment:
            found = read_annotation(pod, container, KEY, tuple[DeviceToAdd, ...])
            adjustment = ContainerAdjustment()
            for one in found or ():
                adjustment = adjustment.set_device(Device(one.path, one.type))
            return adjustment

    async with Runtime(tmp_path) as runtime, running_plugin(runtime, Injector()):
        pod = await runtime.run_pod(pod_with({f"{KEY}/container.web": value}))
        await runtime.create_container(pod.id, Container(name="log"))
        with pytest.raises(RuntimeRefusal) as refused:
            await runtime.create_container(pod.id, WEB)

    start = f"prod/shop/web: annotation {KEY}/container.web: {why}"
    assert start in str(refused.value)


def test_a_long_value_is_not_repeated_in_its_error() -> None:
    with pytest.raises(BadAnnotation) as mistake:
        read_annotation(pod_with({KEY: "x" * 100_000}), WEB, KEY, int)

    assert len(str(mistake.value)) < 1000
