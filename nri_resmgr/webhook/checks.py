"""Checks of annotations before a pod is stored: what nodes would refuse or ignore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from nri_resmgr.app.annotations.interpret import interpret
from nri_resmgr.app.annotations.reading import is_read
from nri_resmgr.classes.choice import ClassRequest, UnknownClass
from nri_resmgr.classes.rdt import ROOT_CLASS
from nri_resmgr.classes.rdt.checks import classes_of, group_of
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.balloons.errors import NoSuchType
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.webhook.pods import MIRROR, Container, Pod
from nri_resmgr.webhook.review import Answer, Request, Result, read_json

T = TypeVar("T")

# Balloon types that need not be listed.
_BUILT_IN_TYPES: Final = ("reserved", "default")

_CONTRADICTIONS: Final = (
    ("require_isolated", "shared", "require-isolated-cpus", "prefer-shared-cpus"),
    ("require_isolated", "reserved", "require-isolated-cpus", "prefer-reserved-cpus"),
    ("require_isolated", "preserve_cpus", "require-isolated-cpus", "cpu.preserve"),
    ("memory_kinds", "preserve_memory", "memory-type", "memory.preserve"),
)
"""Two fields of `Preferences` that exclude each other, and their keys."""

_MOST_WARNINGS: Final = 5


class _Template(msgspec.Struct, frozen=True):
    template: Pod


class _Workload(msgspec.Struct, frozen=True):
    spec: _Template


class _JobTemplate(msgspec.Struct, frozen=True, rename="camel"):
    job_template: _Workload


class _CronJob(msgspec.Struct, frozen=True):
    spec: _JobTemplate


_WORKLOADS: Final = frozenset(
    (
        ("apps", "daemonsets"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "jobs"),
        ("", "replicationcontrollers"),
    )
)

_POD_JSON: Final = msgspec.json.Decoder(Pod)
_TEMPLATE_JSON: Final = msgspec.json.Decoder(_Workload)
_CRON_JSON: Final = msgspec.json.Decoder(_CronJob)


class KnownNames(msgspec.Struct, frozen=True):
    """The names that a document defines; None where it is not what defines them."""

    cpu: tuple[str, ...] | None = None
    rdt: tuple[str, ...] | None = None
    blockio: tuple[str, ...] | None = None
    scheduling: tuple[str, ...] | None = None
    balloons: tuple[str, ...] | None = None


class AnnotationChecks:
    """Judges the annotations of pods, and of templates of pods.

    Refused is what a node with the document would refuse, or not know; what it would
    ignore is a warning.

    Args:
        known: The names that annotations may use.
    """

    def __init__(self, known: KnownNames) -> None:
        self._known = known

    @classmethod
    def of_document(cls, text: str) -> AnnotationChecks:
        """Return the checks for the names of a configuration document.

        Raises:
            InputError: It has a mistake.
        """
        return cls(names_in(parse_config(text)))

    def judge(self, request: Request) -> Answer:
        """Judge the annotations of an object that is created or changed."""
        pod = _pod_in(request, request.object)
        if pod is None or request.operation not in ("CREATE", "UPDATE"):
            return Answer(Result.NOT_CONCERNED)
        if isinstance(pod, str):
            # The API server says what is wrong with it.
            return Answer(Result.UNREADABLE)
        if _is_left_alone(pod) or _is_unchanged(request, pod):
            return Answer(Result.NOT_CONCERNED)
        refusals, warnings = self._problems(pod)
        owners = pod.metadata.owner_references or ()
        if refusals and not any(one.controller for one in owners):
            return Answer(Result.REFUSED, refusal="; ".join(refusals))
        # A pod of a controller was not written by a user, who would see a refusal.
        found = (*refusals, *warnings)[:_MOST_WARNINGS]
        return Answer(Result.WARNED if found else Result.VALID, warnings=found)

    def _problems(self, pod: Pod) -> tuple[list[str], list[str]]:
        """Return what is refused, and what is only reported; each sentence once."""
        ours = tuple(
            sorted((k, v) for k, v in pod.metadata.texts.items() if is_read(k))
        )
        refusals: dict[str, None] = {}
        warnings: dict[str, None] = {}
        for container in pod.spec.all_containers if ours else ():
            reading = interpret(ours, container.name, testing=False)
            for one in reading.problems:
                found = refusals if one.strict else warnings
                found[f"annotation {one.key}: {one.why}"] = None
            for why in (
                *self._unknown(container, reading.preferences),
                *_contradictions(container, reading.preferences),
            ):
                refusals[why] = None
        return list(refusals), list(warnings)

    def _unknown(self, container: Container, asked: Preferences) -> Iterator[str]:
        known, title = self._known, f"container {container.name}"
        for kind, names, request in (
            ("CPU", known.cpu, asked.cpu_class),
            ("RDT", known.rdt, asked.rdt_class),
            ("block I/O", known.blockio, asked.blockio_class),
            ("scheduling", known.scheduling, _scheduling(asked)),
        ):
            if request is None or names is None or request.name in names:
                continue
            yield str(UnknownClass(title, kind, request.name, request.key, names))
        names = known.balloons
        if asked.balloon and names is not None and asked.balloon not in names:
            yield str(NoSuchType(title, asked.balloon, names))


def names_in(config: PolicyConfig) -> KnownNames:
    """Return the names that a document defines."""
    rdt, blockio = config.rdt, config.blockio
    rdt_names = None
    if rdt is not None and rdt.config is not None:
        rdt_names = (ROOT_CLASS, *(group_of(one) for _, one in classes_of(rdt.config)))
    # Only some kinds of policies have them.
    scheduling: Mapping[str, object] | None = getattr(
        config, "scheduling_classes", None
    )
    is_balloons = config.kind == "BalloonsPolicy"
    return KnownNames(
        cpu=tuple(config.cpu_classes.classes) if config.cpu_classes else (),
        rdt=rdt_names,
        blockio=tuple(blockio.classes) if blockio and blockio.classes else None,
        scheduling=tuple(scheduling) if scheduling is not None else None,
        balloons=(*config.listed_types, *_BUILT_IN_TYPES) if is_balloons else None,
    )


def _scheduling(asked: Preferences) -> ClassRequest | None:
    name = asked.scheduling_class
    return ClassRequest(name, "scheduling-class") if name else None


def _contradictions(container: Container, asked: Preferences) -> Iterator[str]:
    for field, other, key, other_key in _CONTRADICTIONS:
        if getattr(asked, field) and getattr(asked, other):
            yield (
                f"container {container.name}: annotations {key} and {other_key} "
                "contradict each other; remove one of them"
            )


def _is_left_alone(pod: Pod) -> bool:
    metadata = pod.metadata
    return MIRROR in metadata.texts or metadata.deletion_timestamp is not None


def _is_unchanged(request: Request, pod: Pod) -> bool:
    """Return whether an update changes nothing that is checked."""
    before = _pod_in(request, request.old_object)
    if request.operation != "UPDATE" or not isinstance(before, Pod):
        return False
    names = [[c.name for c in one.spec.all_containers] for one in (before, pod)]
    texts = [
        {k: v for k, v in one.metadata.texts.items() if is_read(k)}
        for one in (before, pod)
    ]
    return names[0] == names[1] and texts[0] == texts[1]


def _pod_in(request: Request, json: msgspec.Raw) -> Pod | str | None:
    """Return the pod or template in an object; None for another kind of object."""
    found = request.resource
    if request.sub_resource:
        return None
    match found.group, found.resource:
        case "", "pods":
            return read_json(_POD_JSON, json)
        case "batch", "cronjobs":
            cron = read_json(_CRON_JSON, json)
            return (
                cron if isinstance(cron, str) else cron.spec.job_template.spec.template
            )
        case one if one in _WORKLOADS:
            workload = read_json(_TEMPLATE_JSON, json)
            return workload if isinstance(workload, str) else workload.spec.template
    return None
