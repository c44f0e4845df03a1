"""Which runtime a node has: what runs, then sockets, then units."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.cli.enable_runtime.discovery import (
    FoundRuntime,
    NoRuntime,
    TwoRuntimes,
    find_runtime,
    is_nri_on,
)
from nri_resmgr.host.tree import HostTree

WANTS = "etc/systemd/system/multi-user.target.wants"


class Host:
    """A folder that looks like a node."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = HostTree(root)
        (root / "proc").mkdir()

    def run(self, pid: int, name: str, *words: str, space: str = "4026531836") -> None:
        folder = self.root / "proc" / str(pid)
        (folder / "ns").mkdir(parents=True)
        (folder / "ns/pid").symlink_to(f"pid:[{space}]")
        (folder / "comm").write_text(f"{name}\n")
        command = "".join(f"{word}\0" for word in (f"/usr/bin/{name}", *words))
        (folder / "cmdline").write_text(command)

    def touch(self, path: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).touch()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.run(1, "systemd")
    return made


def test_a_running_process_takes_precedence(host: Host) -> None:
    host.run(70, "crio", "--config-dir", "/etc/x")
    host.touch("run/containerd/containerd.sock")

    assert find_runtime(host.tree, None) == FoundRuntime(
        "crio", "process 70", ("--config-dir", "/etc/x")
    )


def test_a_socket_goes_before_a_unit(host: Host) -> None:
    host.touch("run/containerd/containerd.sock")
    host.touch(f"{WANTS}/crio.service")

    assert find_runtime(host.tree, None) == FoundRuntime(
        "containerd", "socket /run/containerd/containerd.sock"
    )


def test_an_enabled_unit_is_better_than_nothing(host: Host) -> None:
    (host.root / WANTS).mkdir(parents=True)
    # Absolute, so that it leads nowhere below a host root.
    unit = host.root / WANTS / "crio.service"
    unit.symlink_to("/usr/lib/systemd/system/crio.service")

    assert find_runtime(host.tree, None).why == f"unit /{WANTS}/crio.service"


def test_a_host_without_a_runtime_is_an_error(host: Host) -> None:
    with pytest.raises(NoRuntime):
        find_runtime(host.tree, None)


def test_two_runtimes_are_an_error_unless_the_user_names_one(host: Host) -> None:
    host.run(70, "crio", "-c", "/a")
    host.run(71, "containerd")
    with pytest.raises(TwoRuntimes) as refusal:
        find_runtime(host.tree, None)

    assert str(refusal.value) == (
        "both runtimes are here: containerd (process 71) and CRI-O (process 70); "
        "say which one the kubelet uses: --containerd or --crio"
    )
    assert find_runtime(host.tree, "crio") == FoundRuntime(
        "crio", "named on the command line", ("-c", "/a")
    )


@pytest.mark.parametrize(
    ("words", "space"),
    [
        pytest.param(
            ("--config", "/var/run/docker/containerd/containerd.toml"),
            "4026531836",
            id="that of dockerd",
        ),
        pytest.param((), "4026532999", id="one in a container, such as of kind"),
    ],
)
def test_a_containerd_that_no_kubelet_of_this_node_talks_to(
    words: tuple[str, ...], space: str, host: Host
) -> None:
    host.run(71, "containerd", *words, space=space)
    with pytest.raises(NoRuntime):
        find_runtime(host.tree, None)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ((), ""),
        (("--config", "/a"), "/a"),
        (("-l", "debug", "--config=/a"), "/a"),
        (("-c", "/a", "--config", "/b"), "/a"),
        (("--config-dir", "/a"), ""),
        (("--config",), ""),
    ],
)
def test_a_flag_as_go_takes_it(words: tuple[str, ...], value: str) -> None:
    assert FoundRuntime("crio", "", words).flag("-c", "--config") == value


@pytest.mark.parametrize(
    ("row", "is_on"),
    [
        ("00000002 00000000 00010000 0001 01 4242 /var/run/nri/nri.sock", True),
        ("00000002 00000000 00010000 0001 01 4242 /run/nri/nri.sock", True),
        ("00000003 00000000 00000000 0001 03 4243 /run/nri/nri.sock", False),
        ("00000002 00000000 00010000 0001 01 4242 /run/other.sock", False),
    ],
)
def test_nri_is_on_where_another_listens(row: str, *, is_on: bool, host: Host) -> None:
    net = host.root / "proc/1/net"
    net.mkdir()
    (net / "unix").write_text(
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        f"0000000000000000: {row}\n"
    )

    assert is_nri_on(host.tree) is is_on


def test_nothing_is_known_of_a_host_without_proc(tmp_path: Path) -> None:
    assert not is_nri_on(HostTree(tmp_path))
