"""Folders of files for containers: how they are written, and which are trusted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nri_resmgr.host.resource_files import ResourceFiles, ResourceFileUnwritable

TEXTS = {"a.sh": 'A="1"\n', "a.json": "{}\n"}


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_folder_has_exactly_the_files_readable_by_all_users(tmp_path: Path) -> None:
    files = ResourceFiles(f"{tmp_path}/run/")
    old = os.umask(0o077)
    try:
        files.write("c1", TEXTS)
    finally:
        os.umask(old)

    folder = Path(files.folder_of("c1"))
    assert folder == tmp_path / "run/containers/c1"
    assert content(folder) == TEXTS
    assert folder.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}


def test_open_files_keep_the_old_text(tmp_path: Path) -> None:
    files = ResourceFiles(str(tmp_path))
    files.write("c1", TEXTS)
    with (tmp_path / "containers/c1/a.sh").open() as reader:
        files.write("c1", {"a.sh": 'A="2"\n'})

        assert reader.read() == 'A="1"\n'
    assert content(tmp_path / "containers/c1") == {"a.sh": 'A="2"\n', "a.json": "{}\n"}


def test_files_left_by_a_killed_writer_are_replaced(tmp_path: Path) -> None:
    files = ResourceFiles(str(tmp_path))
    files.write("c1", {})
    (tmp_path / "containers/c1/.a.sh.new").write_text("half a te")
    files.write("c1", TEXTS)

    assert content(tmp_path / "containers/c1") == TEXTS


def test_folders_are_listed_and_removed(tmp_path: Path) -> None:
    files = ResourceFiles(str(tmp_path / "run"))
    at_first = files.present()
    for name in ("c2", "c1", "c3"):
        files.write(name, TEXTS)
    before = files.present()
    files.remove(["c2", "c3", "never was", "../.."])

    assert (at_first, before, files.present()) == ((), ("c1", "c2", "c3"), ("c1",))


@pytest.mark.parametrize("name", ["", ".", "..", "../c", "a/b", ".hidden", "x" * 129])
def test_an_id_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ResourceFileUnwritable, match="not a valid file name"):
        ResourceFiles(str(tmp_path / "run")).write(name, TEXTS)

    assert list(tmp_path.iterdir()) == []


def link_to_elsewhere(path: Path) -> None:
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    path.symlink_to(elsewhere)


def open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def of_another_user(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    path.mkdir()
    os.chown(path, 1234, 1234)


@pytest.mark.parametrize("where", ["run", "run/containers", "run/containers/c1"])
@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        pytest.param(link_to_elsewhere, "Not a directory|symbolic links", id="a link"),
        pytest.param(open_to_all, "others may write", id="a folder open to all"),
        pytest.param(of_another_user, "belongs to user 1234", id="one of another user"),
        pytest.param(Path.touch, "Not a directory|File exists", id="a file"),
    ],
)
def test_a_folder_that_others_may_have_changed_is_refused(
    tmp_path: Path, where: str, prepare: Callable[[Path], None], why: str
) -> None:
    path = tmp_path / where
    path.parent.mkdir(parents=True, exist_ok=True)
    prepare(path)

    with pytest.raises(ResourceFileUnwritable, match=why):
        ResourceFiles(str(tmp_path / "run")).write("c1", TEXTS)
    assert list(tmp_path.rglob("a.sh")) == []


def test_a_link_in_place_of_a_file_is_replaced_not_followed(tmp_path: Path) -> None:
    files = ResourceFiles(str(tmp_path / "run"))
    files.write("c1", {})
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("a.sh", ".a.sh.new"):
        (tmp_path / "run/containers/c1" / name).symlink_to(victim)
    files.write("c1", TEXTS)

    assert victim.read_text() == "precious"
    assert content(tmp_path / "run/containers/c1") == TEXTS


def test_a_folder_that_another_removed_is_made_again(tmp_path: Path) -> None:
    files = ResourceFiles(str(tmp_path / "run"))
    files.write("c1", TEXTS)
    shutil.rmtree(tmp_path / "run")
    files.write("c2", TEXTS)

    assert content(tmp_path / "run/containers/c2") == TEXTS
    assert files.present() == ("c2",)


def test_the_folder_can_be_closed_and_used_again(tmp_path: Path) -> None:
    files = ResourceFiles(str(tmp_path / "run"))
    files.write("c1", TEXTS)
    files.close()
    files.close()
    files.remove(["c1"])

    assert files.present() == ()
