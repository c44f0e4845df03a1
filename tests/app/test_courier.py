"""Updates on their way to the runtime, while replies go the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from nri_resmgr.app.courier import Courier
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import Pin
from nri_resmgr.stub import ContainerUpdate
from nri_resmgr.stub.errors import CallTimedOut
from nri_resmgr.values import CpuSet


def pin(cpus: str) -> Pin:
    return Pin(CpuSet.parse(cpus))


def updates(**cpus: str) -> tuple[ContainerUpdate, ...]:
    return tuple(ContainerUpdate(key).set_cpus(one) for key, one in cpus.items())


class SlowRuntime:
    """Takes each call when it is let, and remembers what it was told.

    Attributes:
        refused: Ids of containers that cannot be updated.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[tuple[ContainerUpdate, ...]] = []
        self.refused: set[str] = set()
        self.gate = asyncio.Event()
        self._error = error

    async def update_containers(
        self, updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """See `nri_resmgr.app.courier.Runtime`."""
        self.calls.append(tuple(updates))
        await self.gate.wait()
        if self._error:
            raise self._error
        return tuple(one for one in self.calls[-1] if one.container_id in self.refused)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_a_reply_changed_meanwhile_is_sent_again() -> None:
    told, runtime = {"a": pin("1"), "b": pin("2")}, SlowRuntime()
    courier = Courier(told.get)
    courier.connect(runtime)
    courier.send(["a", "b"])
    await settled()
    told["a"] = pin("3")
    runtime.gate.set()
    await settled()

    assert runtime.calls == [updates(a="1", b="2"), updates(a="3")]


async def test_what_comes_while_one_call_waits_goes_with_the_next() -> None:
    told, runtime = {"a": pin("1"), "b": pin("2"), "c": pin("3")}, SlowRuntime()
    courier = Courier(told.get)
    courier.connect(runtime)
    for key in told:
        courier.send([key])
        await settled()
    del told["c"]
    runtime.gate.set()
    await settled()

    assert runtime.calls == [updates(a="1"), updates(b="2")]


async def test_what_the_runtime_did_not_take_is_added_to_one_reply() -> None:
    told, runtime = {"a": pin("1"), "b": pin("2")}, SlowRuntime()
    runtime.refused.add("b")
    runtime.gate.set()
    courier = Courier(told.get)
    courier.connect(runtime)
    courier.send(told)
    await settled()
    own = PinUpdate("c", pin("4"))

    assert courier.with_overdue((own,)) == (own, PinUpdate("b", pin("2")))
    assert courier.with_overdue((own,)) == (own,)


async def test_a_reply_says_things_once_and_as_they_are_now() -> None:
    told = {"a": pin("1")}
    runtime = SlowRuntime(CallTimedOut("UpdateContainers", 1.0))
    runtime.gate.set()
    courier = Courier(told.get)
    courier.connect(runtime)
    courier.send(told)
    await settled()
    told["a"] = pin("7")

    assert courier.with_overdue((PinUpdate("a", pin("7")),)) == (
        PinUpdate("a", pin("7")),
    )


async def test_a_new_beginning_makes_all_of_it_moot() -> None:
    courier = Courier({"a": pin("1")}.get)
    courier.send(["a"])
    courier.drop()

    assert courier.with_overdue(()) == ()


async def test_an_update_is_waiting_until_the_runtime_has_taken_it() -> None:
    told, runtime = {"a": pin("1"), "b": pin("2"), "c": pin("3")}, SlowRuntime()
    runtime.refused = {"b"}
    courier = Courier(told.get)
    courier.connect(runtime)
    courier.send(["a", "b"])
    await settled()
    courier.send(["c"])
    on_their_way = courier.waiting()
    runtime.gate.set()
    await settled()

    assert on_their_way == {"a", "b", "c"}
    assert courier.waiting() == {"b"}
