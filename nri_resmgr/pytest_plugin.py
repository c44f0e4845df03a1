"""Fixtures of pytest for tests of NRI plugins: a runtime, plugins at it, recordings.

pytest loads this module at each start in an environment that has nri-resmgr, whatever
it tests. So the module is no part of `nri_resmgr.testing`, with which all of the wire
is imported, and imports that only for a test that requests a fixture.
docs/testing-plugins.md, "Fixtures of pytest" shows their use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:  # most test runs have no plugin of NRI
    from nri_resmgr.testing import PluginRunner, Runtime, SessionReplayer

# In its strict mode pytest-asyncio takes no others.
try:
    from pytest_asyncio import fixture
except ImportError:
    fixture = pytest.fixture  # type: ignore[assignment]

# Plugins of pytest that run asynchronous fixtures: pytest-asyncio, as it is installed
# and as `-p` names it, and anyio.
_RUN_FIXTURES: Final = ("asyncio", "pytest_asyncio.plugin", "anyio")


@pytest.fixture
def _event_loop_plugin(request: pytest.FixtureRequest) -> None:
    """Fail where nothing runs the fixtures; pytest does not say what would."""
    if not any(map(request.config.pluginmanager.hasplugin, _RUN_FIXTURES)):
        pytest.fail(
            "the fixtures of nri-resmgr need pytest-asyncio: "
            "pip install pytest-asyncio",
            pytrace=False,
        )


@fixture
async def runtime(_event_loop_plugin: None, tmp_path: Path) -> AsyncIterator[Runtime]:
    """Start a test runtime, with its socket in the test's folder.

    A fixture `runtime` of your own, such as one of another NRI release, replaces it,
    also for `running_plugin`.
    """
    from nri_resmgr.testing import Runtime  # late: as above

    async with Runtime(tmp_path) as started:
        yield started


@fixture
async def running_plugin(runtime: Runtime) -> AsyncIterator[PluginRunner]:
    """Return a function that starts a plugin at the runtime.

    That is `await running_plugin(Hello(), config="...")`. The plugins end with the
    test, before the runtime does.
    """
    from nri_resmgr.testing import PluginRunner  # late: as above

    async with PluginRunner(runtime) as run:
        yield run


@pytest.fixture
def recording(
    _event_loop_plugin: None, request: pytest.FixtureRequest, tmp_path: Path
) -> SessionReplayer:
    """Return a function that replays a recorded session with a plugin.

    That is `await recording("session.jsonl", Hello())`, of a file beside the test.
    """
    from nri_resmgr.testing import SessionReplayer  # late: as above

    return SessionReplayer(tmp_path, request.path.parent)
