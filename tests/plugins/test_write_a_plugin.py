"""The authors' page: each of its programs is installed as it says and does its job."""

from __future__ import annotations

import asyncio
import re
import runpy
import sys
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.main import main
from nri_resmgr.stub import (
    HANDLER_NAMES,
    Container,
    ContainerAdjustment,
    Hook,
    Hooks,
    Plugin,
    Pod,
    Rlimit,
)
from nri_resmgr.stub.model import LinuxContainer, LinuxCpu, LinuxResources
from nri_resmgr.testing import (
    AdjustmentRejected,
    Runtime,
    RuntimeOptions,
    RuntimeRefusal,
    plugin_process,
    running_plugin,
)
from tests.plugins.programs import REPOSITORY
from tests.test_runtime.pytest_process import run_pytest

pytestmark = pytest.mark.process

PAGE = (REPOSITORY / "docs" / "write-a-plugin.md").read_text()
BLOCKS: Final = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PROGRAMS: Final = {
    text.partition("\n")[0].removeprefix("# "): text
    for kind, text in BLOCKS
    if kind == "python"
}
ASKING_FOR_512 = Container(
    linux=LinuxContainer(resources=LinuxResources(cpu=LinuxCpu(shares=512)))
)


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).write_text(PROGRAMS[name])


def install_as_documented(
    directory: Path, name: str, index: str = "", config: str = ""
) -> RuntimeOptions:
    """Run the page's install command for one of its programs."""
    write(directory, name)
    (directory / "config.yaml").write_text(config)
    plugins, configs = directory / "plugins", directory / "conf.d"
    (command,) = [text for kind, text in BLOCKS if kind == "sh"]
    words = command.replace("./hello.py", str(directory / name)).split()
    words += ["--index", index] if index else []
    words += ["--plugin-dir", str(plugins), "--config-dir", str(configs)]
    assert main([*words[1:], "--config", str(directory / "config.yaml")]) == 0
    return RuntimeOptions(
        plugin_folder=plugins,
        config_folder=configs,
        registration_timeout=20.0,  # a busy machine starts Python slowly
    )


def test_the_page_has_no_other_blocks() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "sh"}
    assert [*PROGRAMS] == [
        "hello.py",
        "greeter.py",
        "quiet.py",
        "ulimits.py",
        "sized.py",
        "numbered.py",
        "teams.py",
        "nohooks.py",
        "test_hello.py",
    ]


def test_the_table_has_all_handlers() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(HANDLER_NAMES)


async def test_hello_greets(tmp_path: Path) -> None:
    options = install_as_documented(tmp_path, "hello.py")
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(Pod(name="web"))
        created = await runtime.create_container(pod.id, Container())

    assert created.container.env == ("GREETING=hello web",)


async def test_hello_registers_under_the_name_of_its_installation(
    tmp_path: Path,
) -> None:
    options = install_as_documented(tmp_path, "hello.py", "20")  # its own is 10
    async with Runtime(tmp_path, options=options) as runtime:
        assert runtime.plugins == ("20-hello",)


@pytest.mark.parametrize(
    ("config", "greeting"),
    [
        pytest.param("", "hello", id="defaults"),
        pytest.param(
            "{greeting: ahoy, howOften: 2, case: upper}", "AHOY AHOY", id="all"
        ),
    ],
)
async def test_greeter_obeys_its_settings(
    tmp_path: Path, config: str, greeting: str
) -> None:
    options = install_as_documented(tmp_path, "greeter.py", config=config)
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

        assert runtime.plugins == ("10-greeter",)
        assert created.container.env == (f"GREETING={greeting}",)


@pytest.mark.parametrize("config", ["howOften: 20", "howOftn: 2"])
async def test_greeter_ends_with_the_sentence_of_the_page(
    tmp_path: Path, config: str
) -> None:
    options = install_as_documented(tmp_path, "greeter.py", config=config)
    async with Runtime(tmp_path, options=options) as runtime:
        assert runtime.plugins == ()
        (dropped,) = runtime.dropped

    sentences = re.findall(r"`(\$\.howOft[^`]*)`", PAGE.replace("\n", " "))
    assert any(sentence in str(dropped) for sentence in sentences)


async def test_a_dry_run_of_hello_greets_in_the_log_only(tmp_path: Path) -> None:
    write(tmp_path, "hello.py")
    async with Runtime(tmp_path) as runtime:
        flags = ("--dry-run", "--socket", str(runtime.socket_path))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(tmp_path / "hello.py"),
            *flags,
            stderr=asyncio.subprocess.PIPE,
        )
        await runtime.synchronized("10-hello")
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        created = await runtime.create_container(pod.id, Container(name="app"))
        process.terminate()
        _, said = await process.communicate()

    assert (process.returncode, created.container.env) == (0, ())
    (line,) = [one for one in said.decode().splitlines() if "reply.withheld" in one]
    assert "about=shop/web/app" in line
    assert "hello web" in line


