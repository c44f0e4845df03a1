"""One boot of the emulated machine: tests go in, what became of them comes out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import attrs

from tests.qemu.clock import kernel_arguments
from tests.qemu.image import Image, compile_project, write_ext4
from tests.qemu.layout import ISOLATED, qemu_arguments
from tests.qemu.report import Report, read_report
from tests.real_host.binaries import SEARCH_PATH

_CHECKOUT = Path(__file__).parents[2]
_PROJECT = (
    *("nri_proto", "nri_resmgr", "plugins", "conf.d", "deploy", "tests"),
    *("pyproject.toml",),
)
# An Intel CPU, because Linux asks AMD's for dies in a way that QEMU does not answer.
# cx16 off: QEMU 7.2 loses the flags of an interrupted cmpxchg16b, and the guest dies
# of a double fault. la57 off: page walks of four levels instead of five.
# level: one leaf more than dies need. QEMU answers a leaf above the last one with the
# last one, as Intel's CPUs do, whatever subleaf is in ECX. With dies that is 0x1f, of
# which QEMU 10 asserts that there are few subleaves, and the kernel asks for others as
# it starts. Leaf 0x20 is empty.
# erms, fsrm off: QEMU makes "rep movsb" byte by byte, and the kernel would clear and
# copy pages by it. Eight bytes at a time, an interpreter starts in two thirds of the
# time.
_CPU = (
    "max,vendor=GenuineIntel,family=6,model=85,stepping=4,level=0x20,"
    "-cx16,-la57,-erms,-fsrm"
)
_KERNEL_ARGUMENTS = (
    *("console=ttyS0", "rdinit=/init", "panic=-1", "loglevel=4", "nokaslr"),
    # A library that is at the same address in each process is translated once.
    "norandmaps",
    # Reading the TSC stays inside the emulated CPU; the HPET is a device.
    *("tsc=reliable", "clocksource=tsc", "no_timer_check", "lpj=10000000"),
    # What protects or watches a real machine only delays an emulated one.
    *("mitigations=off", "init_on_alloc=0", "hardened_usercopy=off", "nowatchdog"),
    *("audit=0", "apparmor=0"),
    # A move of memory has taken minutes here. If it does not end, what the kernel waits
    # for is on the console, and the machine is booted again.
    *("hung_task_panic=1", "sysctl.kernel.hung_task_timeout_secs=300"),
    # Containers come and go by RCU grace periods: mounts, namespaces, cgroups.
    "rcupdate.rcu_expedited=1",
    # Tests read where memory is; the kernel must not move it behind their back.
    "numa_balancing=disable",
)


@attrs.frozen
class Machine:
    """What is booted.

    Attributes:
        hardware: QEMU's arguments for processors and memory.
        kernel: Arguments beside those of every guest.
        init: File of ``guest/`` that is process 1.
    """

    hardware: tuple[str, ...]
    kernel: tuple[str, ...]
    init: str


MANY_NODES = Machine(tuple(qemu_arguments()), (f"isolcpus={ISOLATED}",), "init")

# Few CPUs: all of them take turns on one thread of the host.
SYSTEMD = Machine(
    ("-smp", "4", "-m", "2G"),
    (
        # Debian's own default is a graphical one, with services that we lack.
        "systemd.unit=multi-user.target",
        "systemd.show_status=no",
        # It has no policy, and systemd would look for one.
        "selinux=0",
        # An emulated CPU beside other work can need more than the usual 90 s.
        "systemd.default_timeout_start_sec=900",
    ),
    "boot",
)

# For measurements by hand: its clock counts instructions, 2 ns each, and skips idle
# time, so that other work on this machine does not matter.
TWO_CPUS = Machine(
    ("-smp", "2", "-m", "4G", "-icount", "shift=1,sleep=off"), (), "init"
)


@attrs.frozen
class Run:
    """How a boot went.

    Attributes:
        report: What the guest reported; complete only if pytest came to its end.
        ended: How the machine ended, in words.
        console: All that it printed.
    """

    report: Report
    ended: str
    console: str

    @property
    def panicked(self) -> bool:
        """Whether the guest's kernel gave up."""
        return "Kernel panic" in self.console


