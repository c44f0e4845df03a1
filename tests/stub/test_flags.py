"""Flags of plugins: processes started as operators start them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime
from tests.stub.programs import program, run

pytestmark = pytest.mark.process

MIB = 1 << 20
GREETER = """
class Greeter:
    def configure(self, configuration):
        self.text = configuration.text

    def create_container(self, pod, container):
        return ContainerAdjustment().set_env("TEXT", self.text)
"""
IDLE = """
class Idle:
    def stop_container(self, pod, container): ...
"""
CALL = "serve(Greeter(), name='own', index='10', socket='/nowhere')\n"


async def started(
    path: Path,
    *flags: str,
    runtime: Runtime,
    identity: str,
    env: dict[str, str] | None = None,
) -> tuple[list[str], str]:
    """Run a program until it has seen a container; return its environment and log."""
    process = await asyncio.create_subprocess_exec(
        path,
        "--socket",
        str(runtime.socket_path),
        *flags,
        env=env or {},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            await runtime.synchronized(identity)
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())
    finally:
        process.terminate()
        stdout, stderr = await process.communicate()
    assert (process.returncode, stdout) == (0, b"")
    return [*created.container.env], stderr.decode()


async def test_flags_override_the_arguments_of_serve(tmp_path: Path) -> None:
    path = program(tmp_path / "greeter", GREETER + CALL)
    flags = ("--name", "other", "--index", "20")
    async with Runtime(tmp_path) as runtime:
        env, _ = await started(path, *flags, runtime=runtime, identity="20-other")

    assert env == ["TEXT="]


async def test_arguments_of_serve_hold_where_no_flag_is_given(tmp_path: Path) -> None:
    path = program(tmp_path / "greeter", GREETER + CALL)
    async with Runtime(tmp_path) as runtime:
        await started(path, runtime=runtime, identity="10-own")


async def test_the_identity_that_the_runtime_gives_overrides_flags(
    tmp_path: Path,
) -> None:
    path = program(tmp_path / "greeter", GREETER + CALL)
    given = {"NRI_PLUGIN_NAME": "launched", "NRI_PLUGIN_IDX": "42"}
    flags = ("--name", "other", "--index", "20")
    async with Runtime(tmp_path) as runtime:
        await started(path, *flags, runtime=runtime, identity="42-launched", env=given)


async def test_a_configuration_may_be_a_file(tmp_path: Path) -> None:
    path = program(tmp_path / "greeter", GREETER + CALL)
    config = tmp_path / "greeter.conf"
    config.write_text("greeting: \u2713\n")
    async with Runtime(tmp_path) as runtime:
        env, _ = await started(
            path, "--config", str(config), runtime=runtime, identity="10-own"
        )

    assert env == ["TEXT=greeting: \u2713\n"]


@pytest.mark.parametrize(
    ("size", "end"),
    [
        pytest.param(4 * MIB, "cannot connect to the NRI socket", id="as large as a"),
        pytest.param(4 * MIB + 1, "larger than 4 MiB", id="larger than a message"),
    ],
)
def test_the_size_of_a_configuration_is_bounded(
    size: int, end: str, tmp_path: Path
) -> None:
    config = tmp_path / "large"
    with config.open("wb") as file:
        file.truncate(size)
    done = run(program(tmp_path / "g", GREETER + CALL), "--config", config)

    assert end in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("body", "flags", "sentence"),
    [
        pytest.param(
            GREETER + CALL,
            ["--config", "/no/where"],
            "--config /no/where: no such file or directory",
            id="a missing file",
        ),
        pytest.param(
            GREETER + CALL,
            ["--config", "/dev/zero"],
            "--config /dev/zero: larger than 4 MiB",
            id="an endless file",
        ),
        pytest.param(
            f"{IDLE}\nserve(Idle(), index='10')",
            ["--config", "/dev/null"],
            "unrecognized arguments: --config /dev/null",
            id="a file that nothing reads",
        ),
        pytest.param(
            f"{IDLE}\nserve(Idle(), index='10', flags=PluginFlags(config='/a'))",
            [],
            "--config /a: this plugin has no configuration",
            id="a file that nothing reads, by a parser of the program",
        ),
        pytest.param(
            GREETER + CALL,
            ["--dry-rum"],
            "unrecognized arguments: --dry-rum",
            id="no flag",
        ),
        pytest.param(
            GREETER + CALL, ["--dry"], "unrecognized arguments: --dry", id="half a flag"
        ),
        pytest.param(
            GREETER + CALL,
            ["--index", "7"],
            "plugin index '7': two digits are needed, 00 to 99",
            id="no index",
        ),
        pytest.param(
            GREETER + CALL,
            ["--name", ""],
            "plugin name '': only letters, digits and _.+- are allowed",
            id="no name",
        ),
    ],
)
def test_a_bad_flag_is_one_sentence(
    body: str, flags: list[str], sentence: str, tmp_path: Path
) -> None:
    path = program(tmp_path / "greeter", body)
    done = run(path, *flags)

    assert (done.returncode, done.stderr) == (2, f"{path}: {sentence}\n")


def test_a_configuration_that_is_not_utf_8_is_one_sentence(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_bytes(b"ab\xff")
    path = program(tmp_path / "greeter", GREETER + CALL)
    done = run(path, "--config", config)

    sentence = f"{path}: --config {config}: not UTF-8 at byte 2\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_a_level_that_does_not_exist_names_those_that_do(tmp_path: Path) -> None:
    done = run(program(tmp_path / "greeter", GREETER + CALL), "--log-level", "loud")

    assert done.returncode == 2
    for word in ("loud", "debug", "info", "warning", "error"):
        assert word in done.stderr


def test_the_help_has_all_flags_and_the_programs_first_words(tmp_path: Path) -> None:
    path = program(tmp_path / "10-greeter.py", GREETER + CALL)
    shebang, _, body = path.read_text().partition("\n")
    path.write_text(f'{shebang}\n"""Greets pods."""\n{body}')
    done = run(path, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: 10-greeter ")
    assert "Greets pods." in done.stdout
    for name in ("name", "index", "socket", "config", "log-level", "dry-run"):
        assert f"--{name}" in done.stdout


SPEAKER = """
import structlog
log = structlog.get_logger("speaker")

