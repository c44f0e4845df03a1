"""Who is told of a plugin's sessions: counters, health, whoever wants to know."""

from __future__ import annotations

from nri_resmgr.stub.runtime_info import RuntimeInfo


class Observer:
    """Does nothing at each step; override what you want to know.

    Called in the event loop, after the step. It must be quick and must not raise.
    """

    def registered(self, runtime: RuntimeInfo) -> None:
        """A session has begun: we are registered and configured."""

    def synchronized(self) -> None:
        """The runtime has told what runs, and was answered."""

    def lost(self, why: str) -> None:
        """The session has ended, or could not begin."""

    def asked(self, method: str) -> None:
        """The runtime has called; each call is answered, or its session is lost.

        Args:
            method: Its name, such as ``CreateContainer``.
        """

    def answered(self, method: str, seconds: float, code: int) -> None:
        """A call of the runtime was answered.

        Args:
            method: Its name, such as ``CreateContainer``.
            seconds: From its arrival to the answer.
            code: The ttRPC status; 0 for a success.
        """
