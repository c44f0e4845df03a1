"""Kinds of policies are found by entry points, and a broken one harms no other."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.config import API_VERSION, BadSetting
from nri_resmgr.policies import PolicyKind, find_kind, parse_config
from nri_resmgr.policies.find import BUILT_IN, GROUP, known_kinds
from tests.kinds.distributions import install

ROOT = Path(__file__).parents[2]

GOOD = """\
from nri_resmgr.policies import PolicyKind, find_kind

STATIC = find_kind("StaticPolicy")


class Kind(PolicyKind):
    name = "MinePolicy"

    def read(self, top):
        return STATIC.read(top)

    def build(self, config, machine, tree):
        return STATIC.build(config, machine, tree)


KIND = Kind()
"""


def pyproject(name: str, kind: str, target: str) -> str:
    return (
        f'[project]\nname = "{name}"\nversion = "1.2"\n'
        f'[project.entry-points."{GROUP}"]\n{kind} = "{target}"\n'
    )


def install_mine(folder: Path, text: str = GOOD, name: str = "mine") -> None:
    own = pyproject(name, "MinePolicy", "mine_of_kinds:KIND")
    install(folder, own, mine_of_kinds=text)


def document(kind: str) -> str:
    return f"apiVersion: {API_VERSION}\nkind: {kind}\nspec: {{}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages; none of its kinds is remembered afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("nri_resmgr.policies.find._loaded", {})
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name}.py"):
            del sys.modules[name]


def mistake(kind: str) -> str:
    with pytest.raises(BadSetting) as raised:
        parse_config(document(kind))
    assert raised.value.path == "$.kind"
    return raised.value.why


def test_the_built_in_kinds_are_entry_points_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["entry-points"][GROUP] == dict(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_kind_has_its_name(name: str) -> None:
    kind = find_kind(name)

    assert (type(kind).__mro__[1], kind.name) == (PolicyKind, name)
    assert parse_config(document(name)).kind == name


@pytest.mark.process
def test_a_built_in_kind_is_found_without_reading_entry_points() -> None:
    code = f"""
import sys
from nri_resmgr.policies import parse_config
for name in {[*BUILT_IN]}:
    parse_config({document("NAME")!r}.replace("NAME", name))
print("importlib.metadata" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_kind_of_another_package_is_known_and_found(folder: Path) -> None:
    install(
        folder,
        pyproject("mine", "MinePolicy", "mine_of_kinds:KIND"),
        mine_of_kinds=GOOD,
    )

    assert known_kinds() == (*sorted((*BUILT_IN, "MinePolicy")),)
    assert parse_config(document("MinePolicy")).kind == "StaticPolicy"


def test_an_unknown_kind_names_all_that_are_known(folder: Path) -> None:
    install(folder, pyproject("mine", "MinePolicy", "nowhere:KIND"))

    kinds = (
        "Balloons",
        "DynamicPools",
        "Mine",
        "None",
        "Podpools",
        "StaticPlus",
        "Static",
        "StaticPools",
    )
    expected = " or ".join(f"{kind}Policy" for kind in (*kinds, "TopologyAware"))
    assert mistake("zzz") == f"unknown value, expected {expected}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            "import not_there_at_all",
            "cannot be loaded: ModuleNotFoundError: No module named 'not_there_at_all'",
            id="a dependency is missing",
        ),
        pytest.param(
            "1 / 0",
            "cannot be loaded: ZeroDivisionError: division by zero",
            id="its module raises",
        ),
        pytest.param(
            "",
            "cannot be loaded: AttributeError: module 'broken_of_kinds' has no "
            "attribute 'KIND'",
            id="its object is missing",
        ),
        pytest.param(
            "KIND = 1", "is not a PolicyKind: broken_of_kinds:KIND", id="no kind"
        ),
        pytest.param(GOOD, "has another name: MinePolicy", id="another name"),
    ],
)
def test_a_broken_package_is_named_and_harms_no_other(
    folder: Path, text: str, why: str
) -> None:
    broken = pyproject("broken-package", "BrokenPolicy", "broken_of_kinds:KIND")
    install(folder, broken, broken_of_kinds=text)
    install(
        folder,
        pyproject("mine", "MinePolicy", "mine_of_kinds:KIND"),
        mine_of_kinds=GOOD,
    )

    assert mistake("BrokenPolicy") == f"BrokenPolicy of broken-package 1.2 {why}"
    assert parse_config(document("MinePolicy"))
    assert parse_config(document("StaticPolicy"))


def test_a_kind_that_is_no_policy_kind_builds_nothing(folder: Path) -> None:
    text = GOOD.replace("class Kind(PolicyKind)", "class Kind")
    install(
        folder,
        pyproject("mine", "MinePolicy", "mine_of_kinds:KIND"),
        mine_of_kinds=text,
    )

    with pytest.raises(
        BadSetting, match=r"MinePolicy of mine 1\.2 is not a PolicyKind"
    ):
        find_kind("MinePolicy")


def test_two_packages_of_one_kind_are_a_mistake(folder: Path) -> None:
    for name in ("one", "two"):
        install(
            folder,
            pyproject(name, "MinePolicy", "mine_of_kinds:KIND"),
            mine_of_kinds=GOOD,
        )

    assert (
        mistake("MinePolicy") == "MinePolicy is in several packages: one 1.2, two 1.2"
    )


def test_a_built_in_kind_cannot_be_replaced(folder: Path) -> None:
    install(folder, pyproject("mine", "StaticPolicy", "nowhere:KIND"))

    assert type(find_kind("StaticPolicy")).__module__ == "nri_resmgr.policies.static"
