"""Serve the API of tests until killed: ``python -m tests.agent FOLDER``.

The folder gets a CA, and a file ``kubeconfig`` as soon as it serves.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.agent.authority import Authority
from tests.agent.fake_api_server import FakeApiServer

_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{url}", certificate-authority: ca.crt}}}}]
users: [{{name: test, user: {{token: test}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
current-context: test
"""


async def _serve(folder: Path) -> None:
    async with FakeApiServer(Authority(folder).server()) as server:
        text = _KUBECONFIG.format(url=server.url)
        new = folder / "kubeconfig.new"
        new.write_text(text)
        new.rename(folder / "kubeconfig")
        await asyncio.Event().wait()


asyncio.run(_serve(Path(sys.argv[1])))
