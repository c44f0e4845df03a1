"""docs/configuration.md names every option, and its examples are right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from nri_resmgr.config import API_VERSION, BadSetting
from nri_resmgr.policies import parse_config

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
HEAD: Final = f"apiVersion: {API_VERSION}\nkind: "


def known_keys(kind: str) -> set[str]:
    """Return what the reader of *kind* says that it expects."""
    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}{kind}\nspec: {{'?': 1}}")
    _, _, keys = found.value.why.partition(", expected ")
    return set(keys.split(" or "))


def documented_keys(kind: str) -> set[str]:
    """Return what the first columns of the section's tables name."""
    _, _, section = TEXT.partition(f"\n## {kind}\n")
    section, _, _ = section.partition("\n## ")
    cells = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    names = (name for cell in cells for name in re.findall(r"`([\w.*]+)`", cell))
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize(
    "kind", ["BalloonsPolicy", "NonePolicy", "StaticPolicy", "TopologyAwarePolicy"]
)
def test_every_option_has_a_row(kind: str) -> None:
    assert known_keys(kind) <= documented_keys(kind)


def test_the_documents_of_the_guide_are_read() -> None:
    text = (ROOT / "docs" / "balloons.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(apiVersion.*?)```", text, re.DOTALL)

    assert [parse_config(block).ineffective for block in blocks] == [()]


def test_every_key_of_a_scheduling_class_has_a_row() -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(
            f"{HEAD}TopologyAwarePolicy\nspec: {{schedulingClasses: [{{'?': 1}}]}}"
        )

    _, _, keys = found.value.why.partition(", expected ")
    assert set(keys.split(" or ")) <= documented_keys("TopologyAwarePolicy")


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_the_examples_are_read(example: str) -> None:
    document = yaml.safe_load(example)
    if "kind" not in document:
        document = {
            "apiVersion": API_VERSION,
            "kind": "TopologyAwarePolicy",
            "spec": document,
        }

    parse_config(yaml.safe_dump(document))


@pytest.mark.parametrize(
    ("line", "spec"),
    [
        pytest.param(0, "{defaultCPUPriority: most}", id="a value"),
        pytest.param(1, "{colocatePod: true}", id="a key"),
        pytest.param(
            2,
            "{schedulingClasses: [{name: a, policy: fifo, priority: 100}]}",
            id="a number",
        ),
    ],
)
def test_the_messages_of_the_page_are_those_of_the_reader(line: int, spec: str) -> None:
    (block,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)

    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}TopologyAwarePolicy\nspec: {spec}")

    assert str(found.value) == block.splitlines()[line]
