"""No sequence of calls and answers loses, doubles or mixes up one of them."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from nri_proto import (
    PLUGIN_METHODS,
    RUNTIME_METHODS,
    Call,
    CallReply,
    Method,
    Trunk,
)
from tests.examples import steps
from tests.wire.spelled import trunk_parts
from tests.wire.streams import texts

payloads = st.one_of(
    st.binary(max_size=20),
    st.integers(0, 5000).map(lambda size: b"\xff" * size),
    st.sampled_from([4030, 4070, 4080, 4086]).map(lambda size: b"\xfe" * size),
)
metadata = st.lists(st.tuples(texts, texts), max_size=2)
timeouts = st.none() | st.integers(-(10**6), 10**6).filter(bool)


@attrs.define
class End:
    """One trunk, the bytes on their way to it, and what it should know."""

    trunk: Trunk
    methods: tuple[Method, ...]  # those it calls
    inbound: bytearray = attrs.field(factory=bytearray)
    asked: dict[int, Call] = attrs.field(factory=dict)
    unanswered: list[Call] = attrs.field(factory=list)
    answered: dict[int, CallReply] = attrs.field(factory=dict)
    ended: dict[int, CallReply] = attrs.field(factory=dict)


def check_shape(written: bytes) -> None:
    """One message: a first frame of at most 4096 bytes, then all the rest."""
    parts = [part for _, part in trunk_parts(written)]
    message = b"".join(parts)

    assert len({connection for connection, _ in trunk_parts(written)}) == 1
    assert parts == [part for part in (message[:4096], message[4096:]) if part]
    assert len(message) == 10 + int.from_bytes(message[:4])


class Session(RuleBasedStateMachine):
    """A plugin and a runtime joined by a link of two byte queues."""

    @initialize()
    def connect(self) -> None:
        """Join two fresh ends."""
        plugin = End(Trunk.of_plugin(), tuple(RUNTIME_METHODS.values()))
        runtime = End(Trunk.of_runtime(), tuple(PLUGIN_METHODS.values()))
        self.ends = [plugin, runtime]

    @rule(
        side=st.integers(0, 1),
        which=st.integers(0, 99),
        payload=payloads,
        timeout=timeouts,
        metadata=metadata,
    )
    def call(
        self,
        side: int,
        which: int,
        payload: bytes,
        timeout: int | None,
        metadata: list[tuple[str, str]],
    ) -> None:
        """Let one end ask something."""
        caller, callee = self.ends[side], self.ends[1 - side]
        method = caller.methods[which % len(caller.methods)]
        stream_id, written = caller.trunk.call(
            method, payload, timeout=timeout, metadata=metadata
        )
        check_shape(written)
        assert stream_id == 2 * len(caller.asked) + 1
        caller.asked[stream_id] = Call(
            stream_id, method.service, method.name, payload, timeout, tuple(metadata)
        )
        callee.inbound += written

    @rule(side=st.integers(0, 1), size=st.integers(1, 5000) | st.integers(1, 20))
    def deliver(self, side: int, size: int) -> None:
        """Move bytes to one end, cutting where it falls."""
        end, peer = self.ends[side], self.ends[1 - side]
        chunk = bytes(end.inbound[:size])
        del end.inbound[:size]
        for event in end.trunk.receive_data(chunk):
            if isinstance(event, CallReply):
                assert event == peer.answered[event.stream_id]
                assert event.stream_id not in end.ended
                end.ended[event.stream_id] = event
            else:
                assert isinstance(event, Call)
                assert event == peer.asked[event.stream_id]
                end.unanswered.append(event)

    @precondition(lambda self: any(end.unanswered for end in self.ends))
    @rule(
        side=st.integers(0, 1),
        which=st.integers(0, 99),
        payload=payloads,
        code=st.sampled_from([0, 0, 1, 2, 13, 99, -1]),
        message=texts,
    )
    def answer(
        self, side: int, which: int, payload: bytes, code: int, message: str
    ) -> None:
        """Let one end answer any of what it was asked."""
        end, peer = self.ends[side], self.ends[1 - side]
        if not end.unanswered:
            return
        stream_id = end.unanswered.pop(which % len(end.unanswered)).stream_id
        if code:
            written = end.trunk.refuse(stream_id, code, message)
            end.answered[stream_id] = CallReply(stream_id, code, message)
        else:
            written = end.trunk.reply(stream_id, payload)
            end.answered[stream_id] = CallReply(stream_id, 0, payload=payload)
        check_shape(written)
        peer.inbound += written

    @invariant()
    def calls_arrive_in_order(self) -> None:
        """Each end hears the calls as they were made."""
        for end in getattr(self, "ends", []):
            ids = [call.stream_id for call in end.unanswered]
            assert ids == sorted(ids)

    def teardown(self) -> None:
        """Let everything arrive: each call ended exactly once, as answered."""
        for _ in range(2):
            for side, end in enumerate(getattr(self, "ends", [])):
                self.deliver(side, len(end.inbound))
                while end.unanswered:
                    self.answer(side, 0, b"\xff", 0, "")
        for side, end in enumerate(getattr(self, "ends", [])):
            self.deliver(side, len(end.inbound))
            assert end.ended.keys() == end.asked.keys()
            assert end.trunk.abandon() == ()


TestSession = Session.TestCase
TestSession.settings = steps(40, 0.6)
