"""Choice of a container's class: by annotation, balloon type or QoS class."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from nri_resmgr.values import PolicyError, QosClass


class ClassRequest(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A class that an annotation names.

    Attributes:
        name: The class; whether it exists is checked later.
        key: The annotation, for messages.
        of_container: Whether the annotation names this container. One of the whole
            pod need not be met for each of its containers.
    """

    name: str
    key: str = ""
    of_container: bool = False


class Origin(enum.StrEnum):
    """Source of a class; an earlier one overrides those below it."""

    ANNOTATION = "annotation"
    TYPE = "balloon-type"
    QOS = "qos"


class ClassChoice(msgspec.Struct, frozen=True):
    """The name of a class, and its source."""

    name: str
    origin: Origin


@dataclass(eq=False)
class UnknownClass(PolicyError):
    """An annotation names a class that does not exist.

    Attributes:
        title: The container, for messages.
        kind: The kind of class, as ``RDT``.
        name: The class.
        key: The annotation.
        known: Names of all classes.
    """

    title: str
    kind: str
    name: str
    key: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known, help_ = "none is defined", "add the class to the configuration"
        if self.known:
            known = f"known: {', '.join(self.known)}"
            help_ = f"name one of these, or {help_}"
        return (
            f"{self.title} asks for {self.kind} class {self.name!r} by {self.key}; "
            f"{known}; {help_}"
        )


@dataclass(eq=False)
class ClassDenied(PolicyError):
    """A class does not allow the annotation that names it.

    `UnknownClass` has the other attributes.

    Attributes:
        flag: The option of the class that denies it.
    """

    title: str
    kind: str
    name: str
    key: str
    flag: str

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {self.kind} class {self.name!r} by {self.key}, "
            f"which {self.flag} of the class forbids; name another class"
        )


@dataclass(eq=False)
class ClassMissing(PolicyError):
    """A class is configured and not available on this node.

    `UnknownClass` has the other attributes.

    Attributes:
        why: Why it is not available.
    """

    title: str
    kind: str
    name: str
    key: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {self.kind} class {self.name!r} by {self.key}, "
            f"which this node does not have: {self.why}"
        )


def choose(
    request: ClassRequest | None, given: str, qos: QosClass | None
) -> ClassChoice | None:
    """Choose the class of a container; the caller checks that it exists.

    Args:
        request: The request by annotation.
        given: The class of its balloon type; empty for none.
        qos: Its QoS class, if classes are chosen by that.

    >>> choose(None, "slow", QosClass.BURSTABLE)
    ClassChoice(name='slow', origin=<Origin.TYPE: 'balloon-type'>)
    """
    if request is not None:
        return ClassChoice(request.name, Origin.ANNOTATION)
    if given:
        return ClassChoice(given, Origin.TYPE)
    return None if qos is None else ClassChoice(qos.value, Origin.QOS)
