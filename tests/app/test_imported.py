"""Modules that few nodes need are imported beside the requests."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from nri_resmgr.app.background.threads import imported


async def test_a_module_is_imported_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import threading\nthread = threading.get_ident()\n"
    (tmp_path / "few_nodes_need_it.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = await imported("few_nodes_need_it")

    assert module.thread != threading.get_ident()


async def test_a_missing_dependency_is_an_error_of_the_caller() -> None:
    with pytest.raises(ImportError, match="no_node_has_it"):
        await imported("no_node_has_it")
