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
        by_adjustment: Whether an adjustment of the cluster names it instead.
    """

    name: str
    key: str = ""
    of_container: bool = False
    by_adjustment: bool = False


class Origin(enum.StrEnum):
    """Source of a class; an earlier one overrides those below it."""

    ADJUSTMENT = "adjustment"
    ANNOTATION = "annotation"
    TYPE = "balloon-type"
    QOS = "qos"


class ClassChoice(msgspec.Struct, frozen=True):
    """The name of a class, and its source."""

    name: str
    origin: Origin


@dataclass(eq=False)
class ClassRefused(PolicyError):
    """An annotation names a class that the container cannot have."""

    title: str
    kind: str
    name: str
    key: str

    @property
    def request(self) -> str:
        """The beginning of the message: what the container asks for."""
        return f"{self.title} asks for {self.kind} class {self.name!r} by {self.key}"


@dataclass(eq=False)
class UnknownClass(ClassRefused):
    """An annotation names a class that does not exist; *known* are all classes."""

    known: tuple[str, ...]

    def __str__(self) -> str:
        known, help_ = "none is defined", "add the class to the configuration"
        if self.known:
            known = f"known: {', '.join(self.known)}"
            help_ = f"name one of these, or {help_}"
        return f"{self.request}; {known}; {help_}"


@dataclass(eq=False)
class ClassDenied(ClassRefused):
    """A class does not allow the annotation that names it, by its option *flag*."""

    flag: str

    def __str__(self) -> str:
        what = f"which {self.flag} of the class forbids"
        return f"{self.request}, {what}; name another class"


@dataclass(eq=False)
class ClassMissing(ClassRefused):
    """A class is configured and not available on this node."""

    why: str

    def __str__(self) -> str:
        return f"{self.request}, which this node does not have: {self.why}"


def choose(
    request: ClassRequest | None, given: str, qos: QosClass | None
) -> ClassChoice | None:
    """Choose the class of a container; the caller checks that it exists.

    >>> choose(None, "slow", QosClass.BURSTABLE)
    ClassChoice(name='slow', origin=<Origin.TYPE: 'balloon-type'>)
    """
    if request is not None:
        is_adjusted = request.by_adjustment
        origin = Origin.ADJUSTMENT if is_adjusted else Origin.ANNOTATION
        return ClassChoice(request.name, origin)
    if given:
        return ClassChoice(given, Origin.TYPE)
    return None if qos is None else ClassChoice(qos.value, Origin.QOS)
