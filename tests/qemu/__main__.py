"""``python -m tests.qemu MODULE [ARGUMENT ...]``: run a module in an emulated machine.

It has two CPUs, cgroup v2 and containerd, and prints on this terminal. Its clock counts
instructions, so other work on this machine does not matter. Compare figures of one boot
only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.qemu.image import guest_image
from tests.qemu.machine import TWO_CPUS, run_program
from tests.qemu.tools import require_tools
from tests.real_host.debian import Suite


def main() -> int:
    """Boot, run the module, power off."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.qemu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("module", help="such as tests.benchmarks.cri")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    require_tools()
    image = guest_image(Suite.of("trixie"))
    with tempfile.TemporaryDirectory(prefix="nri-guest-") as name:
        program = (options.module, *options.arguments)
        return run_program(image, TWO_CPUS, program, Path(name))


if __name__ == "__main__":
    sys.exit(main())
