"""The end of the process comes after what is still to be noted of decisions."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from nri_proto import nri_pb2 as pb
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.topology.synthetic import parse_spec
from tests.benchmarks.workload import container_of, pod_of
from tests.real_host.runs import own_variables
from tests.soak.peer import Peer

pytestmark = pytest.mark.process

# Most of them do not fit, so each has a line in the log.
CONTAINERS: Final = 1500
MACHINE: Final = parse_spec("1s8c1t")


def test_a_line_for_each_container_that_fell_back(tmp_path: Path) -> None:
    write_tree(sysfs_files(MACHINE), tmp_path / "host")
    peer, log = Peer(tmp_path / "nri.sock"), tmp_path / "log"
    flags = {"nri-socket": tmp_path / "nri.sock", "host-root": tmp_path / "host"}
    flags |= {"log-to": log, "run-dir": tmp_path / "run"}
    words = [f"--{name}={path}" for name, path in flags.items()]
    request = pb.SynchronizeRequest(
        pods=[pod_of(number) for number in range(CONTAINERS)],
        containers=[container_of(number, MACHINE) for number in range(CONTAINERS)],
    )
    process = subprocess.Popen(
        (sys.executable, "-m", "nri_resmgr", "run", "--log-format=json", *words),
        env={"PYTHONPATH": str(Path(__file__).parents[2]), **own_variables()},
    )
    try:
        peer.accept()
        assert not peer.call("Synchronize", request).why
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        peer.close()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (node,) = (one for one in lines if one["event"] == "node.synchronized")
    fell_back = [one for one in lines if one["event"] == "container.fell-back"]

    assert node["rules"]["fell-back"] == len(fell_back)
    assert len(fell_back) > CONTAINERS / 4