def run_guest(
    image: Image,
    machine: Machine,
    pytest_arguments: tuple[str, ...],
    folder: Path,
    seconds: float,
) -> Run:
    """Boot, run pytest over this checkout in the guest, power off.

    Args:
        image: The disks; they stay as they are.
        machine: What they are booted on, and how.
        pytest_arguments: Paths in the checkout, and options.
        folder: Made, or emptied; gets the second disk, ``console.log`` and
            ``progress``; both can be watched as they grow.
        seconds: How long the guest may take in all.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    project = _write_project(image, folder, "guest-arguments", pytest_arguments)
    console, progress = folder / "console.log", folder / "progress"
    console.touch()
    progress.touch()
    argv = [
        # Whoever kills the tests kills the guest too.
        *("setpriv", "--pdeathsig", "KILL"),
        *_qemu(image, machine, project),
        *("-serial", f"file:{console}", "-serial", f"file:{progress}"),
    ]
    ended = _ended(argv, seconds)
    project.unlink()
    report = read_report(progress.read_text())
    return Run(report, ended, console.read_text(errors="replace"))


def run_program(
    image: Image, machine: Machine, program: tuple[str, ...], folder: Path
) -> int:
    """Boot, run a module of this checkout in the guest, power off.

    The console is this terminal. Return QEMU's exit status.

    Args:
        image: The disks; they stay as they are.
        machine: What they are booted on, and how.
        program: The module and its arguments.
        folder: Gets the second disk.
    """
    project = _write_project(image, folder, "guest-program", program)
    argv = [*("setpriv", "--pdeathsig", "KILL"), *_qemu(image, machine, project)]
    argv += ["-serial", "stdio", "-serial", "null"]
    environment = os.environ | {"PATH": SEARCH_PATH}
    return subprocess.run(argv, check=False, env=environment).returncode


def _ended(argv: list[str], seconds: float) -> str:
    try:
        done = subprocess.run(
            argv,
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=os.environ | {"PATH": SEARCH_PATH},
        )
    except subprocess.TimeoutExpired:
        return f"killed after {seconds:g} s"
    return f"QEMU exited with {done.returncode} {done.stderr.strip()}"


def _qemu(image: Image, machine: Machine, project: Path) -> list[str]:
    argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot"]
    argv += ["-display", "none", "-machine", "q35", "-cpu", _CPU]
    # Never KVM: where it exists it may not work. Never one thread per CPU: another
    # CPU can then run code that the kernel has just patched (static keys), which ends
    # in an int3 Oops once in a few boots; and with two cores it is no faster.
    argv += ["-accel", "tcg,thread=single", *machine.hardware]
    argv += ["-kernel", str(image.kernel), "-initrd", str(image.initramfs)]
    words = (*_KERNEL_ARGUMENTS, *machine.kernel, f"guest={machine.init}")
    # A clock that counts instructions is QEMU's own.
    clock = () if "-icount" in machine.hardware else kernel_arguments()
    argv += ["-append", " ".join((*words, *clock))]
    for disk in (image.root, project):
        # Writes go to a file that ends with QEMU, so runs can share the image.
        argv += ["-drive", f"file={disk},format=raw,if=virtio,snapshot=on"]
    return argv


def _write_project(
    image: Image, folder: Path, file: str, lines: tuple[str, ...]
) -> Path:
    """Write this checkout, and a file for the guest's first process, to a disk."""
    tree, disk = folder / "project", folder / "project.ext4"
    tree.mkdir()
    for name in _PROJECT:
        source = _CHECKOUT / name
        if source.is_dir():
            shutil.copytree(
                source, tree / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy2(source, tree)
    compile_project(image, tree)
    (tree / file).write_text("\n".join(lines))
    write_ext4(disk, tree, "256M")
    shutil.rmtree(tree)
    return disk
