"""The files of the hook injector: changed while it runs, and wrong ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.stub import Container, Hook, Hooks, Pod
from nri_resmgr.testing import Runtime
from tests.plugins.programs import PLUGINS, check_dropped, installed, running

pytestmark = pytest.mark.process

PROGRAM = PLUGINS / "hook-injector"


def write(path: Path, word: str, **others: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    hook = {"path": "/bin/sh", "args": [word]}
    file = {"version": "1.0.0", "hook": hook, "when": {"always": True}}
    path.write_text(json.dumps(file | {"stages": ["prestart"]} | others))


async def words(runtime: Runtime) -> list[str]:
    """Create a container; return the arguments of its hooks."""
    pod = await runtime.run_pod(Pod())
    created = await runtime.create_container(pod.id, Container())
    hooks = created.container.hooks or Hooks()
    return [hook.args[0] for hook in hooks.prestart]


async def test_changed_files_count_for_the_next_container(tmp_path: Path) -> None:
    hooks, log = tmp_path / "hooks", tmp_path / "log"
    config = tmp_path / "config.yaml"
    config.write_text(document(tmp_path))
    found = {}
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--config", str(config))
        async with running(PROGRAM, *flags, log=log):
            await runtime.synchronized("10-hook-injector")
            found["no folder"] = await words(runtime)
            write(hooks / "2.json", "two")
            found["a new file"] = await words(runtime)
            write(hooks / "1.json", "one")
            (hooks / "3.json").symlink_to(tmp_path / "nowhere")
            found["another one, and a link to nothing"] = await words(runtime)
            write(hooks / "2.json", "changed")
            found["a changed file"] = await words(runtime)
            (hooks / "1.json").unlink()
            found["a file less"] = await words(runtime)
            write(hooks / "1.json", "wrong", stages=["prestarted"])
            write(hooks / "2.json", "changed again")
            found["a wrong file"] = await words(runtime)
            write(hooks / "1.json", "mended")
            found["a mended file"] = await words(runtime)

    assert found == {
        "no folder": [],
        "a new file": ["two"],
        "another one, and a link to nothing": ["one", "two"],
        "a changed file": ["one", "changed"],
        "a file less": ["changed"],
        "a wrong file": ["changed"],
        "a mended file": ["mended", "changed again"],
    }
    assert "Invalid enum value 'prestarted' - at `$.stages[0]`" in log.read_text()


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        pytest.param({"version": "0.1.0"}, "Invalid enum value '0.1.0'", id="version"),
        pytest.param({"stages": []}, "length >= 1 - at `$.stages`", id="no stage"),
        pytest.param(
            {"hook": {"path": "/no/program"}},
            "hook.path: /no/program does not exist",
            id="no program",
        ),
        pytest.param({"hook": {}}, "missing required field `path`", id="no path"),
        pytest.param(
            {"when": {"commands": ["("]}},
            "pattern '(': missing ), unterminated subpattern",
            id="no regular expression",
        ),
    ],
)
async def test_a_wrong_file_is_reported_at_the_start(
    tmp_path: Path, others: dict[str, Any], sentence: str
) -> None:
    write(tmp_path / "hooks" / "1.json", "any", **others)
    options = installed(PROGRAM, "hook-injector", document(tmp_path), tmp_path)

    await check_dropped(tmp_path, options, f"{tmp_path}/hooks/1.json: ")
    await check_dropped(tmp_path, options, sentence)


async def test_the_document_names_the_folders(tmp_path: Path) -> None:
    write(tmp_path / "hooks" / "1.json", "one")
    options = installed(PROGRAM, "hook-injector", document(tmp_path), tmp_path)
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

    assert created.container.hooks == Hooks(prestart=(Hook("/bin/sh", ("one",)),))


def document(folder: Path) -> str:
    return f"directories: [{folder}/hooks]\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            "directory: /a",
            "$.directory: unknown key, did you mean directories?",
            id="unknown key",
        ),
        pytest.param(
            "directories: /a", "$.directories: expected a list, not '/a'", id="a text"
        ),
        pytest.param("[/a]", "$: expected a mapping, not a list", id="no keys"),
    ],
)
async def test_a_wrong_document_is_reported(
    tmp_path: Path, text: str, sentence: str
) -> None:
    options = installed(PROGRAM, "hook-injector", text, tmp_path)

    await check_dropped(tmp_path, options, sentence)
