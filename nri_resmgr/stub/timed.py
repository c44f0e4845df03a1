"""A link that tells an observer how long each answer took."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from google.protobuf.message import Message

from nri_proto import Call, Code, Trunk
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.observer import Observer


class TimedLink(Link):
    """A class of its own, so that a session without an observer pays nothing."""

    def __init__(
        self, trunk: Trunk, on_call: Callable[[Call], None], observer: Observer
    ) -> None:
        super().__init__(trunk, self._time_call)
        self._pass_timed_on = on_call
        self._observer = observer
        self._began: dict[int, tuple[str, float]] = {}

    def reply(self, stream_id: int, message: Message | None = None) -> None:
        """Answer a call; see `Link.reply`."""
        super().reply(stream_id, message)
        self._answered(stream_id, Code.OK)

    def refuse(self, stream_id: int, code: int, message: str) -> None:
        """Answer a call with an error; see `Link.refuse`."""
        super().refuse(stream_id, code, message)
        self._answered(stream_id, code)

    def _time_call(self, call: Call) -> None:
        self._began[call.stream_id] = call.method, perf_counter()
        self._observer.asked(call.method)
        self._pass_timed_on(call)

    def _answered(self, stream_id: int, code: int) -> None:
        if (found := self._began.pop(stream_id, None)) is not None:
            method, began = found
            self._observer.answered(method, perf_counter() - began, code)
