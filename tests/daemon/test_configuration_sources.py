"""Which of several documents counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.background.supervisor import Part, Supervisor
from nri_resmgr.app.configuration.status import Document, DocumentSource
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.configuration_cache import CACHE_NAME, encode
from nri_resmgr.daemon.documents import BadConfigFile, TwoConfigFiles
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.policies import parse_config
from tests.daemon.documents import (
    BAD,
    UNFIT,
    begun,
    document,
    hand_over,
    reserved,
    status_of,
    write,
)

FILE, TEXT, CACHED, FALLBACK = document(1), document(2), document(3), document(4)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    found = StateDir.open(str(tmp_path / "state"))
    yield found
    found.close()


def cache(state: StateDir, text: str) -> None:
    state.write(CACHE_NAME, encode(Document(text, DocumentSource.RUNTIME)))


def given(folder: Path, said: dict[str, str], name: str) -> Path | None:
    return write(folder / f"{name}.yaml", said[name]) if name in said else None


def cached(state: StateDir) -> str | None:
    text = state.read(CACHE_NAME)
    return None if text is None else text.partition("\n")[2]


@pytest.mark.parametrize(
    ("said", "source", "cpu"),
    [
        pytest.param({}, "built-in", "default", id="nothing at all"),
        pytest.param(
            {"file": FILE, "text": TEXT, "cached": CACHED},
            *("file", "1"),
            id="the file shuts out all others",
        ),
        pytest.param({"file": FILE}, "file", "1", id="the file alone"),
        pytest.param(
            {"text": TEXT, "cached": CACHED, "fallback": FALLBACK},
            *("runtime", "2"),
            id="the runtime's goes before what is kept",
        ),
        pytest.param(
            {"cached": CACHED, "fallback": FALLBACK},
            *("runtime", "3"),
            id="the cached one goes before the fallback",
        ),
        pytest.param(
            {"fallback": FALLBACK}, "fallback-file", "4", id="the fallback alone"
        ),
        pytest.param(
            {"text": TEXT, "fallback": FALLBACK},
            *("runtime", "2"),
            id="the fallback counts until there is a text",
        ),
        pytest.param(
            {"text": BAD, "cached": CACHED, "fallback": FALLBACK},
            *("runtime", "3"),
            id="a bad text leaves the cached one",
        ),
        pytest.param(
            {"text": BAD, "fallback": FALLBACK},
            *("fallback-file", "4"),
            id="a bad text leaves the fallback",
        ),
        pytest.param(
            {"text": UNFIT}, "built-in", "default", id="a text that does not fit"
        ),
        pytest.param(
            {"cached": BAD, "fallback": FALLBACK},
            *("fallback-file", "4"),
            id="a bad cached one gives way to the fallback",
        ),
        pytest.param(
            {"cached": UNFIT}, "built-in", "default", id="a cached one does not fit"
        ),
        pytest.param(
            {"text": TEXT, "cached": BAD}, "runtime", "2", id="after a bad cached one"
        ),
        pytest.param(
            {"cached": CACHED, "fallback": BAD},
            *("runtime", "3"),
            id="a bad fallback that is not needed",
        ),
    ],
)
async def test_precedence(
    tmp_path: Path, state: StateDir, said: dict[str, str], source: str, cpu: str
) -> None:
    if "cached" in said:
        cache(state, said["cached"])
    configuration = begun(
        given(tmp_path, said, "file"), given(tmp_path, said, "fallback"), state
    )
    hand_over(configuration, said.get("text", ""))

    assert (status_of(configuration).source, reserved(configuration)) == (source, cpu)


def test_configuration_file_and_fallback_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(TwoConfigFiles):
        begun(tmp_path / "one.yaml", tmp_path / "other.yaml")


@pytest.mark.parametrize("text", [BAD, UNFIT, "a: [", document(1, "NoPolicy")])
@pytest.mark.parametrize("which", ["file", "fallback"])
def test_an_invalid_file_is_refused_with_its_path(
    tmp_path: Path, which: str, text: str
) -> None:
    path = write(tmp_path / "my.yaml", text)

    with pytest.raises(BadConfigFile, match=f"^{path}: "):
        begun(path) if which == "file" else begun(None, path)


def test_a_missing_fallback_is_refused_unless_a_document_is_cached(
    tmp_path: Path, state: StateDir
) -> None:
    with pytest.raises(UnreadableFile):
        begun(None, tmp_path / "none.yaml", state)
    cache(state, CACHED)

    assert reserved(begun(None, tmp_path / "none.yaml", state)) == "3"


async def caching(configuration: DaemonConfiguration) -> None:
    """Let documents be cached for a while."""
    task = asyncio.create_task(configuration.follow_cache())
    await asyncio.sleep(0.1)
    task.cancel()


async def test_the_last_accepted_document_is_used_at_the_next_start(
    state: StateDir,
) -> None:
    first = begun(state=state)
    hand_over(first, TEXT)
    hand_over(first, BAD)
    await caching(first)
    second = begun(state=state)
    status = status_of(second)

    assert (reserved(second), status.source, status.cached) == ("2", "runtime", True)
    hand_over(second, TEXT)
    assert (status_of(second).cached, status_of(second).generation) == (False, 1)


async def test_with_a_configuration_file_nothing_is_cached(
    tmp_path: Path, state: StateDir
) -> None:
    cache(state, CACHED)
    configuration = begun(write(tmp_path / "my.yaml", FILE), state=state)
    with capture_logs() as lines:
        hand_over(configuration, TEXT)
        hand_over(configuration, TEXT)
        await caching(configuration)

    assert cached(state) == CACHED
    assert [line["event"] for line in lines] == ["configuration.ignored"]


async def test_of_many_that_come_at_once_the_last_is_cached(state: StateDir) -> None:
    configuration = begun(state=state)
    for cpu in (1, 2, 3, 4, 5):
        hand_over(configuration, document(cpu))
    await caching(configuration)

    assert cached(state) == document(5)


@pytest.mark.parametrize(
    ("source", "said", "after"),
    [
        pytest.param(
            "launched", {}, ("default", None), id="its file is gone: the default"
        ),
        pytest.param(
            "launched",
            {"fallback": FALLBACK},
            ("4", None),
            id="its file is gone: the fallback",
        ),
        pytest.param(
            "launched",
            {"fallback": BAD},
            ("default", None),
            id="its file is gone, and the fallback is bad",
        ),
        pytest.param(
            "a service",
            {"fallback": FALLBACK},
            ("3", CACHED),
            id="a runtime has no text for a service: nothing changes",
        ),
    ],
)
async def test_a_blank_text(
    tmp_path: Path, state: StateDir, source: str, said: dict[str, str], after: object
) -> None:
    cache(state, CACHED)
    fallback = given(tmp_path, said, "fallback")
    configuration = begun(None, fallback, state, launched=source == "launched")
    hand_over(configuration, "\n")
    await caching(configuration)

    assert (reserved(configuration), cached(state)) == after
    error = status_of(configuration).error
    assert (error is not None) == (said == {"fallback": BAD})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(document(3), id="no head"),
        pytest.param("", id="empty"),
        pytest.param("\0" * 300, id="what a crash leaves of a file"),
        pytest.param("\udcff", id="not UTF-8"),
        pytest.param("# nri-resmgr cache 2: runtime 00000000\n", id="a newer version"),
        pytest.param("# nri-resmgr cache 1: moon 00000000\n", id="no such source"),
        pytest.param("# nri-resmgr cache 1: file 00000000\n", id="no cached source"),
        pytest.param(encode(Document(BAD, DocumentSource.RUNTIME)), id="a mistake"),
        pytest.param(
            encode(Document(UNFIT, DocumentSource.RUNTIME)), id="it does not fit"
        ),
    ],
)
def test_a_cache_that_cannot_be_used_is_set_aside(state: StateDir, text: str) -> None:
    state.write(CACHE_NAME, text)
    with capture_logs() as lines:
        configuration = begun(state=state)

    assert (reserved(configuration), state.read(CACHE_NAME)) == ("default", None)
    assert state.read(f"{CACHE_NAME}.bad-1") == text
    assert [line["event"] for line in lines] == ["configuration.cache-set-aside"]


def test_a_cache_cut_anywhere_is_never_taken(state: StateDir) -> None:
    whole = encode(Document(CACHED, DocumentSource.RUNTIME))
    for length in range(len(whole)):
        state.write(CACHE_NAME, whole[:length])

        assert reserved(begun(state=state)) == "default"


def test_a_document_that_cannot_be_cached_is_in_force(tmp_path: Path) -> None:
    state = StateDir.open(str(tmp_path / "state"))
    (tmp_path / "state" / f".{CACHE_NAME}.new").mkdir()

    async def play() -> str:
        configuration = begun(state=state)
        part = Part("configuration-cache", configuration.follow_cache, "")
        caching = asyncio.create_task(Supervisor().run([part]))
        for cpu in (1, 2, 3):
            hand_over(configuration, document(cpu))
            await asyncio.sleep(0.05)
        caching.cancel()
        return reserved(configuration)

    with capture_logs() as lines:
        assert asyncio.run(play()) == "3"
    events = [line["event"] for line in lines]
    assert events.count("part.failed") == 1


def test_a_repeated_text_replaces_a_configuration_set_directly() -> None:
    configuration = begun()
    hand_over(configuration, document(1))
    reconfigure(configuration.policy, parse_config(document(2)))
    hand_over(configuration, document(1))

    assert reserved(configuration) == "1"


async def test_the_cached_document_is_built_before_the_runtime_sends_it(
    state: StateDir,
) -> None:
    cache(state, document(3))
    started = begun(state=state, launched=True)
    built = started.policy.policy
    hand_over(started, document(3))
    after_same = started.policy.policy
    hand_over(started, document(4))

    await asyncio.sleep(0.2)  # what was accepted is cached after the reply
    assert after_same is built
    assert started.policy.policy is not built
    assert reserved(started) == "4"
