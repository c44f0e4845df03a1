"""The adjustments in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.decided_amounts import DecidedAmounts
from nri_resmgr.app.adjustments.judgement import covering, judge
from nri_resmgr.app.adjustments.known_classes import KnownClasses
from nri_resmgr.app.adjustments.override import as_known, with_adjustment
from nri_resmgr.classes.choice import UnknownClass
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import QosClass

log = Logger(__name__)


class AdjustmentsInForce:
    """Adjusts the specs of containers that are read from events.

    They are in force as a whole. Those of a new process have not been judged yet when
    the runtime lists its containers: if they conflict there, the containers keep what
    they had.

    A new container gets nothing from one that is in conflict, or that it cannot have.

    Attributes:
        decided: The amounts of containers that are, or were, adjusted.
        keeps: Whether known containers keep what they had, because the present
            adjustments are unknown or were rejected.
    """

    def __init__(self) -> None:
        self.present: tuple[Adjustment, ...] = ()
        self.keeps = False
        self.decided = DecidedAmounts()
        self._is_judged = True
        self._classes: Callable[[], KnownClasses] = KnownClasses

    def use_classes(self, classes: Callable[[], KnownClasses]) -> None:
        """Have adjustments name only the classes that *classes* returns."""
        self._classes = classes

    def begin(self, found: Sequence[Adjustment] | None) -> None:
        """Begin with these, before the runtime connects; None if they are not known."""
        self.present, self.keeps = tuple(found or ()), found is None
        self._is_judged = found is None

    def accept(self, found: Sequence[Adjustment]) -> None:
        """Put others in force, which do not conflict."""
        self.present, self.keeps, self._is_judged = tuple(found), False, True

    def adjust(self, own: ContainerSpec, known: ContainerSpec | None) -> ContainerSpec:
        """Return a container with its adjustment.

        Args:
            own: As it is without any.
            known: As it was at an earlier event; None for a new one.
        """
        if self.keeps and known is not None:
            return as_known(own, known)
        if not self.present or not (found := covering(self.present, own)):
            return own
        if len(found) > 1:
            names = ",".join(sorted(one.name for one in found))
            log.warning("adjustments.conflict", title=own.title, names=names)
            return own
        if found[0].has_resources and own.qos is QosClass.BEST_EFFORT:
            log.warning("adjustments.best-effort", title=own.title, name=found[0].name)
            return own
        # One that is adjusted stays so where its class is gone since.
        is_adjusted = known is not None and known.adjusted is not None
        if not is_adjusted and (why := self._refusal(found[0], own)):
            log.warning("adjustments.unknown-class", title=own.title, why=str(why))
            return own
        return with_adjustment(own, found[0])

    def adjust_all(
        self,
        own: Sequence[ContainerSpec],
        known: Callable[[str], ContainerSpec | None],
    ) -> tuple[ContainerSpec, ...]:
        """Return all containers of the runtime, each with its adjustment."""
        if not self._is_judged and judge(self.present, own, self._classes()).errors:
            self.begin(None)
        return tuple(self.adjust(one, known(one.id)) for one in own)

    def _refusal(self, found: Adjustment, own: ContainerSpec) -> UnknownClass | None:
        if not found.has_classes:
            return None
        return self._classes().refusal(found, own.title)
