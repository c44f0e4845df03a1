"""The control socket is root's and our own; a stale one is replaced, a live one not."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nri_resmgr.control.client import AccessDenied, Client, NoDaemon, QueryRefused
from nri_resmgr.control.listener import ControlSocketUnusable, control_socket
from nri_resmgr.host.trust import UntrustedState
from tests.control.daemon_parts import ask, asking, make_parts, skip_unless_root

ROOT = Path(__file__).parents[2]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o077])
def test_only_its_owner_may_use_the_socket(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "run" / "control.sock"
    before = os.umask(umask)
    try:
        with control_socket(str(path)):
            modes = mode_of(path), mode_of(path.parent)
    finally:
        os.umask(before)

    assert modes == (0o600, 0o700)
    assert not path.exists()


def test_the_socket_of_a_killed_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with control_socket(str(path)), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "control.sock")
    with control_socket(path):
        with (
            pytest.raises(ControlSocketUnusable, match="another process listens"),
            control_socket(path),
        ):
            pass
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)


def test_a_socket_with_a_full_queue_is_in_use(tmp_path: Path) -> None:
    path = str(tmp_path / "control.sock")
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as one:
        busy.bind(path)
        busy.listen(0)
        one.connect(path)
        with (
            pytest.raises(ControlSocketUnusable, match="another process listens"),
            control_socket(path),
        ):
            pass


def test_a_file_at_the_path_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    path.write_text("mine")
    with (
        pytest.raises(ControlSocketUnusable, match="is not a socket"),
        control_socket(str(path)),
    ):
        pass

    assert path.read_text() == "mine"


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with (
        pytest.raises(UntrustedState, match="can be written by others"),
        control_socket(str(folder / "control.sock")),
    ):
        pass


@pytest.mark.parametrize("name", ["x" * 200, "file/control.sock"])
def test_an_impossible_path_is_reported_in_a_sentence(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ControlSocketUnusable, match="choose another --control-socket"),
        control_socket(str(tmp_path / name)),
    ):
        pass


def test_a_file_that_replaced_the_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with control_socket(str(path)):
        path.unlink()
        path.touch()

    assert path.exists()


def test_a_missing_daemon_is_reported_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with pytest.raises(NoDaemon, match="no daemon listens on"):
        Client(str(path)).get("/v1/state")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(NoDaemon):
        Client(str(path)).get("/v1/state")


# Imported before: an unprivileged user may not read Python's folder.
AS_NOBODY = """
import os, sys
from nri_resmgr.control.client import Client
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Client(sys.argv[1]).get("/v1/state")
except Exception as error:
    print(type(error).__name__, error)
"""


def without_requests(path: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, path],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.process
async def test_permissions_keep_other_users_out(tmp_path: Path) -> None:
    skip_unless_root()
    async with asking(make_parts(), tmp_path):
        path = str(tmp_path / "run" / "control.sock")
        said = await asyncio.to_thread(without_requests, path)

    assert said == f"{AccessDenied.__name__} {AccessDenied(path)}\n"


@pytest.mark.process
async def test_other_users_are_rejected_even_where_permissions_let_them_connect(
    tmp_path: Path,
) -> None:
    skip_unless_root()
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # below no private folder
        folder = Path(name)
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - others shall get as far as the socket
        async with asking(make_parts(), folder) as client:
            (folder / "run").chmod(0o755)
            (folder / "run" / "control.sock").chmod(0o666)
            path = str(folder / "run" / "control.sock")
            said = await asyncio.to_thread(without_requests, path)
            state = await ask(client, "/v1/state")

    assert said == f"{QueryRefused.__name__} user 65534 has no access; only root has\n"
    assert state["kind"] == "State"
