"""What becomes of the runtimes' files where a plugin is required."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given

from nri_resmgr.runtimes import containerd, crio
from nri_resmgr.runtimes.containerd import MAIN, switched_back, switched_on
from nri_resmgr.runtimes.errors import NotEditable
from nri_resmgr.runtimes.switch import (
    MARK,
    TOLERATED,
    BadName,
    ConfigFile,
    FileChange,
    Requirement,
)
from nri_resmgr.runtimes.toml_edit import Value, parse
from tests.runtimes.containerd_files import (
    DEBIAN,
    DROP_IN,
    IMPORTS,
    NRI_2,
    NRI_3,
    STOCK_2,
    after,
    only,
)
from tests.runtimes.toml_documents import toml_documents

NAME: Final = "resource-policy"
TABLE: Final = "plugins.'io.containerd.nri.v1.nri'.default_validator"

# As `containerd config default` of 2.2 has it, in our words.
STOCK_2_2: Final = f"""\
{STOCK_2}
    [{TABLE}]
      enable = false
      reject_oci_hook_adjustment = true
      required_plugins = []
      tolerate_missing_plugins_annotation = ''

  [plugins.'io.containerd.runtime.v2.task']
    sched_core = false
"""


def wanted(plugin: str = NAME, annotation: str = "") -> dict[str, Value]:
    return containerd.KEYS.wanted(requirement=Requirement(plugin, annotation))


def validator_in(text: str | None) -> Any:
    plugins: Any = parse(MAIN, text or "")["plugins"]
    return plugins["io.containerd.nri.v1.nri"]["default_validator"]


def test_the_stock_file_is_edited_where_it_has_the_keys() -> None:
    change = switched_on(only(STOCK_2_2), wanted())

    assert change.after == STOCK_2_2.replace(
        "enable = false\n      reject", "enable = true\n      reject"
    ).replace("[]\n      tolerate", f'["{NAME}"]\n      tolerate').replace(
        "annotation = ''", f"annotation = '{TOLERATED}'"
    )


def test_a_file_without_the_table_gets_it_at_its_end() -> None:
    change = switched_on(only(f"version = 3\n{NRI_3}disable = false\n"), wanted())

    assert change.after == (
        f"version = 3\n{NRI_3}disable = false\n"
        f"\n[{TABLE}]\n"
        f'  enable = true\n  required_plugins = ["{NAME}"]\n'
        f'  tolerate_missing_plugins_annotation = "{TOLERATED}"\n'
    )


def test_a_drop_in_has_it_as_well() -> None:
    change = switched_on(only(f"version = 2\n{IMPORTS}"), wanted())

    assert (change.path, change.before) == (DROP_IN, None)
    assert change.after
    assert change.after.startswith(f"{MARK}version = 2\n\n{NRI_2}  disable = false\n")
    assert validator_in(change.after) == {
        "enable": True,
        "required_plugins": [NAME],
        "tolerate_missing_plugins_annotation": TOLERATED,
    }


def test_crio_has_names_of_its_own() -> None:
    keys = crio.KEYS.wanted(requirement=Requirement(f"90-{NAME}", "example.com"))
    change = crio.switched_on(crio.Crio(), keys)

    assert change.after == (
        f"{MARK}\n[crio.nri]\n  enable_nri = true\n\n[crio.nri.default_validator]\n"
        "  nri_enable_default_validator = true\n"
        f'  nri_validator_required_plugins = ["90-{NAME}"]\n'
        '  nri_validator_tolerate_missing_plugins_annotation = "example.com"\n'
    )
    ours = crio.Crio((ConfigFile(crio.Crio().drop_in, change.after),))
    assert crio.switched_on(ours, keys).is_none
    assert crio.switched_back(ours).after is None


def test_other_required_plugins_and_the_annotation_of_the_operator_stay() -> None:
    text = STOCK_2_2.replace("[]\n      tol", "['theirs', 'more']\n      tol").replace(
        "annotation = ''", "annotation = 'example.com'"
    )
    change = switched_on(only(text), wanted())
    again = switched_on(only(text), wanted("more", "nri-resmgr.io"))

    assert validator_in(change.after)["required_plugins"] == ["theirs", "more", NAME]
    assert validator_in(change.after)["tolerate_missing_plugins_annotation"] == (
        "example.com"
    )
    assert validator_in(change.after)["reject_oci_hook_adjustment"] is True
    assert validator_in(again.after)["required_plugins"] == ["theirs", "more"]
    assert validator_in(again.after)["tolerate_missing_plugins_annotation"] == (
        "nri-resmgr.io"
    )


def test_a_required_plugin_stays_when_only_times_are_changed() -> None:
    found = only(DEBIAN)
    for keys in (wanted(), containerd.KEYS.wanted("9s")):
        found = after(found, switched_on(found, keys))

    assert found.main
    assert validator_in(found.main.text)["required_plugins"] == [NAME]
    assert after(found, switched_back(found)) == only(DEBIAN)


@given(toml_documents())
def test_any_file_comes_back_to_the_byte(text: str) -> None:
    found = only(text)
    try:
        change = switched_on(found, wanted())
    except NotEditable:
        return
    done = after(found, change)

    assert validator_in(change.after)["required_plugins"] == [NAME]
    assert switched_on(done, wanted()).is_none
    assert after(done, switched_back(done)) == found


def test_costs_and_requirements_are_noted() -> None:
    ignored, refused = switched_on(only(STOCK_2_2), wanted()).notes

    assert "need containerd 2.2 or CRI-O 1.34" in ignored
    assert f'{TOLERATED}: "true"' in refused
    assert switched_on(only(STOCK_2_2), containerd.KEYS.wanted()).notes == ()


def test_an_inline_table_is_left() -> None:
    text = f"version = 3\n{NRI_3}default_validator = {{ enable = false }}\n"
    with pytest.raises(NotEditable):
        switched_on(only(text), wanted())


@pytest.mark.parametrize("name", ['"]', "a b", "a\n", "/pod"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(BadName):
        wanted(name)
    with pytest.raises(BadName):
        wanted(NAME, name)


def test_pods_alone_may_require_plugins() -> None:
    change = switched_on(only(STOCK_2_2), wanted(""))

    assert change.after == STOCK_2_2.replace(
        "enable = false\n      reject", "enable = true\n      reject"
    )
    assert [note[:24] for note in change.notes] == ["required plugins need co"]


def test_without_a_file_one_is_written() -> None:
    change = switched_on(containerd.Containerd(is_on=True), wanted())

    assert change == FileChange(MAIN, None, change.after, change.notes)
    assert validator_in(change.after)["enable"] is True
