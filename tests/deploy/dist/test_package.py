"""What package indexes show of the wheel and the source distribution."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from tests.cli.command import nri_resmgr
from tests.deploy.dist.released import ROOT, TIME, build, commit

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("release")]

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
REPOSITORY = "https://example.com/owner/nri-resmgr"


def metadata_of(folder: Path) -> Message:
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [name] = (one for one in archive.namelist() if one.endswith("/METADATA"))
        return email.message_from_bytes(archive.read(name))


def text_of(metadata: Message) -> str:
    payload = metadata.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def is_relative(link: str) -> bool:
    return not re.match(r"\w+:|#", link)


def test_without_a_repository_paths_stand_behind_texts(release: Path) -> None:
    text = text_of(metadata_of(release))

    assert any(is_relative(link) for link in LINK.findall(README))
    assert [link for link in LINK.findall(text) if is_relative(link)] == []
    assert "(docs/topology-aware.md)" in text
    assert "[NRI](https://github.com/containerd/nri)" in text


def test_code_is_left_as_it_is(release: Path) -> None:
    fences = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

    assert fences.findall(text_of(metadata_of(release))) == fences.findall(README)


def test_with_a_repository_links_lead_to_the_tag(tmp_path: Path) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    urls = f'[project.urls]\nRepository = "{REPOSITORY}"\n\n[project.scripts]'
    readme = (
        "[a *page*](docs/limits.md#two-words) ![a\npicture](docs/pictures/page.png) "
        "[here](#here) [`there`](https://example.com/a.md)\n"
        "```text\n[code](docs/limits.md)\n```\n[deploy/](deploy/)\n"
    )
    checkout = commit(
        tmp_path / "checkout",
        README=readme,
        pyproject=project.replace("[project.scripts]", urls),
    )
    done = build(checkout, tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    metadata = metadata_of(tmp_path / "dist")

    tag = f"v{metadata['Version']}"
    assert "project.urls" not in done.stderr
    assert metadata.get_all("Project-URL") == [f"Repository, {REPOSITORY}"]
    assert text_of(metadata) == (
        f"[a *page*]({REPOSITORY}/blob/{tag}/docs/limits.md#two-words) "
        f"![a\npicture]({REPOSITORY}/raw/{tag}/docs/pictures/page.png) "
        "[here](#here) [`there`](https://example.com/a.md)\n"
        f"```text\n[code](docs/limits.md)\n```\n[deploy/]({REPOSITORY}/blob/{tag}/deploy/)\n"
    )


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "share/bash-completion/completions/nri-resmgr"),
        ("zsh", "share/zsh/site-functions/_nri-resmgr"),
    ],
)
def test_the_wheel_installs_what_completes_in_a_shell(
    shell: str, place: str, release: Path
) -> None:
    [wheel] = release.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [name] = (one for one in names if one.endswith(f".data/data/{place}"))
        script = archive.read(name).decode()

    assert script == nri_resmgr("completion", shell).stdout


def test_the_source_distribution_makes_the_same_wheel(
    release: Path, tmp_path: Path
) -> None:
    [source] = release.glob("nri_resmgr-*.tar.gz")
    [wheel] = release.glob("*.whl")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=tmp_path / source.name.removesuffix(".tar.gz"),
        env={"SOURCE_DATE_EPOCH": str(TIME)},
        check=True,
        capture_output=True,
    )

    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()
