"""A container that prepares its node has a real systemd restart the runtime."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from nri_resmgr.runtimes.containerd import MAIN
from tests.cli.command import ROOT, nri_resmgr
from tests.deploy.service_manager import ServiceManager, service_manager_with_bus
from tests.runtimes.containerd_files import STOCK_1_7

pytestmark = pytest.mark.process

UNIT: Final = "containerd.service"
ON: Final = STOCK_1_7.replace("disable = true", "disable = false")
# It notes the file of each start, and fails with NRI switched on while a file is there.
SERVICE: Final = """
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'grep -o "disable = .*" {main} >>{starts}; \
 ! test -e {broken} || ! grep -q "disable = false" {main}'
"""
Done = subprocess.CompletedProcess[str]


@attrs.frozen(eq=False)
class Node:
    """A host's root with a runtime of 1.7 that systemd has started."""

    root: Path
    manager: ServiceManager

    @property
    def main(self) -> Path:
        """The runtime's file."""
        return self.root / MAIN.lstrip("/")

    @property
    def broken(self) -> Path:
        """While it exists, the runtime does not start with NRI."""
        return self.root / "broken"

    def starts(self) -> list[str]:
        """Whether NRI was switched off at each start."""
        text = (self.root / "starts").read_text()
        return [line.removeprefix("disable = ") for line in text.splitlines()]

    def state(self) -> str:
        return self.manager.show(UNIT, "ActiveState")

    def call(self, *words: str, **env: str) -> Done:
        given = ("--host-root", str(self.root), "--containerd", "--restart", *words)
        return nri_resmgr("enable-runtime", *given, env=env)

    def files(self) -> dict[str, str]:
        return {one.name: one.read_text() for one in self.main.parent.iterdir()}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="module")
def manager(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceManager]:
    units, sockets = (tmp_path_factory.mktemp(name) for name in ("units", "nri"))
    paths = {name: root / name for name in ("starts", "broken")}
    text = SERVICE.format(main=root / MAIN.lstrip("/"), **paths)
    (units / UNIT).write_text(text)
    with service_manager_with_bus(units, sockets) as started:
        socket = root / "run/dbus/system_bus_socket"
        socket.parent.mkdir(parents=True)
        socket.symlink_to(started.bus_socket)
        yield started


@pytest.fixture
def node(root: Path, manager: ServiceManager) -> Node:
    made = Node(root, manager)
    manager.systemctl("stop", UNIT)
    made.main.parent.mkdir(parents=True, exist_ok=True)
    for left in made.main.parent.iterdir():
        left.unlink()
    made.main.write_text(STOCK_1_7)
    made.broken.unlink(missing_ok=True)
    (root / "starts").write_text("")
    done = manager.systemctl("start", UNIT)
    assert (done.returncode, made.starts()) == (0, ["true"])
    return made


def test_the_runtime_is_restarted_with_the_changed_files(node: Node) -> None:
    first, second = node.call(), node.call()

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.endswith("\nrestarted containerd\n")
    assert node.main.read_text() == ON
    # The second time there is nothing to restart for.
    assert second.stdout.endswith("\nnothing to do: NRI is enabled\n")
    assert (node.starts(), node.state()) == (["true", "false"], "active")


def test_an_undone_change_is_put_in_force_as_well(node: Node) -> None:
    node.call()
    done = node.call("--undo")

    assert (done.returncode, done.stderr) == (0, "")
    assert node.files() == {"config.toml": STOCK_1_7}
    assert node.starts() == ["true", "false", "true"]


def test_the_files_of_a_runtime_that_does_not_start_are_restored(node: Node) -> None:
    node.broken.touch()
    done = node.call()

    assert (done.returncode, done.stdout) == (1, "")
    assert "the files are as before, because containerd.service did not" in done.stderr
    assert "containerd.service is failed" in done.stderr
    assert node.files() == {"config.toml": STOCK_1_7}
    assert (node.starts(), node.state()) == (["true", "false", "true"], "active")


def test_a_runtime_that_systemd_does_not_run_is_left_alone(node: Node) -> None:
    node.manager.systemctl("stop", UNIT)
    done = node.call()

    assert done.returncode == 1
    assert "nothing was changed" in done.stderr
    assert "containerd.service is inactive" in done.stderr
    assert (node.files(), node.starts()) == ({"config.toml": STOCK_1_7}, ["true"])


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        pytest.param("DBUS_SYSTEM_BUS_ADDRESS", "cannot be reached", id="the bus"),
        pytest.param("PYTHONPATH", "install nri-resmgr[systemd]", id="the library"),
    ],
)
def test_missing_requirements_are_reported_before_a_change(
    missing: str, why: str, node: Node, tmp_path: Path
) -> None:
    (tmp_path / "jeepney.py").write_text("raise ImportError\n")
    values = {
        "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path / 'none'}",
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
    }
    done = node.call(**{missing: values[missing]})

    assert done.returncode == 1
    assert "nothing was changed" in done.stderr
    assert why in done.stderr
    assert (node.files(), node.starts()) == ({"config.toml": STOCK_1_7}, ["true"])
