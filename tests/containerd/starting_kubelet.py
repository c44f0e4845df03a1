"""A program like a kubelet: it starts one container after the other, while it runs.

``python -m tests.containerd.starting_kubelet SOCKET CGROUP_ROOT OUTPUT``. For each it
adds a line to OUTPUT, with the CPUs that the cgroup has right after the start.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from tests.real_host.cri import CriClient
from tests.real_host.pods import Pod, PodSpec
from tests.real_host.resources import Resources


def main(socket: str, cgroup_root: str, output: str) -> None:
    """Start containers of the runtime at a socket until the program is ended."""
    with CriClient(Path(socket)) as cri, Path(output).open("a") as lines:
        for number in itertools.count():
            # Those of the program before may be there still.
            spec = PodSpec(f"pod-{os.getpid()}-{number}")
            with Pod.run(cri, spec, cgroup_root) as pod:
                container = pod.start("main", Resources.guaranteed(1))
                print(container.cgroup.read("cpuset.cpus"), file=lines, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
