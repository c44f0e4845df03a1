"""A review of a pod annotates it with what the daemon's reader then reads."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.requests.webhook import read_resources
from nri_resmgr.webhook.pods import Form
from nri_resmgr.webhook.review import Answer, Request, Result, answer_review, mutate
from tests.examples import examples
from tests.webhook.pods import Json, expected, patched, pods, review

forms = st.sampled_from(Form)


def answered(content: Json, form: Form = Form.NRI_PLUGINS) -> tuple[Result, Json]:
    """Return the result of a review, and the response."""

    def judge(request: Request) -> Answer:
        return mutate(request, form)

    result, body = answer_review(json.dumps(content).encode(), judge)
    envelope = json.loads(body)
    assert (envelope["apiVersion"], envelope["kind"]) == (
        "admission.k8s.io/v1",
        "AdmissionReview",
    )
    assert envelope["response"]["uid"] == content["request"]["uid"]
    response: Json = envelope["response"]
    return result, response


def patch_of(response: Json) -> list[Json]:
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    patch: list[Json] = json.loads(base64.b64decode(response["patch"]))
    return patch


@examples(10)
@given(pods(), forms)
def test_the_daemon_reads_the_requests_of_the_pod(pod: Json, form: Form) -> None:
    result, response = answered(review(pod), form)
    after = patched(pod, patch_of(response))
    annotations = after["metadata"]["annotations"]
    found = read_resources(annotations[form.value])
    init = pod["spec"].get("initContainers", [])

    assert (result, response["allowed"]) == (Result.ANNOTATED, True)
    # Nothing else has changed.
    others = {k: v for k, v in annotations.items() if k != form.value}
    before = pod["metadata"].get("annotations", {})
    assert others == {k: v for k, v in before.items() if k != form.value}
    assert {**after, "metadata": {}} == {**pod, "metadata": {}}
    assert found.sidecars == {c["name"] for c in init if "restartPolicy" in c}
    assert (found.pod is not None) is ("resources" in pod["spec"])
    for one in (*init, *pod["spec"]["containers"]):
        read: Any = found.of(one["name"])
        assert {
            "cpu": read.cpu,
            "cpu_limit": read.cpu_limit,
            "memory": read.memory,
            "memory_limit": read.memory_limit,
            "extended": dict(read.extended),
            "hugepages": sum(pages.count for pages in read.hugepages),
        } == expected(one, pod)


@given(pods(), forms)
def test_a_second_review_changes_nothing(pod: Json, form: Form) -> None:
    after = patched(pod, patch_of(answered(review(pod), form)[1]))

    for operation in ("CREATE", "UPDATE"):
        result, response = answered(
            review(after, operation=operation, before=after), form
        )
        assert (result, response) == (
            Result.CURRENT,
            {"uid": response["uid"], "allowed": True},
        )


@given(pods(), st.text(max_size=50))
def test_an_annotation_of_the_author_is_replaced(pod: Json, forged: str) -> None:
    key = Form.NRI_PLUGINS.value
    honest = patched(pod, patch_of(answered(review(pod))[1]))
    pod["metadata"]["annotations"] = {
        **pod["metadata"].get("annotations", {}),
        key: forged,
    }

    after = patched(pod, patch_of(answered(review(pod))[1]))

    assert (
        after["metadata"]["annotations"][key] == honest["metadata"]["annotations"][key]
    )


def test_a_container_that_an_injector_adds_is_in_the_next_annotation() -> None:
    pod: Json = {"metadata": {}, "spec": {"containers": [{"name": "web"}]}}
    first = patched(pod, patch_of(answered(review(pod))[1]))
    injected = {"name": "proxy", "resources": {"requests": {"cpu": "1m"}}}
    first["spec"] = {"containers": [*pod["spec"]["containers"], injected]}

    after = patched(first, patch_of(answered(review(first))[1]))

    found = read_resources(after["metadata"]["annotations"][Form.NRI_PLUGINS.value])
    assert found.names == {"web", "proxy"}
    assert found.containers["proxy"].cpu == 1


def test_the_forms_are_those_of_nri_plugins_and_of_cri_resource_manager() -> None:
    # A regular container may have a policy, too, and is no sidecar by it.
    web = {
        "name": "web",
        "resources": {"limits": {"cpu": "2"}},
        "restartPolicy": "Always",
    }
    pod: Json = {"metadata": {}, "spec": {"containers": [web]}}
    texts = {
        form: patch_of(answered(review(pod), form)[1])[-1]["value"] for form in Form
    }

    containers = '"containers":{"web":{"limits":{"cpu":"2"}}}'
    assert texts == {
        Form.NRI_PLUGINS: f"{{{containers}}}",
        Form.CRI_RM: f'{{{containers},"initContainers":{{}}}}',
    }
