"""A CA of the tests, made once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nri_resmgr.agent.api import Access
from nri_resmgr.agent.api.credentials import Source
from tests.agent.authority import Authority
from tests.agent.fake_api_server import FakeApiServer


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer(authority.server()) as server:
        yield server


@pytest.fixture
def access(server: FakeApiServer, authority: Authority, tmp_path: Path) -> Access:
    """Access as in a pod, by files."""
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_bytes(authority.ca.read_bytes())
    return Access(
        server=server.url,
        ca=Source(path=tmp_path / "ca.crt"),
        token=Source(path=tmp_path / "token"),
    )
