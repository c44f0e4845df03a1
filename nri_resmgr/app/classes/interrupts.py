"""Check of containers that ask for interrupts."""

from __future__ import annotations

from nri_resmgr.app.background.renewal import INTERVAL, Renewal
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.classes.irq.interrupts import Interrupt, check_allowed
from nri_resmgr.host.interrupts import read_interrupts
from nri_resmgr.host.tree import Tree, UnreadableHostFile


class KnownInterrupts:
    """The interrupts of a host as they were read last.

    There are hundreds of files, too many for the path of a request: they are read
    beforehand, and again after a request that needed them. A driver that has come
    meanwhile makes a difference for the check only: what may not be moved never is.

    Args:
        tree: The host.
        interval: Seconds between two reads.
    """

    def __init__(self, tree: Tree, interval: float = INTERVAL) -> None:
        self._tree = tree
        self._renewal = Renewal(self._look, interval)
        self._look()

    @property
    def present(self) -> tuple[Interrupt, ...]:
        """Return the interrupts; none where they cannot be read."""
        self._renewal.begin()
        return self._present

    def _look(self) -> None:
        try:
            self._present = read_interrupts(self._tree)
        except UnreadableHostFile:
            self._present = ()  # nothing can be moved either


class InterruptCheck(ClassSetter):
    """Refuses requests for interrupts that may not be moved; sets nothing.

    The host's files follow in `nri_resmgr.app.host_settings`.
    """

    annotations = frozenset(("irq-affinity",))

    def __init__(self, controllable: tuple[str, ...], known: KnownInterrupts) -> None:
        self._controllable = controllable
        self._known = known

    def check(self, new: NewContainer) -> None:
        """Refuse a container that names an interrupt that may not be moved.

        Raises:
            DeniedInterrupt: The annotation names one.
        """
        if (request := new.spec.preferences.irq) is not None:
            patterns = request.affinity.patterns
            check_allowed(patterns, self._known.present, self._controllable)
