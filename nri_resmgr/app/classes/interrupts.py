"""Containers that ask for interrupts which nobody may move."""

from __future__ import annotations

from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.classes.irq.interrupts import check_allowed
from nri_resmgr.host.interrupts import read_interrupts
from nri_resmgr.host.tree import Tree, UnreadableHostFile


class InterruptCheck(ClassSetter):
    """Sets nothing: who takes an interrupt is the host's matter.

    Args:
        controllable: Patterns of interrupts that may be moved.
        tree: The host.
    """

    def __init__(self, controllable: tuple[str, ...], tree: Tree) -> None:
        self._controllable = controllable
        self._tree = tree

    def check(self, new: NewContainer) -> None:
        """Refuse who names an interrupt that may not be moved.

        Raises:
            DeniedInterrupt: The annotation names one.
        """
        request = new.spec.preferences.irq
        if request is None:
            return
        try:
            interrupts = read_interrupts(self._tree)
        except UnreadableHostFile:
            return  # and nothing is moved
        check_allowed(request.affinity.patterns, interrupts, self._controllable)
