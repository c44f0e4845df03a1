"""A real containerd reads what `enable-runtime` wrote, and plugins register."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import nri_resmgr
from tests.real_host.binaries import NRI_0_10, Binaries
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Options, config_text
from tests.real_host.plugin_process import PluginProcess

pytestmark = pytest.mark.containerd

MAIN = "etc/containerd/config.toml"
NRI = "io.containerd.nri.v1.nri"


class Node(Containerd):
    """A containerd with the configuration that it prints itself, NRI switched off.

    What keeps it apart from the machine's own is in a file that it imports.
    """

    def __init__(self, programs: Binaries, root: Path) -> None:
        super().__init__(programs, root / "cd")
        self.root = root
        self.main = root / MAIN
        self.program = programs.containerd
        self.layout.create()
        self.main.parent.mkdir(parents=True)
        own = config_text(self.layout, self.release, Options())
        tables = [
            t for t in re.split(r"^(?=\[)", own, flags=re.MULTILINE) if NRI not in t
        ]
        (self.main.parent / "own.toml").write_text("".join(tables))
        self.main.write_text(self.stock())
        assert self.nri()["disable"] is True

    def stock(self) -> str:
        """What containerd prints, with folders of ours."""
        text = subprocess.run(
            [self.program, "config", "default"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for old, new in (
            ("/var/run/nri/nri.sock", self.layout.nri_socket),
            ("/opt/nri/plugins", self.layout.plugins),
            ("/etc/nri/conf.d", self.layout.conf_d),
        ):
            text = text.replace(old, str(new))
        head, sign, rest = text.partition(NRI)
        head = re.sub(
            r"^imports = .*$", "imports = ['own.toml']", head, flags=re.MULTILINE
        )
        return head + sign + rest.replace("disable = false", "disable = true", 1)

    def enable(self, *words: str) -> None:
        words = ("--containerd", "--host-root", str(self.root), *words)
        done = nri_resmgr("enable-runtime", *words)
        assert (done.returncode, done.stderr) == (0, "")

    def nri(self) -> dict[str, Any]:
        """The table that containerd makes of all files."""
        printed = subprocess.run(
            [self.program, "--config", self.main, "config", "dump"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        table: dict[str, Any] = tomllib.loads(printed)["plugins"][NRI]
        return table

    def _write_config(self) -> Path:
        return self.main


@pytest.fixture
def node(programs: Binaries, tmp_path: Path) -> Iterator[Node]:
    made = Node(programs, tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_plugins_register_with_the_stock_configuration(
    node: Node, tmp_path: Path
) -> None:
    before = node.nri()
    node.enable("--registration-timeout", "31s", "--request-timeout", "21s")
    # It waits until NRI is served.
    node.start()
    with PluginProcess.resource_policy(node.layout.nri_socket, tmp_path / "log") as p:
        configured = p.events("session.synchronized")

    assert len(configured) == 1
    assert node.nri() == before | {
        "disable": False,
        "plugin_registration_timeout": "31s",
        "plugin_request_timeout": "21s",
    }


def test_undo_restores_the_configuration(node: Node) -> None:
    stock, before = node.main.read_bytes(), node.nri()
    node.enable()
    during = node.nri()
    node.enable("--undo")

    assert during == before | {"disable": False}
    assert node.main.read_bytes() == stock
    assert node.nri() == before


def test_a_drop_in_is_read(node: Node) -> None:
    version = 3 if node.release >= (2, 0) else 2
    folder = node.root / "drop-ins"
    node.main.write_text(
        f"version = {version}\nimports = ['own.toml', '{folder}/*.toml']\n"
    )
    node.enable("--request-timeout", "7s")
    # Below the host's root is the path that the file names; containerd has no root.
    (written,) = (node.root / str(folder).lstrip("/")).iterdir()
    folder.mkdir()
    written.rename(folder / written.name)
    found = node.nri()

    assert (found["disable"], found["plugin_request_timeout"]) == (False, "7s")
    assert found["plugin_registration_timeout"] == "5s"


def test_a_required_plugin_is_read_where_there_is_a_validator(node: Node) -> None:
    before = node.nri()
    node.enable("--require-plugin", "missing")
    found = node.nri()
    if node.release >= NRI_0_10:
        assert found["default_validator"]["required_plugins"] == ["missing"]
        return
    assert found == before | {"disable": False}
    node.start()
    # The only sign that it is ignored; 1.7 has none.
    sign = "key=default_validator plugin=io.containerd.nri.v1.nri"
    assert (sign in node.log_text()) == (node.release >= (2, 0))
