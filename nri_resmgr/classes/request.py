"""What annotations ask of the host, and whom they are about."""

from __future__ import annotations

import msgspec

from nri_resmgr.classes.irq.requests import IrqAffinity


class ClassRequest(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A class by its name, and whom the annotation is about.

    Attributes:
        name: Of the class; whether there is one is looked up by others.
        key: The annotation, for people.
        of_container: Whether it is about this container, not about its whole pod:
            who says a thing of a pod does not mean that each container can have it.
    """

    name: str
    key: str = ""
    of_container: bool = False


class IrqRequest(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What is asked about interrupts; see `ClassRequest` for the other two."""

    affinity: IrqAffinity
    key: str = ""
    of_container: bool = False
