"""``nri-resmgr inspect``, and the validator, beside a real containerd."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.install import shipped
from tests.real_host.binaries import NRI_0_10
from tests.real_host.connected import connected
from tests.real_host.containerd import Containerd
from tests.real_host.patience import patience, wait_until
from tests.real_host.pods import PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

LIMIT: Final = '{"type":"RLIMIT_NOFILE","hard":2000,"soft":1000}'


@contextmanager
def inspecting(daemon: Containerd, folder: Path) -> Iterator[Path]:
    """Run the command until the block ends; yield the file of its lines."""
    shown, log = folder / "shown", folder / "log"
    command = (sys.executable, "-m", "nri_resmgr", "inspect", "--nri-socket")
    with shown.open("wb") as output, log.open("wb") as said:
        process = subprocess.Popen(
            (*command, str(daemon.layout.nri_socket)), stdout=output, stderr=said
        )
    try:
        wait_until(
            lambda: log.read_text().count("session.synchronized") == 2,
            f"both sessions to be synchronized (see {log})",
        )
        yield shown
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(patience(10))
    assert status == 0


def test_what_another_plugin_changes_is_shown(
    containerd: Containerd, tmp_path: Path
) -> None:
    limits = "[{type: nofile, soft: 1000, hard: 2000}]"
    spec = PodSpec(
        "web", annotations={"ulimits.noderesource.dev/container.app": limits}
    )
    with (
        connected(containerd, "ulimit-adjuster", tmp_path / "other"),
        inspecting(containerd, tmp_path) as shown,
    ):
        pod = containerd.run_pod(spec)
        pod.start("log", Resources.guaranteed(0.1))
        pod.start("app", Resources.guaranteed(0.1)).update(Resources.guaranteed(0.2))

    lines = [line.partition("Z  ")[2] for line in shown.read_text().splitlines()]
    assert [line.split("  ")[:3] for line in lines] == [
        ["CreateContainer", "default/web/log", "unchanged"],
        ["CreateContainer", "default/web/app", f"rlimits +{LIMIT}"],
        ["UpdateContainer", "default/web/app", "unchanged"],
    ]


def test_a_validator_ends_where_the_runtime_does_not_validate(
    containerd: Containerd,
) -> None:
    if containerd.release >= NRI_0_10:
        pytest.skip("containerd validates since 2.2")
    socket = str(containerd.layout.nri_socket)
    command = (sys.executable, str(shipped("plugins") / "validator"))

    done = subprocess.run(
        (*command, "--socket", socket),
        capture_output=True,
        text=True,
        timeout=patience(30),
        check=False,
    )

    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "knows none of the events" in done.stderr.splitlines()[-1]
