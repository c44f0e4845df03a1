"""Whatever arrives is allowed, unchanged unless it is a pod; or it is no review."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.requests.declared_requests import LONGEST_REQUESTS
from nri_resmgr.webhook.pods import Form
from nri_resmgr.webhook.review import NoReview, Result, answer_review, mutate
from tests.webhook.pods import Json, patched, review
from tests.webhook.test_annotation import answered, patch_of

KEY: Final = Form.NRI_PLUGINS.value
POD: Final[Json] = {"metadata": {}, "spec": {"containers": [{"name": "web"}]}}
TEMPLATE: Final[Json] = {"metadata": {}, "spec": {"template": POD}}


def nothing(response: Json) -> bool:
    return response == {"uid": response["uid"], "allowed": True}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE", "CONNECT"])
@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        (("", "pods"), "Pod"),
        (("", "pods/status"), "Pod"),
        (("", "nodes"), "Node"),
        (("apps", "deployments"), "Deployment"),
        (("apps", "daemonsets"), "DaemonSet"),
        (("batch", "cronjobs"), "CronJob"),
        (("apps", "deployments"), "Scale"),
        (("metrics.k8s.io", "pods"), "PodMetrics"),
    ],
)
def test_pods_are_annotated_at_creation_and_update(
    operation: str, resource: tuple[str, str], kind: str
) -> None:
    subject = {"DELETE": None, "CONNECT": {"kind": "PodExecOptions"}}.get(
        operation, POD if kind == "Pod" else TEMPLATE
    )
    before = None if operation in ("CREATE", "CONNECT") else POD
    content = review(
        subject, operation=operation, resource=resource, kind=kind, before=before
    )

    result, response = answered(content)

    annotated = resource == ("", "pods") and operation in ("CREATE", "UPDATE")
    assert response["allowed"] is True
    assert (result is Result.ANNOTATED, bool(patch_of(response))) == (
        annotated,
        annotated,
    )
    assert annotated or nothing(response)


@pytest.mark.parametrize(
    "part", ["status", "resize", "ephemeralcontainers", "binding", "eviction", "exec"]
)
def test_parts_of_pods_are_left_alone(part: str) -> None:
    result, response = answered(review(POD, operation="UPDATE", subResource=part))

    assert (result, nothing(response)) == (Result.NOT_CONCERNED, True)


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"kubernetes.io/config.mirror": "123"}},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
    ids=["mirror", "ending"],
)
def test_some_pods_are_left_alone(metadata: Json) -> None:
    result, response = answered(review({**POD, "metadata": metadata}))

    assert (result, nothing(response)) == (Result.NOT_CONCERNED, True)


@pytest.mark.parametrize(
    "subject",
    [
        None,
        [],
        "pod",
        {},
        {"spec": None},
        {"spec": {}},
        {"spec": {"containers": None}},
        {"spec": {"containers": [{}]}},
        {"spec": {"containers": [{"name": 7}]}},
        {"spec": {"containers": [{"name": "a", "resources": []}]}},
        {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": []}}}]}},
        {"metadata": {"annotations": {"a": 1}}, "spec": {"containers": []}},
        {"metadata": [], "spec": {"containers": []}},
    ],
)
def test_a_pod_that_cannot_be_read_is_allowed_with_a_warning(subject: object) -> None:
    result, response = answered(review(subject))

    assert (result, response["allowed"]) == (Result.UNREADABLE, True)
    (warning,) = response["warnings"]
    assert warning.startswith(f"no annotation {KEY}: ")
    assert "patch" not in response


def test_no_annotation_is_longer_than_the_daemon_reads() -> None:
    def with_names(count: int) -> Json:
        names = [f"{number:04}-{'x' * 58}" for number in range(count)]
        pod = {"metadata": {}, "spec": {"containers": [{"name": n} for n in names]}}
        return answered(review(pod))[1]

    fits, does_not = with_names(474), with_names(475)

    assert len(patch_of(fits)[-1]["value"]) > LONGEST_REQUESTS - 100
    assert (does_not["allowed"], "patch" in does_not) == (True, False)
    assert "characters" in does_not["warnings"][0]


@pytest.mark.parametrize("key", ["other", KEY])
def test_a_pod_is_not_refused_for_the_size_of_a_generated_annotation(key: str) -> None:
    # The API server's limit is of keys and values together.
    texts = {"big": "\N{SNOWMAN}" * ((256 << 10) // 3 - 8), key: "forged"}
    pod = {**POD, "metadata": {"annotations": texts}}

    result, response = answered(review(pod))

    after = patched(pod, patch_of(response))["metadata"]["annotations"]
    assert (result, response["allowed"]) == (Result.TOO_LARGE, True)
    assert after == {k: v for k, v in texts.items() if k != KEY}
    assert len(response["warnings"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'"review"',
        b"[" * 100_000,
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        json.dumps({**review(POD), "apiVersion": "admission.k8s.io/v1beta1"}).encode(),
        json.dumps({**review(POD), "kind": "Pod"}).encode(),
        json.dumps({**review(POD), "request": {"uid": 1}}).encode(),
        json.dumps({**review(POD), "request": {"operation": "CREATE"}}).encode(),
    ],
)
def test_an_invalid_review_is_refused(body: bytes) -> None:
    with pytest.raises(NoReview, match=r"^expected an AdmissionReview"):
        answer_review(body, lambda request: mutate(request, Form.NRI_PLUGINS))


texts = st.text(max_size=20)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)
places = st.sampled_from(
    [
        ("metadata",),
        ("metadata", "annotations"),
        ("spec",),
        ("spec", "containers"),
        ("spec", "initContainers"),
        ("spec", "resources"),
        ("spec", "resources", "limits"),
    ]
)


@given(places, anything)
def test_a_pod_with_anything_anywhere_is_allowed(
    place: tuple[str, ...], found: Any
) -> None:
    pod: Json = json.loads(json.dumps(POD))
    *above, last = place
    inner = pod
    for part in above:
        inner = inner.setdefault(part, {})
    inner[last] = found

    _, response = answered(review(pod))

    assert response["allowed"] is True


def test_a_change_is_asked_of_the_new_object() -> None:
    old = {"metadata": {}, "spec": {"containers": [{"name": "old"}]}}

    _, response = answered(review(POD, operation="UPDATE", before=old))

    assert patch_of(response)[-1]["value"] == '{"containers":{"web":{}}}'
