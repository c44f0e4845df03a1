"""Output on streams that cannot encode all of it: likenesses and escapes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import daemon

pytestmark = pytest.mark.process

# Without these variables Python takes the C locale for UTF-8.
ENVIRONMENTS: Final = [
    pytest.param({"PYTHONIOENCODING": "ascii"}, id="an ASCII terminal"),
    pytest.param(
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        id="the C locale to the letter",
    ),
]
WEB: Final = Workload("größe", QosClass.GUARANTEED, 2000)
LONG: Final = Workload("a" * 60, QosClass.GUARANTEED, 1000)
SCENARIO: Final = "story: [{create: größe, guaranteed: 2, memory: 1Gi}]\n"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
async def test_answers_of_the_daemon(
    environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "control.sock"
    environment = environment | {"NRI_RESMGR_CONTROL_SOCKET": str(path)}
    environment["COLUMNS"] = "60"
    found = {}
    flags = ("--control-socket", str(path))
    async with daemon(tmp_path, parse_spec("1s2n4c1t"), *flags) as running:
        await running.place(WEB)
        await running.place(LONG)
        await running.line("control.listening")
        for words in (("status",), ("explain", "default/gr"), ("top", "--once")):
            found[words[0]] = await asyncio.to_thread(
                nri_resmgr, *words, env=environment
            )

    assert {name: (one.returncode, one.stderr) for name, one in found.items()} == (
        dict.fromkeys(found, (0, ""))
    )
    for one in found.values():
        assert one.stdout.isascii()
        assert r"default/gr\xf6\xdfe/gr\xf6\xdfe" in one.stdout
    # As wide as its column, which the mark of a cut name is a part of.
    assert f" default/{'a' * 16}~  -  " in found["top"].stdout
    assert "s shared  r reserved  i isolated  . idle" in found["top"].stdout


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_commands_without_a_daemon(environment: dict[str, str], tmp_path: Path) -> None:
    scenario = tmp_path / "größe.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    machine = ("--topology", "2s2n2c2t")
    done = {
        "simulate": nri_resmgr("simulate", *machine, scenario, env=environment),
        "topology": nri_resmgr("topology", "--machine", "2s2n2c2t", env=environment),
        "demo": nri_resmgr("demo", "--machine", "2s2n2c2t", env=environment),
        "help": nri_resmgr("--help", env=environment),
    }

    assert {name: (one.returncode, one.stderr) for name, one in done.items()} == (
        dict.fromkeys(done, (0, ""))
    )
    assert [name for name, one in done.items() if not one.stdout.isascii()] == []
    assert r"gr\xf6\xdfe" in done["simulate"].stdout
    assert ".... .... #.#. ...." in done["demo"].stdout


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_mistake_names_what_it_is_about(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = nri_resmgr("topology", "--machine", "größe", env=environment)

    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.isascii()


def test_what_a_stream_can_encode_stays() -> None:
    done = nri_resmgr("demo", "--machine", "1s8c", env={"PYTHONIOENCODING": "latin-1"})

    # What is read as UTF-8 here is Latin-1: the byte of the dot has become a surrogate.
    assert "\udcb7#" in done.stdout
    assert done.returncode == 0
