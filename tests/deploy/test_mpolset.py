"""The program mpolset, built as `make mpolset` does, and run."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.process

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "deploy" / "mpolset" / "build.sh"
# The machine of the tests need not have other nodes.
BIND: Final = ("--mode", "MPOL_BIND", "--nodes", "0", "--")

# As a C program would: get_mempolicy(2) of this process, by the number on this machine.
_NUMBERS: Final = {"x86_64": 239, "aarch64": 236, "riscv64": 236, "ppc64le": 260}
ASK: Final = f"""
import ctypes
mode, mask = ctypes.c_int(-1), (ctypes.c_ulong * 16)()
call = ctypes.CDLL(None, use_errno=True).syscall
failed = call({_NUMBERS.get(os.uname().machine)}, ctypes.byref(mode), mask, 1025, 0, 0)
print(failed, mode.value & 0xffffffff, mask[0])
"""

needs_numa = pytest.mark.skipif(
    not Path("/proc/self/numa_maps").exists()
    or os.uname().machine not in _NUMBERS
    or ctypes.sizeof(ctypes.c_ulong) != 8,
    reason="the kernel of this machine has no memory policies",
)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    path = tmp_path_factory.mktemp("mpolset") / "mpolset"
    subprocess.run([BUILD, path], check=True)
    return path


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (str(program), *words)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_program_is_statically_linked(program: Path) -> None:
    # PT_INTERP is what asks for a dynamic loader.
    found = subprocess.run(
        ("readelf", "--program-headers", program),
        capture_output=True,
        text=True,
        check=True,
    )

    assert "LOAD" in found.stdout
    assert "INTERP" not in found.stdout


def test_two_builds_are_equal(program: Path, tmp_path: Path) -> None:
    subprocess.run([BUILD, tmp_path / "other"], check=True)

    assert (tmp_path / "other").read_bytes() == program.read_bytes()


@needs_numa
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(("--mode", "MPOL_DEFAULT"), "0 0 0", id="default"),
        pytest.param(
            ("--mode", "MPOL_PREFERRED", "--nodes", "0"), "0 1 1", id="preferred"
        ),
        pytest.param(("--mode", "MPOL_BIND", "--nodes", "0"), "0 2 1", id="bind"),
        pytest.param(
            ("--mode", "MPOL_INTERLEAVE", "--nodes", "0-0"), "0 3 1", id="interleave"
        ),
        pytest.param(("--mode", "MPOL_LOCAL"), "0 4 0", id="local"),
        pytest.param(
            (
                *("--mode", "MPOL_BIND", "--nodes", "0,0"),
                *("--flags", "MPOL_F_STATIC_NODES"),
            ),
            f"0 {2 | 1 << 15} 1",
            id="with a flag",
        ),
        pytest.param(
            (
                *("--mode", "MPOL_BIND", "--nodes", "0"),
                *("--flags", "MPOL_F_RELATIVE_NODES,MPOL_F_NUMA_BALANCING"),
            ),
            f"0 {2 | 1 << 14 | 1 << 13} 1",
            id="with two flags",
        ),
    ],
)
def test_the_command_has_the_policy(
    program: Path, words: tuple[str, ...], expected: str
) -> None:
    found = run(program, *words, "--", sys.executable, "-c", ASK)

    assert (found.stdout.strip(), found.stderr) == (expected, "")


@needs_numa
def test_children_of_the_command_have_it_too(program: Path) -> None:
    script = "head -n 1 /proc/self/numa_maps | cut -d' ' -f2; true"

    found = run(program, *BIND, "sh", "-c", script)

    assert found.stdout == "bind:0\n"


def test_arguments_and_environment_of_the_command_are_kept(program: Path) -> None:
    ask = "import os, sys; print(sys.argv[1:], os.environ['WORD'], os.getppid())"
    found = subprocess.run(
        (program, *BIND, sys.executable, "-c", ask, "--mode", "--", "a b", ""),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "WORD": "x y"},
    )

    # The command is the same process: its parent is this one.
    assert found.stdout == f"['--mode', '--', 'a b', ''] x y {os.getpid()}\n"


def test_the_command_is_found_by_the_path_of_its_environment(
    program: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "mine").chmod(0o755)

    found = subprocess.run(
        (program, *BIND, "mine"), env={"PATH": str(tmp_path)}, check=False
    )

    assert found.returncode == 7


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        pytest.param(
            (),
            125,
            "usage: mpolset --mode MODE [--nodes LIST] [--flags FLAG,...] -- COMMAND "
            "[ARGUMENT...]",
            id="nothing",
        ),
        pytest.param(BIND, 125, "no command after --", id="no command"),
        pytest.param(
            ("--mode", "MPOL_BIND", "sh"), 125, "unknown option 'sh'", id="no dashes"
        ),
        pytest.param(("--nodes",), 125, "--nodes needs a value", id="no value"),
        pytest.param(
            ("--mode", "BIND", "--", "sh"), 125, "unknown mode 'BIND'", id="no mode"
        ),
        pytest.param(
            ("--mode", "MPOL_LOCAL", "--flags", "MPOL_F_STATIC_NODES,x", "--", "sh"),
            125,
            "unknown flag 'x'",
            id="no flag",
        ),
        *(
            pytest.param(
                ("--mode", "MPOL_BIND", "--nodes", nodes, "--", "sh"),
                125,
                f"--nodes '{nodes}': expected {what}",
                id=f"nodes {nodes}",
            )
            for nodes, what in (
                ("1-0", "a list such as 0-1,4"),
                ("0,", "a list such as 0-1,4"),
                ("-1", "a list such as 0-1,4"),
                ("0 1", "a list such as 0-1,4"),
                ("1024", "nodes below 1024"),
                ("99999999999999999999", "nodes below 1024"),
            )
        ),
        pytest.param(
            (*BIND, "/no/such/command"),
            127,
            "cannot execute '/no/such/command': No such file or directory",
            id="a command that does not exist",
        ),
        pytest.param(
            (*BIND, "/etc/passwd"),
            126,
            "cannot execute '/etc/passwd': Permission denied",
            id="a command that is no program",
        ),
    ],
)
def test_mistakes_have_the_status_of_env(
    program: Path, words: tuple[str, ...], status: int, sentence: str
) -> None:
    found = run(program, *words)

    assert (found.returncode, found.stderr) == (status, f"mpolset: {sentence}\n")


@needs_numa
def test_a_policy_that_the_kernel_refuses_starts_nothing(program: Path) -> None:
    found = run(program, "--mode", "MPOL_BIND", "--nodes", "1023", "--", "echo", "x")

    assert (found.returncode, found.stdout) == (125, "")
    assert found.stderr == (
        "mpolset: cannot set MPOL_BIND on nodes '1023': Invalid argument\n"
    )


def test_signals_and_status_are_the_commands(program: Path) -> None:
    assert run(program, *BIND, "sh", "-c", "exit 42").returncode == 42

    with subprocess.Popen(
        (program, *BIND, "sh", "-c", "echo up; exec sleep 60"),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM
