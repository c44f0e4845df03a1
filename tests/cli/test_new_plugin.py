"""``nri-resmgr new-plugin``: the folder that it makes passes its own tests and ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from nri_resmgr.cli.main import main
from nri_resmgr.cli.new_plugin.names import BadPluginName, Names
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime
from tests.cli.command import ROOT, nri_resmgr
from tests.test_runtime.launching import launching
from tests.test_runtime.pytest_process import FIXTURES, run_pytest

pytestmark = pytest.mark.process

NAME: Final = "gpu-env"
LONGEST: Final = "one-of-thirty-characters-in-it"
FILES: Final = {
    "Containerfile",
    "README.md",
    "__main__.py",
    "conf.d/gpu-env.conf",
    "gpu_env.py",
    "pyproject.toml",
    "tests/test_gpu_env.py",
}


def made(tmp_path: Path, name: str = NAME, index: str = "10") -> Path:
    folder = tmp_path / name
    done = nri_resmgr("new-plugin", name, "--folder", folder, "--index", index)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def failed(folder: Path, *arguments: str) -> str:
    """Run Python in a folder; return what it says if it fails."""
    done = subprocess.run(
        (sys.executable, *arguments),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else ""


def test_it_says_what_it_has_written(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    done = nri_resmgr("new-plugin", NAME, "--folder", folder)

    written = re.findall(rf"(?m)^wrote {re.escape(str(folder))}/(\S+)$", done.stdout)
    assert written == sorted(FILES)
    assert files(folder) == FILES
    assert f"\n  cd {folder}\n" in done.stdout


def test_without_a_folder_it_is_below_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["new-plugin", NAME]) == 0

    assert files(tmp_path / NAME) == FILES


@pytest.mark.parametrize("name", ["a", NAME, LONGEST])
def test_its_own_tests_pass(name: str, tmp_path: Path) -> None:
    folder = made(tmp_path, name)
    (tests,) = (folder / "tests").iterdir()
    count = tests.read_text().count("\nasync def test_")

    done = run_pytest(folder, *FIXTURES)

    assert f"{count} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("gpu_env.py", "return ContainerAdjustment().set", "ContainerAdjustment().set"),
        ("gpu_env.py", "variable in container.env", "variable in pod.env"),
        ("gpu_env.py", "{pod.name}", "{pod.id}"),
        ("conf.d/gpu-env.conf", "greeting: hello", "greeting: hi"),
        ("__main__.py", "serve(GpuEnvPlugin()", "print(GpuEnvPlugin()"),
    ],
)
def test_its_own_tests_find_a_mistake(
    file: str, right: str, wrong: str, tmp_path: Path
) -> None:
    folder = made(tmp_path)
    text = (folder / file).read_text()
    assert right in text
    (folder / file).write_text(text.replace(right, wrong))

    assert run_pytest(folder, *FIXTURES).returncode == 1


@pytest.mark.parametrize("name", ["a", LONGEST])
def test_linters_and_type_checkers_find_nothing_in_it(
    name: str, tmp_path: Path
) -> None:
    folder = made(tmp_path, name)

    assert failed(folder, "-m", "ruff", "check", "--no-cache") == ""
    assert failed(folder, "-m", "ruff", "format", "--check", "--no-cache") == ""
    assert failed(folder, "-m", "mypy", "--strict") == ""


def test_type_checkers_read_what_it_is_made_of(tmp_path: Path) -> None:
    folder = made(tmp_path)
    text = (folder / "gpu_env.py").read_text()
    (folder / "gpu_env.py").write_text(text.replace("set_env(variable", "set_env(7"))

    assert "gpu_env.py" in failed(folder, "-m", "mypy", "--strict")


async def test_a_runtime_launches_it_as_the_readme_installs_it(tmp_path: Path) -> None:
    folder = made(tmp_path, index="95")
    (command,) = re.findall(
        r"(?m)^    sudo nri-resmgr (install .+)$", (folder / "README.md").read_text()
    )
    words = [str(folder / word) if "." in word else word for word in command.split()]
    (folder / "conf.d/gpu-env.conf").write_text("greeting: ahoy")
    plugins, configs = tmp_path / "plugins", tmp_path / "conf.d"
    done = nri_resmgr(*words, "--plugin-dir", plugins, "--config-dir", configs)
    assert done.returncode == 0, done.stderr
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        assert runtime.plugins == ("95-gpu-env",)
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        created = await runtime.create_container(pod.id, Container())

    assert created.container.env == ("GREETING=ahoy shop/web",)


def test_the_image_has_the_files_that_the_program_needs(tmp_path: Path) -> None:
    folder = made(tmp_path)
    text = (folder / "Containerfile").read_text()
    ((names, target),) = re.findall(r"(?m)^COPY (.+) (\S+)$", text)
    (program,) = re.findall(r'(?m)^ENTRYPOINT \["python3", "(.+)"\]$', text)
    assert target == f"{program}/"
    root = tmp_path / "root" / NAME
    root.mkdir(parents=True)
    for name in names.split():
        shutil.copy(folder / name, root)

    assert failed(tmp_path, str(root), "--help") == ""
    (root / "gpu_env.py").unlink()
    assert "gpu_env" in failed(tmp_path, str(root), "--help")


def test_the_readme_and_the_sample_have_all_keys(tmp_path: Path) -> None:
    folder = made(tmp_path)
    readme = (folder / "README.md").read_text()
    table, _, _ = readme.partition("## Files")
    rows = dict(re.findall(r"(?m)^\| `(\w+)` \| `(\w+)` \|", table))

    assert yaml.safe_load((folder / "conf.d/gpu-env.conf").read_text()) == rows
    assert set(re.findall(r"(?m)^\| `([\w./-]+)` \|", readme)) >= FILES - {
        "README.md",
        "tests/test_gpu_env.py",
    }


@pytest.mark.parametrize("kind", ["a folder", "a file", "a link to nothing"])
def test_what_is_there_already_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / NAME
    match kind:
        case "a folder":
            folder.mkdir()
        case "a file":
            folder.write_text("mine")
        case _:
            folder.symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))

    done = nri_resmgr("new-plugin", NAME, "--folder", folder)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"nri-resmgr: {folder} exists: choose another name, or another --folder\n"
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_without_space_nothing_is_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    # A file may have 1024 bytes, as if the disk were full then.
    limited = ("prlimit", "--fsize=1024", sys.executable, "-B", "-m", "nri_resmgr")
    done = subprocess.run(
        (*limited, "new-plugin", NAME, "--folder", str(folder)),
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"nri-resmgr: cannot write {folder}/README.md: file too large\n"
    )
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(
            ["gpu_env"],
            "plugin name 'gpu_env': expected words of small letters and digits, with a "
            "dash between two, such as gpu-env",
            id="a module's name",
        ),
        pytest.param(
            ["json"],
            "plugin name 'json': its file json.py would hide a module of that name",
            id="a module of Python",
        ),
        pytest.param(
            ["gpu-env", "--index", "7"],
            "plugin index '7': two digits are needed, 00 to 99",
            id="an index",
        ),
    ],
)
def test_bad_input_makes_no_folder(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    done = nri_resmgr("new-plugin", *words, "--folder", tmp_path / "made")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"nri-resmgr: {sentence}\n"
    assert not (tmp_path / "made").exists()


def test_a_parent_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "none" / NAME
    done = nri_resmgr("new-plugin", NAME, "--folder", folder)

    assert done.returncode == 1
    assert done.stderr == (
        f"nri-resmgr: cannot write {folder}: no such file or directory\n"
    )


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("a", Names("a", "a", "A")),
        ("gpu-env", Names("gpu-env", "gpu_env", "GpuEnv")),
        ("x2-4b", Names("x2-4b", "x2_4b", "X24b")),
        (
            LONGEST,
            Names(LONGEST, LONGEST.replace("-", "_"), "OneOfThirtyCharactersInIt"),
        ),
    ],
)
def test_the_names_of_module_and_classes_follow(name: str, names: Names) -> None:
    assert Names.of(name) == names


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "-",
            "a-",
            "-a",
            "a--b",
            "4b",
            "A",
            "a b",
            "a.b",
            "a/b",
            "../a",
            "ä",
            "a\n",
        ),
        *("class", "import", "logging", "nri-resmgr", "msgspec", "yaml", "pytest"),
        f"{LONGEST}s",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BadPluginName):
        Names.of(name)


def test_the_wheel_has_all_files() -> None:
    included = {
        one.distribution_path
        for one in WheelBuilder(str(ROOT)).recurse_included_files()
    }
    templates = {
        str(one.relative_to(ROOT))
        for one in (ROOT / "nri_resmgr/cli/new_plugin/files").rglob("*.in")
    }

    assert len(templates) == len(FILES)
    assert templates <= included
