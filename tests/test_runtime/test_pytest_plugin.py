"""The fixtures for authors' tests, each in a pytest of its own."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

import pytest

from nri_proto import NriLevel
from tests.test_runtime.logged_session import record
from tests.test_runtime.pytest_process import FIXTURES, ROOT, run_pytest

pytestmark = pytest.mark.process

INI: Final = """[pytest]
asyncio_mode = {mode}
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""

PLUGIN: Final = """
import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, ContainerAdjustment, Pod
from nri_resmgr.testing import Runtime

class Greeter:
    text = "hello"

    def configure(self, configuration):
        self.text = configuration.text or "hello"

    def create_container(self, pod, container):
        return ContainerAdjustment().set_env(self.text, pod.name)

async def env_of(runtime):
    pod = await runtime.run_pod(Pod(name="web"))
    created = await runtime.create_container(pod.id, Container())
    return dict(created.container.environment)
"""

USES: Final = """
pytestmark = pytest.mark.asyncio

async def test_the_configuration_counts(runtime, running_plugin):
    stub = await running_plugin(Greeter(), config="ahoy")

    assert str(stub.identity) == "10-plugin"
    assert await env_of(runtime) == {"ahoy": "web"}

async def test_several_run_in_the_order_of_their_indices(runtime, running_plugin):
    await running_plugin(Greeter(), "20-second", config="b")
    await running_plugin(Greeter(), "10-first", config="a")

    assert runtime.plugins == ("10-first", "20-second")
    assert await env_of(runtime) == {"a": "web", "b": "web"}

async def test_another_test_has_another_runtime(runtime, running_plugin):
    await running_plugin(Greeter())

    assert (runtime.plugins, runtime.containers) == (("10-plugin",), ())
"""

REPLAYS: Final = """
async def test_a_recording_beside_it(recording, runtime):
    (start, created) = await recording("session.jsonl", Greeter(), config="ahoy")

    assert (start.request, created.request) == ("Synchronize", "CreateContainer")
    assert created.pod.name == "web"
    assert created.adjustment == ContainerAdjustment().set_env("ahoy", "web")
    assert runtime.containers == ()

async def test_it_is_replayed_again(recording):
    for _ in range(2):
        assert len(await recording("session.jsonl", Greeter())) == 2
"""

OWN_LEVEL: Final = """
@pytest.fixture
async def runtime(tmp_path):
    async with Runtime(tmp_path, NriLevel(0, 3), name="cri-o") as started:
        yield started

async def test_the_plugin_runs_at_it(runtime, running_plugin):
    stub = await running_plugin(Greeter())

    assert (stub.runtime.name, await env_of(runtime)) == ("cri-o", {"hello": "web"})
"""

OTHERS: Final = """
import sys
import pytest

@pytest.fixture
def runtime():
    return 7

@pytest.mark.parametrize("running_plugin", ["a", "b"])
def test_of_something_else(runtime, running_plugin):
    assert (runtime, running_plugin in "ab") == (7, True)

def test_nothing_of_ours_is_imported():
    ours = {name for name in sys.modules if name.startswith("nri_")}
    assert ours == {"nri_resmgr", "nri_resmgr.pytest_plugin"}
    assert not sys.modules.keys() & {"google.protobuf", "msgspec", "structlog", "yaml"}
"""


def check(done: subprocess.CompletedProcess[str], passed: int) -> None:
    found = re.findall(r"(?m)^(\d+) passed in ", done.stdout)
    assert found == [str(passed)], done.stdout + done.stderr


def written(folder: Path, text: str, mode: str = "auto") -> Path:
    (folder / "pytest.ini").write_text(INI.format(mode=mode))
    (folder / "test_it.py").write_text(text)
    return folder


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_a_test_gets_a_runtime_and_runs_plugins(mode: str, tmp_path: Path) -> None:
    folder = written(tmp_path, PLUGIN + USES, mode)

    check(run_pytest(folder, *FIXTURES), 3)


@pytest.mark.parametrize("mode", ["auto", "strict"])
async def test_a_test_replays_a_recording(mode: str, tmp_path: Path) -> None:
    mark = "pytestmark = pytest.mark.asyncio\n"
    folder = written(tmp_path, PLUGIN + mark + REPLAYS, mode)
    await record(folder, folder / "session.jsonl", NriLevel(0, 12))

    check(run_pytest(folder, *FIXTURES), 2)


def test_a_runtime_of_the_test_takes_the_place_of_ours(tmp_path: Path) -> None:
    folder = written(tmp_path, PLUGIN + OWN_LEVEL)

    check(run_pytest(folder, *FIXTURES), 1)


def test_tests_of_something_else_do_not_notice_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(OTHERS)

    # Without other plugins, since these import what they like.
    check(run_pytest(tmp_path, *FIXTURES, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"), 3)


def test_without_pytest_asyncio_a_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "pytest_asyncio.py").write_text("raise ImportError\n")
    test = "async def test_it(runtime): ..."
    (tmp_path / "test_it.py").write_text(test)

    done = run_pytest(
        tmp_path,
        *FIXTURES,
        path=(tmp_path,),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )

    (sentence,) = re.findall(r"(?m)^the fixtures .*$", done.stdout)
    assert sentence == (
        "the fixtures of nri-resmgr need pytest-asyncio: pip install pytest-asyncio"
    )


def entry_points() -> dict[str, str]:
    """Return pytest's part of what the package declares."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, str] = tomllib.loads(text)["project"]["entry-points"]["pytest11"]
    return found


def test_the_package_declares_a_module_with_the_fixtures() -> None:
    ((name, value),) = entry_points().items()

    module = EntryPoint(name, value, "pytest11").load()

    assert name == FIXTURES[1]
    assert {"runtime", "running_plugin", "recording"} <= vars(module).keys()


@pytest.mark.parametrize(
    "arguments", [pytest.param((), id="alone"), pytest.param(FIXTURES, id="with -p")]
)
def test_an_installed_package_has_them_without_a_flag(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    # All of an installation that pytest looks at.
    metadata = tmp_path / "site" / "nri_resmgr-99.dist-info"
    metadata.mkdir(parents=True)
    lines = [f"{name} = {value}" for name, value in entry_points().items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]))
    (metadata / "METADATA").write_text("Name: nri-resmgr\nVersion: 99\n")
    folder = tmp_path / "tests"
    folder.mkdir()
    written(folder, PLUGIN + USES)

    check(run_pytest(folder, *arguments, path=(tmp_path / "site",)), 3)
