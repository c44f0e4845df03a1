"""Annotations that nodes would refuse are refused before; nothing else is."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given

from nri_resmgr.config import BadSetting
from nri_resmgr.webhook.checks import AnnotationChecks
from nri_resmgr.webhook.review import Result, answer_review
from tests.webhook.pods import Json, pods, review

DOCUMENT: Final = """\
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
metadata: {name: default}
spec:
  reservedResources: {cpu: 1000m}
  balloonTypes: [{name: fast}]
  schedulingClasses: [{name: realtime, policy: fifo, priority: 10}]
  control:
    cpu: {classes: {turbo: {minFreq: 1000000, maxFreq: 2000000}}}
    rdt:
      enable: true
      partitions:
        all:
          l3Allocation: 100%
          classes: {gold: {l3Allocation: 100%}}
"""
CHECKS: Final = AnnotationChecks.of_document(DOCUMENT)
NATIVE: Final = "resource-policy.nri.io"


def with_annotations(
    texts: dict[str, str], containers: tuple[str, ...] = ("web",)
) -> Json:
    return {
        "metadata": {"annotations": texts},
        "spec": {"containers": [{"name": name} for name in containers]},
    }


def judged(subject: object, **how: Any) -> tuple[Result, Json]:
    content = review(subject, **how)
    result, body = answer_review(json.dumps(content).encode(), CHECKS.judge)
    response: Json = json.loads(body)["response"]
    return result, response


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            f"rdtclass.{NATIVE}/pod",
            "golden",
            (
                "container web asks for RDT class 'golden' by "
                f"rdtclass.{NATIVE}/pod; known: system/default, gold; name one of "
                "these, or add the class to the configuration"
            ),
        ),
        (
            f"cpu-class.{NATIVE}/container.web",
            "tubro",
            (
                "container web asks for CPU class 'tubro' by "
                f"cpu-class.{NATIVE}/container.web; known: turbo; name one of these, "
                "or add the class to the configuration"
            ),
        ),
        (
            f"scheduling-class.{NATIVE}/pod",
            "idle",
            (
                "container web asks for scheduling class 'idle' by scheduling-class; "
                "known: realtime; name one of these, or add the class to the "
                "configuration"
            ),
        ),
        (
            f"balloon.balloons.{NATIVE}",
            "slow",
            (
                "container web asks for balloon type 'slow'; there are: fast, "
                "reserved, default"
            ),
        ),
        (
            f"require-isolated-cpus.{NATIVE}/pod",
            "perhaps",
            f"annotation require-isolated-cpus.{NATIVE}/pod: 'perhaps' is not",
        ),
    ],
)
def test_annotations_that_nodes_would_refuse_are_refused_with_the_same_sentence(
    key: str, value: str, sentence: str
) -> None:
    for operation in ("CREATE", "UPDATE"):
        before = with_annotations({}) if operation == "UPDATE" else None
        result, response = judged(
            with_annotations({key: value}), operation=operation, before=before
        )

        assert (result, response["allowed"]) == (Result.REFUSED, False)
        assert response["status"]["message"].startswith(sentence)
        assert response["status"]["code"] == 403


CONTROLS: Final = "\x1b[2J\x9b1m\u202e\n"
ESCAPES: Final = r"\x1b[2J\x9b1m\u202e\n"


def test_refusals_are_printable() -> None:
    texts = {f"rdtclass.{NATIVE}/pod": "golden"}
    _, response = judged(with_annotations(texts, (f"web{CONTROLS}",)))

    message = response["status"]["message"]
    assert message.startswith(f"container web{ESCAPES} asks for RDT class 'golden'")
    assert message.isprintable()


def test_keys_of_yaml_in_annotations_are_printable_in_warnings() -> None:
    rule = {"match": {"key": "name", "operator": "In", "values": ["a"], CONTROLS: 1}}
    texts = {f"{NATIVE}/affinity": json.dumps({"web": [rule]})}
    _, response = judged(with_annotations(texts))

    (warning,) = response["warnings"]
    assert f"$.web[0].match.{ESCAPES}: unknown key" in warning
    assert warning.isprintable()


def test_refusals_and_warnings_are_short_however_long_their_escapes_are() -> None:
    texts = {f"rdtclass.{NATIVE}/pod": "golden"}
    _, refused = judged(with_annotations(texts, ("\x1b" * 1990,)))
    pod = with_annotations(texts, ("\x1b" * 1990,))
    owner = {"controller": True, "kind": "ReplicaSet", "name": "web"}
    pod["metadata"]["ownerReferences"] = [owner]
    _, warned = judged(pod)

    assert len(refused["status"]["message"]) == 2003
    assert [len(one) for one in warned["warnings"]] == [203]


def test_annotations_that_contradict_each_other_are_refused() -> None:
    texts = {
        f"require-isolated-cpus.{NATIVE}/pod": "true",
        f"prefer-shared-cpus.{NATIVE}/container.web": "true",
    }

    _, response = judged(with_annotations(texts, ("web", "log")))

    # The other container only has the one of the pod.
    assert response["status"]["message"] == (
        "container web: annotations require-isolated-cpus and prefer-shared-cpus "
        "contradict each other; remove one of them"
    )


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"example.com/anything": "else"},
        {f"rdtclass.{NATIVE}/pod": "gold"},
        {f"cpu-class.{NATIVE}/pod": "turbo"},
        {f"balloon.balloons.{NATIVE}": "fast"},
        {f"balloon.balloons.{NATIVE}": "reserved"},
        {f"blockioclass.{NATIVE}/pod": "of-the-runtime"},
        {f"require-isolated-cpus.{NATIVE}/pod": "true"},
    ],
)
def test_annotations_that_nodes_accept_are_allowed_without_warnings(
    texts: dict[str, str],
) -> None:
    result, response = judged(with_annotations(texts))

    assert (result, response) == (
        Result.VALID,
        {"uid": response["uid"], "allowed": True},
    )


def test_annotations_that_nodes_would_ignore_are_a_warning() -> None:
    result, response = judged(with_annotations({f"memory-typ.{NATIVE}/pod": "dram"}))

    assert (result, response["allowed"]) == (Result.WARNED, True)
    assert "did you mean memory-type?" in response["warnings"][0]


BAD: Final = {f"rdtclass.{NATIVE}/pod": "golden"}


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        (("apps", "deployments"), "Deployment"),
        (("apps", "statefulsets"), "StatefulSet"),
        (("apps", "daemonsets"), "DaemonSet"),
        (("apps", "replicasets"), "ReplicaSet"),
        (("batch", "jobs"), "Job"),
        (("batch", "cronjobs"), "CronJob"),
        (("", "replicationcontrollers"), "ReplicationController"),
    ],
)
def test_the_template_of_a_workload_is_checked_as_its_pods_are(
    resource: tuple[str, str], kind: str
) -> None:
    def workload(texts: dict[str, str]) -> Json:
        spec: Json = {"template": with_annotations(texts)}
        return {"spec": {"jobTemplate": {"spec": spec}} if kind == "CronJob" else spec}

    bad, good = (
        judged(workload(texts), resource=resource, kind=kind)[1] for texts in (BAD, {})
    )

    assert (bad["allowed"], good["allowed"]) == (False, True)


@pytest.mark.parametrize(
    "how",
    [
        {"operation": "UPDATE", "before": with_annotations(BAD)},
        {"operation": "DELETE"},
        {"operation": "CONNECT"},
        {"operation": "UPDATE", "subResource": "status"},
        {"resource": ("", "nodes"), "kind": "Node"},
        {"resource": ("example.com", "deployments"), "kind": "Deployment"},
    ],
)
def test_existing_annotations_and_other_objects_are_allowed(how: Json) -> None:
    result, response = judged(with_annotations(BAD), **how)

    assert (result, response["allowed"]) == (Result.NOT_CONCERNED, True)


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
    ids=["of a controller", "ending"],
)
def test_pods_that_no_user_writes_are_allowed(metadata: Json) -> None:
    subject = with_annotations(BAD)
    subject["metadata"] |= metadata

    _, response = judged(subject)

    assert response["allowed"] is True


@pytest.mark.parametrize("subject", [None, {}, {"spec": 1}, {"spec": {"template": 1}}])
@pytest.mark.parametrize("resource", [("", "pods"), ("apps", "deployments")])
def test_unreadable_objects_are_left_to_the_api_server(
    subject: object, resource: tuple[str, str]
) -> None:
    result, response = judged(subject, resource=resource)

    assert (result, response["allowed"]) == (Result.UNREADABLE, True)


@given(pods())
def test_pods_without_known_annotations_are_allowed(subject: Json) -> None:
    assert judged(subject)[1]["allowed"] is True


def test_a_document_with_a_mistake_is_refused() -> None:
    with pytest.raises(BadSetting):
        AnnotationChecks.of_document(DOCUMENT.replace("1000m", "much"))