class Speaker:
    def create_container(self, pod, container):
        log.debug("it.whispers")
        log.info("it.speaks")
        log.error("it.shouts")
"""
OWN_LOG = """
from nri_resmgr.log.output import LogFormat, configure_logging
configure_logging("error", LogFormat.JSON)
"""


@pytest.mark.parametrize(
    ("before", "flags", "events"),
    [
        pytest.param("", [], ["it.speaks", "it.shouts"], id="info by default"),
        pytest.param(
            "",
            ["--log-level", "debug"],
            ["it.whispers", "it.speaks", "it.shouts"],
            id="debug",
        ),
        pytest.param("", ["--log-level", "error"], ["it.shouts"], id="error"),
        pytest.param(OWN_LOG, [], ["it.shouts"], id="the program's own level"),
        pytest.param(
            OWN_LOG,
            ["--log-level", "info"],
            ["it.speaks", "it.shouts"],
            id="the operator's level, not the program's",
        ),
    ],
)
async def test_the_level_of_the_log_is_the_operators(
    before: str, flags: list[str], events: list[str], tmp_path: Path
) -> None:
    body = f"{before}{SPEAKER}\nserve(Speaker(), index='10')\n"
    path = program(tmp_path / "speaker", body)
    async with Runtime(tmp_path) as runtime:
        _, said = await started(path, *flags, runtime=runtime, identity="10-speaker")

    assert [word for word in said.replace('"', " ").split() if "it." in word] == events


OWN_FLAGS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--word")
add_flags(parser)
options = parser.parse_args()

class Greeter:
    def create_container(self, pod, container):
        return ContainerAdjustment().set_env("WORD", options.word)

serve(Greeter(), index="10", flags=PluginFlags.of(options))
"""


async def test_a_program_may_have_flags_of_its_own(tmp_path: Path) -> None:
    path = program(tmp_path / "greeter", OWN_FLAGS)
    flags = ("--word", "ahoy", "--index", "30")
    async with Runtime(tmp_path) as runtime:
        env, _ = await started(path, *flags, runtime=runtime, identity="30-greeter")

    assert env == ["WORD=ahoy"]