async def test_ulimits_obeys_annotations(tmp_path: Path) -> None:
    key = "open-files.example.com/container.db"
    options = install_as_documented(tmp_path, "ulimits.py")
    async with Runtime(tmp_path, options=options) as runtime:
        good = {key: "{hard: 4096, soft: 1024}"}
        pod = await runtime.run_pod(Pod(name="web", namespace="shop", annotations=good))
        limits = []
        for name in ("db", "log"):
            created = await runtime.create_container(pod.id, Container(name=name))
            limits.append(created.container.rlimits)
        bad = Pod(name="web", namespace="shop", annotations={key: "{hard: 4096}"})
        pod = await runtime.run_pod(bad)
        with pytest.raises(RuntimeRefusal) as refused:
            await runtime.create_container(pod.id, Container(name="db"))

    assert limits == [(Rlimit("RLIMIT_NOFILE", 4096, 1024),), ()]
    (sentence,) = re.findall(r"`(shop/web/db: [^`]*)`", PAGE)
    assert sentence in str(refused.value)


async def test_sized_knows_the_limit(tmp_path: Path) -> None:
    options = install_as_documented(tmp_path, "sized.py")
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(Pod())
        found = []
        for quota in (250_000, None):
            cpu = LinuxCpu(shares=512, quota=quota, period=100_000)
            linux = LinuxContainer(resources=LinuxResources(cpu=cpu))
            created = await runtime.create_container(pod.id, Container(linux=linux))
            found.append(created.container.env)

    assert found == [("GOMAXPROCS=3",), ()]


async def test_numbered_counts_on_after_a_restart(tmp_path: Path) -> None:
    write(tmp_path, "numbered.py")
    found: list[str] = []
    async with Runtime(tmp_path) as runtime:
        pod = await runtime.run_pod(Pod())
        command = (
            "/usr/bin/env",
            f"STATE_DIRECTORY={tmp_path / 'state'}",
            sys.executable,
            str(tmp_path / "numbered.py"),
            "--socket",
            str(runtime.socket_path),
        )
        for _ in range(2):
            async with plugin_process(runtime, *command, within=60.0):
                for _ in range(2):
                    created = await runtime.create_container(pod.id, Container())
                    found += created.container.env
            await runtime.gone("10-plugin")

    assert found == ["NUMBER=1", "NUMBER=2", "NUMBER=3", "NUMBER=4"]


async def test_quiet_lowers_others_while_a_critical_pod_runs(tmp_path: Path) -> None:
    options = install_as_documented(tmp_path, "quiet.py")
    async with Runtime(tmp_path, options=options) as runtime:
        batch = await runtime.run_pod(Pod())
        critical = await runtime.run_pod(Pod(labels={"tier": "critical"}))

        async def start(pod: Pod) -> str:
            created = await runtime.create_container(pod.id, ASKING_FOR_512)
            return created.container.id

        def shares(*ids: str) -> list[int | None]:
            return [runtime.container(key).cpu.shares for key in ids]

        early = await start(batch)
        first, second = await start(critical), await start(critical)
        late = await start(batch)
        during = shares(early, late, first, second)
        await runtime.stop_container(first)
        still = shares(early, late)
        await runtime.stop_container(second)
        after = shares(early, late)

    assert (during, still, after) == ([2, 2, 512, 512], [2, 2], [512, 512])


async def test_quiet_lowers_containers_that_run_already(tmp_path: Path) -> None:
    write(tmp_path, "quiet.py")
    program = runpy.run_path(str(tmp_path / "quiet.py"))
    async with Runtime(tmp_path) as runtime:
        shares = []
        for labels in ({}, {"tier": "critical"}):
            pod = await runtime.run_pod(Pod(labels=labels))
            await runtime.create_container(pod.id, ASKING_FOR_512)
            async with running_plugin(runtime, program["plugin"]):
                shares.append([item.cpu.shares for item in runtime.containers])

    assert shares == [[512], [2, 512]]


async def test_teams_answers_safely_when_it_takes_too_long(tmp_path: Path) -> None:
    options = install_as_documented(tmp_path, "teams.py")
    async with Runtime(tmp_path, options=options) as runtime:
        env: list[str] = []
        for namespace in ("near", "far-away"):
            pod = await runtime.run_pod(Pod(namespace=namespace))
            created = await runtime.create_container(pod.id, Container())
            env += created.container.env

        assert runtime.plugins == ("30-teams",)
    assert env == ["TEAM=team near", "TEAM=unknown"]


async def test_nohooks_rejects_hooks_of_another_plugin(tmp_path: Path) -> None:
    other = Plugin()

    @other.handler
    def create_container(pod: Pod, _: Container) -> ContainerAdjustment:
        hooks = Hooks(create_runtime=(Hook(path="/bin/true"),))
        adjustment = ContainerAdjustment()
        return adjustment.add_hooks(hooks) if pod.name == "hooked" else adjustment

    options = install_as_documented(tmp_path, "nohooks.py")
    async with (
        Runtime(tmp_path, options=options) as runtime,
        running_plugin(runtime, other),
    ):
        plain = await runtime.run_pod(Pod(name="plain"))
        hooked = await runtime.run_pod(Pod(name="hooked"))
        await runtime.create_container(plain.id, Container())
        with pytest.raises(AdjustmentRejected, match="OCI hooks are not allowed"):
            await runtime.create_container(hooked.id, Container())


def run_without_plugins(directory: Path) -> int:
    return run_pytest(directory, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1").returncode


def test_the_test_passes_and_can_fail(tmp_path: Path) -> None:
    write(tmp_path, "hello.py", "test_hello.py")

    good = run_without_plugins(tmp_path)
    broken = PROGRAMS["hello.py"].replace("hello {", "goodbye {")
    (tmp_path / "hello.py").write_text(broken)

    assert (good, run_without_plugins(tmp_path)) == (0, 1)
