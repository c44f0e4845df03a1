"""Every way in which a machine may name its Debian mirror."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_host.apt_sources import (
    NoDebianMirror,
    Source,
    apt_sources,
    debian_mirror,
)

DEBIAN = 'ID=debian\nVERSION_CODENAME="bookworm"\n'


def etc(root: Path, sources: dict[str, str], release: str = DEBIAN) -> Path:
    (root / "apt" / "sources.list.d").mkdir(parents=True)
    (root / "os-release").write_text(release)
    for name, text in sources.items():
        (root / "apt" / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "sources.list",
            "# deb http://old/debian bookworm main\n"
            "deb-src http://src/debian bookworm main\n"
            "deb [arch=amd64 signed-by=/k.gpg] http://own/debian bookworm main # us\n",
            id="one line, with options and comments",
        ),
        pytest.param(
            "sources.list.d/debian.sources",
            "Types: deb\n# a comment\nURIs: http://own/debian\nSuites: bookworm\n"
            "  bookworm-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n",
            id="deb822, with a folded field",
        ),
        pytest.param(
            "sources.list.d/debian.sources",
            "Types: deb\nURIs: http://off/debian\nSuites: bookworm\n"
            "Components: main\nEnabled: no\n \n\n"
            "Types: deb\nURIs: http://own/debian\nSuites: stable\nComponents: main\n",
            id="a stanza that is switched off is passed over",
        ),
        pytest.param(
            "sources.list",
            "deb http://third/debian bookworm stable\n"
            "deb http://fourth/apt cloud-bookworm main\n"
            "deb http://own/debian bookworm main contrib\n",
            id="third parties are passed over",
        ),
    ],
)
def test_the_mirror_is_the_machines_own(tmp_path: Path, name: str, text: str) -> None:
    assert debian_mirror(etc(tmp_path, {name: text})) == "http://own/debian"


def test_a_mirror_list_is_followed(tmp_path: Path) -> None:
    listing = tmp_path / "debian.list"
    listing.write_text("http://own/debian\nhttp://other/debian\n")
    line = f"deb mirror+file:{listing} bookworm main\n"

    assert debian_mirror(etc(tmp_path, {"sources.list": line})) == "http://own/debian"


def test_deb822_names_every_pair_of_uri_and_suite(tmp_path: Path) -> None:
    text = "Types: deb deb-src\nURIs: http://a\n http://b\nSuites: x y\nComponents: c d"
    folder = etc(tmp_path, {"sources.list.d/one.sources": text}) / "apt"

    assert list(apt_sources(folder)) == [
        Source(uri, suite, ("c", "d"))
        for uri in ("http://a", "http://b")
        for suite in ("x", "y")
    ]


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("ID=ubuntu\nVERSION_CODENAME=noble\n", id="Ubuntu"),
        pytest.param(DEBIAN, id="Debian with third parties only"),
    ],
)
def test_without_a_debian_mirror_there_is_a_clear_refusal(
    tmp_path: Path, release: str
) -> None:
    text = "deb http://ubuntu/ubuntu noble main\n"

    with pytest.raises(NoDebianMirror, match="no Debian mirror"):
        debian_mirror(etc(tmp_path, {"sources.list": text}, release))


def test_a_machine_without_apt_or_os_release_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(NoDebianMirror, match="no Debian mirror"):
        debian_mirror(tmp_path)
