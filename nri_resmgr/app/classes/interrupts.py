"""Check of containers that ask for interrupts."""

from __future__ import annotations

from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.classes.irq.interrupts import check_allowed
from nri_resmgr.host.interrupts import read_interrupts
from nri_resmgr.host.tree import Tree, UnreadableHostFile


class InterruptCheck(ClassSetter):
    """Refuses requests for interrupts that may not be moved; sets nothing.

    The host's files follow in `nri_resmgr.app.host_settings`.
    """

    def __init__(self, controllable: tuple[str, ...], tree: Tree) -> None:
        self._controllable = controllable
        self._tree = tree

    def check(self, new: NewContainer) -> None:
        """Refuse a container that names an interrupt that may not be moved.

        Raises:
            DeniedInterrupt: The annotation names one.
        """
        request = new.spec.preferences.irq
        if request is None:
            return
        try:
            interrupts = read_interrupts(self._tree)
        except UnreadableHostFile:
            return  # nothing can be moved either
        check_allowed(request.affinity.patterns, interrupts, self._controllable)
