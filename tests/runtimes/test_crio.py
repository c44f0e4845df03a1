"""What becomes of CRI-O's files."""

from __future__ import annotations

import pytest

from nri_resmgr.runtimes.crio import (
    FOLDER,
    KEYS,
    MAIN,
    Crio,
    switched_back,
    switched_on,
)
from nri_resmgr.runtimes.errors import ForeignFile, NotToml, Overridden
from nri_resmgr.runtimes.switch import MARK, ConfigFile, FileChange
from nri_resmgr.values.errors import InputError

DROP_IN = f"{FOLDER}/90-nri-resmgr.conf"
TIMES = 'nri_plugin_registration_timeout = "9s"\n  nri_plugin_request_timeout = "3s"\n'
KEPT_OUT = "is set: only launched plugins are served, not a service or a pod"
# As CRI-O writes it, in our words: what has its default is a comment.
STOCK = """\
[crio]
# root = "/var/lib/containers/storage"
[crio.runtime]
# conmon = ""

# Globally enable or disable NRI.
[crio.nri]
# enable_nri = true
# nri_listen = "/var/run/nri/nri.sock"
"""


def ours(more: str = "") -> str:
    return f"{MARK}\n[crio.nri]\n  enable_nri = true\n{more}"


def files(**texts: str) -> Crio:
    paths = {"main": MAIN, "ours": DROP_IN}
    names = {paths.get(name, f"{FOLDER}/{name[1:]}.conf"): name for name in texts}
    ordered = sorted(names, key=lambda path: (path != MAIN, path))
    return Crio(tuple(ConfigFile(path, texts[names[path]]) for path in ordered))


@pytest.mark.parametrize(
    ("found", "times", "change"),
    [
        pytest.param(
            files(), (), FileChange(DROP_IN, None, ours()), id="no files: a drop-in"
        ),
        pytest.param(
            files(main=STOCK),
            ("9s", "3s"),
            FileChange(DROP_IN, None, ours(f"  {TIMES}")),
            id="the stock file",
        ),
        pytest.param(
            files(main=STOCK.replace("# enable", "enable")),
            (),
            FileChange(DROP_IN, None, None),
            id="it is on already",
        ),
        pytest.param(
            files(
                main="[crio.nri]\nenable_nri = false\n",
                _10="[crio.nri]\nenable_nri=true",
            ),
            (),
            FileChange(DROP_IN, None, None),
            id="on by a foreign drop-in",
        ),
        pytest.param(
            files(_10="[crio.nri]\nenable_nri = false\n"),
            (),
            FileChange(DROP_IN, None, ours()),
            id="ours is read after one that has it off",
        ),
        pytest.param(
            files(ours=ours(f"  {TIMES}")),
            ("", ""),
            FileChange(DROP_IN, ours(f"  {TIMES}"), ours(f"  {TIMES}")),
            id="times stay that were asked for before",
        ),
        pytest.param(
            files(ours=ours(f"  {TIMES}")),
            ("8s", ""),
            FileChange(
                DROP_IN, ours(f"  {TIMES}"), ours(f"  {TIMES}").replace("9s", "8s")
            ),
            id="another time",
        ),
        pytest.param(
            Crio(
                (
                    ConfigFile(f"{FOLDER}/10.conf", ours(f"  {TIMES}")),
                    ConfigFile(DROP_IN, ours(f"  {TIMES}").replace("3s", "4s")),
                )
            ),
            ("", "3s"),
            FileChange(
                DROP_IN,
                ours(f"  {TIMES}").replace("3s", "4s"),
                ours(f"  {TIMES}"),
            ),
            id="ours goes before an earlier file that has it already",
        ),
        pytest.param(
            Crio(
                (
                    ConfigFile(
                        f"{FOLDER}/90-nri-resmgr/x", "[crio.nri]\nenable_nri=false"
                    ),
                )
            ),
            (),
            FileChange(DROP_IN, None, ours()),
            id="a folder that sorts before ours",
        ),
        pytest.param(
            files(_99="[crio.nri]\nnri_plugin_request_timeout = '7s'\n"),
            (),
            FileChange(DROP_IN, None, ours()),
            id="a later file with other settings",
        ),
        pytest.param(
            files(main="[crio.nri]\nnri_disable_connections = true\n"),
            (),
            FileChange(
                DROP_IN,
                None,
                ours(),
                (f"nri_disable_connections {KEPT_OUT}",),
            ),
            id="plugins are kept out",
        ),
    ],
)
def test_the_drop_in(found: Crio, times: tuple[str, ...], change: FileChange) -> None:
    assert switched_on(found, KEYS.wanted(*times)) == change


@pytest.mark.parametrize(
    ("found", "error"),
    [
        pytest.param(files(main="[crio\n"), NotToml, id="a broken file"),
        pytest.param(
            files(_99="[crio.nri]\nenable_nri = false\n"), Overridden, id="a later file"
        ),
        pytest.param(
            files(_99="[crio.nri]\nenable_nri = false\n", ours=ours()),
            Overridden,
            id="a later file that came later",
        ),
        pytest.param(files(ours=f"{ours()}# mine\n"), ForeignFile, id="ours, changed"),
        pytest.param(files(ours=""), ForeignFile, id="our name"),
    ],
)
def test_files_that_cannot_be_read_safely_are_refused(
    found: Crio, error: type[InputError]
) -> None:
    with pytest.raises(error):
        switched_on(found, KEYS.wanted())


def test_the_drop_in_is_removed_again() -> None:
    assert switched_back(files(main=STOCK, ours=ours())) == FileChange(
        DROP_IN, ours(), None
    )
    assert switched_back(files(main=STOCK)).is_none
    with pytest.raises(ForeignFile):
        switched_back(files(ours="x = 1"))
