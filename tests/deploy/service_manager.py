"""A systemd that starts our unit as it is, beside whatever starts this machine's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.cli.flags import PREFIX
from tests.real_host.absent import give_up
from tests.real_host.cache import cache_root, locked
from tests.real_host.patience import TooSlow, patience, wait_until

_MANAGER: Final = next(
    (
        path
        for path in map(Path, ("/usr/lib/systemd/systemd", "/lib/systemd/systemd"))
        if path.exists()
    ),
    None,
)

# The folders that the unit writes to are empty ones, which nothing else sees. A manager
# of a user is a process like any other one, and root's can confine services all the
# same. It comes up only where it believes that systemd has started the machine.
_SCRIPT: Final = """
set -e
for folder in /run /var/lib /opt; do mount -t tmpfs -o mode=755 tmpfs $folder; done
mkdir -p /run/systemd/system /run/nri /opt/nri-resmgr/bin
mount --bind "$1" /run/nri
printf '#!/bin/sh\\nexec %s -m nri_resmgr "$@"\\n' "$2" > /opt/nri-resmgr/bin/nri-resmgr
chmod +x /opt/nri-resmgr/bin/nri-resmgr
exec "$3" --user --unit=basic.target
"""

# As Debian's dbus-user-session has them; the manager connects once the bus is there.
_BUS_SOCKET: Final = "[Socket]\nListenStream=%t/bus\n"
_BUS_COMMAND: Final = "dbus-daemon --session --address=systemd: --nofork --nopidfile"
_BUS_SERVICE: Final = f"""
[Unit]
Requires=dbus.socket
[Service]
Type=notify
ExecStart={_BUS_COMMAND} --systemd-activation
"""

# Python and the checkout may be below /home, /root or /tmp; installed, they are not.
_AS_CHECKED_OUT: Final = "[Service]\nProtectHome=read-only\nPrivateTmp=no\n"


@attrs.frozen(eq=False)
class ServiceManager:
    """A running manager, and the mounts that only its services see."""

    process: subprocess.Popen[bytes]
    environment: dict[str, str]

    @property
    def bus_socket(self) -> Path:
        """Of a bus on which it is."""
        return Path("/proc", str(self.process.pid), "root/run/bus")

    @property
    def notify_socket(self) -> Path:
        """Where services say that they are ready."""
        return Path("/proc", str(self.process.pid), "root/run/systemd/notify")

    @property
    def bus(self) -> str:
        """The same, as in DBUS_SYSTEM_BUS_ADDRESS."""
        return f"unix:path={self.bus_socket}"

    def systemctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``systemctl`` where the manager is, to its end."""
        return self.within("systemctl", "--user", *words)

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.systemctl("show", unit, "--value", "-p", name).stdout.strip()

    def within(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command that sees what services see but for their sandbox."""
        return subprocess.run(
            ["nsenter", "--mount", f"--target={self.process.pid}", *command],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=patience(30),
            check=False,
        )


@contextmanager
def service_manager(units: Path, sockets: Path) -> Iterator[ServiceManager]:
    """Run one; skip where that cannot be.

    Args:
        units: A folder of units.
        sockets: The folder that is ``/run/nri`` there.
    """
    if os.geteuid() != 0:
        give_up("only root may have mounts of its own")
    for program in ("unshare", "nsenter", "systemctl"):
        if _MANAGER is None or shutil.which(program) is None:
            give_up(f"systemd or {program} is not installed")
    # The unit's defaults count, not those of other tests.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
    environment = inherited | {
        "XDG_RUNTIME_DIR": "/run",
        "XDG_STATE_HOME": "/var/lib",
        "XDG_CONFIG_HOME": "/var/lib",  # the same for systemd before 254
        "SYSTEMD_UNIT_PATH": f"{units}:",
        "SYSTEMD_LOG_TARGET": "null",
    }
    command = ("unshare", "--mount", "sh", "-c", _SCRIPT, "sh")
    with _only_one():
        yield from _running(command, sockets, environment)


@contextmanager
def service_manager_with_bus(units: Path, sockets: Path) -> Iterator[ServiceManager]:
    """Run one that D-Bus reaches; the arguments are those of `service_manager`."""
    (units / "dbus.socket").write_text(_BUS_SOCKET)
    (units / "dbus.service").write_text(_BUS_SERVICE)
    with service_manager(units, sockets) as manager:
        done = manager.systemctl("start", "dbus.service")
        assert done.returncode == 0, done.stderr
        yield manager


@contextmanager
def _only_one() -> Iterator[None]:
    """Wait until no other worker has a manager.

    Two of them share the cgroups of their services, which have the same names: each
    ends those of the other one.
    """
    with locked(cache_root() / "manager"):
        yield


def _running(
    command: tuple[str, ...], sockets: Path, environment: dict[str, str]
) -> Iterator[ServiceManager]:
    process = subprocess.Popen(
        [*command, sockets, sys.executable, str(_MANAGER)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    manager = ServiceManager(process, environment)
    try:
        _wait_for(manager)
        # A service may have a user of its own; the machine's manager listens to all.
        manager.notify_socket.chmod(0o777)
        yield manager
    finally:
        process.terminate()
        process.wait(patience(30))


def install(unit: Path, units: Path, drop_ins: Sequence[Path]) -> None:
    """Put our unit into a folder of units, without a change.

    Args:
        unit: Its file.
        units: The folder.
        drop_ins: Files for the unit's own folder.
    """
    shutil.copy(unit, units)
    folder = units / f"{unit.name}.d"
    folder.mkdir()
    for drop_in in drop_ins:
        shutil.copy(drop_in, folder)
    (folder / "as-checked-out.conf").write_text(_AS_CHECKED_OUT)


def _wait_for(manager: ServiceManager) -> None:
    try:
        wait_until(
            lambda: manager.systemctl("is-active", "basic.target").returncode == 0,
            "a manager of services",
        )
    except TooSlow as reason:
        give_up(str(reason))
