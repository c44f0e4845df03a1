"""The page of the node in a real Chromium, beside what the daemon says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.documents import MACHINE as ONE_POOL
from tests.daemon.documents import document, write
from tests.daemon.test_observability import free_port
from tests.daemon.test_verification import MACHINE as TWO_NODES
from tests.daemon.test_verification import OFTEN, run_web
from tests.daemon.test_verification import write as write_cgroup
from tests.page.browser import Browser, browser
from tests.real_host.patience import wait_until

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("chromium")]

MACHINE: Final = parse_spec("2s2n4c2t")
OWN: Final = Workload("own", QosClass.GUARANTEED, 2000)
MANY: Final = Workload("many", QosClass.BURSTABLE, 500)
HUGE: Final = Workload("huge", QosClass.GUARANTEED, 64000)


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as found:
        yield found


class Node:
    """A daemon with its page, which the window shows."""

    def __init__(self, running: RunningDaemon, window: Browser, folder: Path) -> None:
        self.running, self._window = running, window
        self._client = Client(str(folder / "control.sock"))

    async def state(self) -> Any:
        return await asyncio.to_thread(self._client.get, "/v1/state")

    async def texts(self, selector: str) -> list[str]:
        return await asyncio.to_thread(self._window.texts, selector)

    async def run(self, script: str, *arguments: object) -> Any:
        return await asyncio.to_thread(self._window.run, script, *arguments)

    async def shown(self, text: str, selector: str = "main") -> None:
        """Wait until the page shows a text."""
        await self._until(lambda shown: text in shown, selector, f"no {text!r}")

    async def gone(self, text: str, selector: str) -> None:
        """Wait until it no longer does."""
        await self._until(lambda shown: text not in shown, selector, f"still {text!r}")

    async def _until(
        self, holds: Callable[[str], bool], selector: str, what: str
    ) -> None:
        def looks() -> bool:
            return holds("\n".join(self._window.texts(selector)))

        await asyncio.to_thread(wait_until, looks, what)

    async def rows(self, table: str) -> list[list[str]]:
        """Return the cells of a table, as they are shown."""
        script = (
            "return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map("
            "row => [...row.children].map(cell => cell.textContent.trim()))"
        )
        found: list[list[str]] = await self.run(script, table)
        return found

    async def in_force(self) -> dict[str, str]:
        """Return what the table of containers says of the cgroup of each."""
        return {row[0]: row[-1] for row in await self.rows("containers")}

    async def marked(self) -> list[str]:
        """Return the containers that the table marks as problems."""
        return await self.texts("#containers tr.problem td:first-child")


def flags(folder: Path, port: int) -> tuple[str, ...]:
    socket = ("--control-socket", str(folder / "control.sock"))
    return ("--http-endpoint", f"127.0.0.1:{port}", "--http-page", *socket)


@pytest.fixture
async def node(tmp_path: Path, window: Browser) -> AsyncIterator[Node]:
    port = free_port()
    async with daemon(tmp_path, MACHINE, *flags(tmp_path, port)) as running:
        await running.line("http.listening")
        await asyncio.to_thread(window.open, f"http://127.0.0.1:{port}/")
        found = Node(running, window, tmp_path)
        await found.shown("live", "#connection")
        yield found
        complaints = await asyncio.to_thread(window.complaints)
        # Nor does it miss the daemon then.
        await asyncio.to_thread(window.open, "about:blank")
    assert complaints == []


async def test_it_shows_what_the_daemon_says(node: Node) -> None:
    await node.running.place(OWN)
    await node.running.place(MANY)
    with pytest.raises(PluginRefused):
        await node.running.place(HUGE)
    await node.shown("default/many/many", "#containers")
    await node.shown("default/huge/huge", "#refusals")

    state = await node.state()
    [headline] = await node.texts("#headline")
    assert "TopologyAwarePolicy" in headline
    assert f"{state['runtime']['name']} {state['runtime']['version']}" in headline
    rows = {row[0]: row[1:] for row in await node.rows("containers")}
    assert rows == {
        f"{one['namespace']}/{one['pod']}/{one['name']}": [
            one["qos"],
            {"own": "2", "many": "500m"}[one["name"]],
            one["pool"],
            one["cpus"],
            one["exclusive"] or "-",
            one["mems"],
            "-",
        ]
        for one in state["containers"]
    }
    pools = {row[0]: row[1:4] for row in await node.rows("pools")}
    assert pools == {
        pool["name"]: [pool[key] or "-" for key in ("cpus", "shared", "exclusive")]
        for pool in state["pools"]
    }
    [cpus] = await node.texts("#cpus")
    assert cpus.startswith("32 online: 2 exclusive, ")
    assert await node.texts("#problems:not([hidden])") == []


async def test_a_rejected_configuration_is_a_problem_until_another_is_accepted(
    tmp_path: Path, window: Browser
) -> None:
    port, path = free_port(), tmp_path / "my.yaml"
    write(path, document(0, "TopologyAwarePolicy"))
    more = ("--config-file", str(path))
    async with daemon(tmp_path, ONE_POOL, *flags(tmp_path, port), *more) as running:
        await running.line("http.listening")
        await asyncio.to_thread(window.open, f"http://127.0.0.1:{port}/")
        node = Node(running, window, tmp_path)
        await node.shown("live", "#connection")
        assert await node.texts("#problems:not([hidden])") == []

        write(path, "kind: Nonsense")
        await node.shown("configuration refused: ", "#problems:not([hidden])")
        await node.shown("configuration.rejected", "#refusals")
        write(path, document(1, "TopologyAwarePolicy"))
        await node.gone("configuration refused: ", "#problems:not([hidden])")
        await asyncio.to_thread(window.open, "about:blank")
    await asyncio.to_thread(window.complaints)


async def test_drift_is_a_problem_until_the_cgroup_is_as_decided(
    tmp_path: Path, window: Browser
) -> None:
    port, problems = free_port(), "#problems:not([hidden])"
    async with daemon(
        tmp_path,
        TWO_NODES,
        *(*flags(tmp_path, port), *OFTEN, "--verify-repair", "no"),
        before=lambda root: write_cgroup(root, "0-7"),
    ) as running:
        await running.line("http.listening")
        await asyncio.to_thread(window.open, f"http://127.0.0.1:{port}/")
        node = Node(running, window, tmp_path)
        await running.place(MANY)
        await run_web(running)
        await node.shown("shop/web/web: drifted: cpus 0-7", problems)
        await node.shown("container.drifted", "#events")
        drifted, marked = await node.in_force(), await node.marked()

        write_cgroup(tmp_path / "host", "4-5")
        await node.gone("shop/web/web", problems)
        await node.shown("drift.cleared", "#events")
        cleared, left = await node.in_force(), await node.marked()
        await asyncio.to_thread(window.open, "about:blank")
    complaints = await asyncio.to_thread(window.complaints)

    assert drifted == {
        "shop/web/web": "drifted: cpus 0-7",
        "default/many/many": "not-running",
    }
    assert marked == ["shop/web/web"]
    assert cleared == drifted | {"shop/web/web": "as-decided"}
    assert (left, complaints) == ([], [])


async def test_the_picture_is_that_of_the_client(node: Node) -> None:
    await node.running.place(OWN)
    await node.shown("default/own/own", "#picture")

    script = "return document.querySelectorAll('#picture svg g.cpu').length"
    assert await node.run(script) == len(MACHINE.online)
    # Its texts can be selected, and it is no image of another document.
    selected = await node.run(
        "getSelection().selectAllChildren(document.querySelector('#picture'));"
        "return getSelection().toString()"
    )
    assert "default/own/own" in selected


async def test_events_come_by_themselves(node: Node) -> None:
    assert await node.rows("containers") == []

    await node.running.place(OWN)
    await node.shown("default/own/own", "#containers")
    await node.shown("container.placed", "#events")
    await node.running.runtime.stop_pod(OWN.pod.id)
    await node.running.runtime.remove_pod(OWN.pod.id)
    await node.gone("default/own/own", "#containers")
    await node.shown("container.released", "#events")


async def test_a_search_finds_rows_by_all_of_its_words(
    node: Node, window: Browser
) -> None:
    await node.running.place(OWN)
    await node.running.place(MANY)
    await node.shown("default/many/many", "#containers")

    found = {}
    for words in ("", "many", "GUARANTEED own", "own burstable", "nothing"):
        await asyncio.to_thread(window.type, "#search", words)
        names = [row[0].rpartition("/")[2] for row in await node.rows("containers")]
        found[words] = (sorted(names), (await node.texts("#found"))[0])

    assert found == {
        "": (["many", "own"], "2 containers"),
        "many": (["many"], "1 of 2 containers"),
        "GUARANTEED own": (["own"], "1 of 2 containers"),
        "own burstable": ([], "0 of 2 containers"),
        "nothing": ([], "0 of 2 containers"),
    }


async def test_names_are_no_markup(node: Node) -> None:
    name = "<img src=x onerror=document.title=1>"
    container = msgspec.structs.replace(OWN.container, name=name)
    pod = await node.running.runtime.run_pod(OWN.pod)
    await node.running.runtime.create_container(pod.id, container)
    for place in ("#containers", "#picture", "#events"):
        await node.shown(name, place)

    assert await node.run("return document.querySelectorAll('main img').length") == 0


async def test_four_hundred_containers_are_shown(node: Node) -> None:
    for number in range(400):
        await node.running.place(Workload(f"w{number}", QosClass.BURSTABLE, 50))
    await node.shown("400 containers", "#found")

    assert len(await node.rows("containers")) == 400
    await node.shown("default/w399/w399", "#picture")


async def test_a_daemon_that_ends_is_reported_until_another_answers(
    tmp_path: Path, window: Browser
) -> None:
    port = free_port()
    for name in ("before", "after"):
        folder = tmp_path / name
        folder.mkdir()
        async with daemon(folder, MACHINE, *flags(folder, port)) as running:
            await running.line("http.listening")
            found = Node(running, window, folder)
            if name == "before":
                url = f"http://127.0.0.1:{port}/"
                await asyncio.to_thread(window.open, url)
            await found.shown("live", "#connection")
            await running.place(OWN if name == "before" else MANY)
            wanted = "own" if name == "before" else "many"
            await found.shown(f"default/{wanted}/{wanted}", "#containers")
        await found.shown("no answer", "#connection")
    await asyncio.to_thread(window.complaints)  # those of the connections that failed
