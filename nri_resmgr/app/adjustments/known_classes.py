"""The classes that adjustments may name."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.classes.choice import UnknownClass
from nri_resmgr.config import PolicyConfig


class KnownClasses(msgspec.Struct, frozen=True):
    """Names of all classes of each kind; None where any name is accepted.

    A kind that the configuration does not switch on, and block I/O classes of the
    runtime, are not known.
    """

    rdt: tuple[str, ...] | None = None
    blockio: tuple[str, ...] | None = None

    def refusal(self, found: Adjustment, title: str) -> UnknownClass | None:
        """Return why an adjustment's classes do not exist; None if they do.

        Args:
            found: The adjustment.
            title: Of the container that it applies to.
        """
        for kind, name, known in (
            ("RDT", found.rdt_class, self.rdt),
            ("block I/O", found.blockio_class, self.blockio),
        ):
            if name is not None and known is not None and name not in known:
                key = f"adjustment {found.name}"
                return UnknownClass(title, kind, name, key, known)
        return None


def known_classes(
    config: PolicyConfig, groups: Callable[[], tuple[str, ...] | None]
) -> KnownClasses:
    """Return the classes of a configuration, or those of the host that it uses.

    Args:
        config: The configuration.
        groups: Returns the host's RDT groups; None while they are not known.
    """
    blockio = config.blockio
    classes = blockio.classes if blockio is not None else None
    return KnownClasses(
        _rdt_classes(config, groups), None if classes is None else tuple(classes)
    )


def _rdt_classes(
    config: PolicyConfig, groups: Callable[[], tuple[str, ...] | None]
) -> tuple[str, ...] | None:
    use = config.rdt
    if use is None or not use.assigns:
        return None
    if use.config is None:
        return groups()  # of other programs
    # Late: on the start path, and few nodes use RDT classes.
    from nri_resmgr.classes.rdt import ROOT_CLASS, checks

    named = (checks.group_of(one) for _, one in checks.classes_of(use.config))
    return tuple(dict.fromkeys((ROOT_CLASS, *named)))
