"""The object that configures a node is that of the most specific name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.agent.choice import (
    CONFIG_MAP_NAMES,
    CUSTOM_RESOURCE_NAMES,
    Ambiguous,
    Choice,
    Chosen,
    ConfigObject,
    Nothing,
    NotReadable,
    Observation,
    Seen,
    Waiting,
    choose,
)

ABSENT, UNKNOWN = Seen.ABSENT, Seen.UNKNOWN
FORBIDDEN = NotReadable("a Role is missing")


def config(name: str, kind: str = "BalloonsPolicy") -> ConfigObject:
    return ConfigObject(kind, "kube-system", name, f"uid-{kind}-{name}", 1, "7", "")


NODE, GROUP, DEFAULT = config("node.a"), config("group.g"), config("default")
OTHER = config("default", "StaticPolicy")


@pytest.mark.parametrize(
    ("node", "group", "default", "expected"),
    [
        pytest.param([NODE], [GROUP], [DEFAULT], Chosen(NODE), id="that of the node"),
        pytest.param([ABSENT], [GROUP], [DEFAULT], Chosen(GROUP), id="of its group"),
        pytest.param([ABSENT], [ABSENT], [DEFAULT], Chosen(DEFAULT), id="the default"),
        pytest.param(
            [ABSENT],
            [ABSENT],
            [ABSENT],
            Nothing(("node.a", "group.g", "default")),
            id="none exists",
        ),
        pytest.param([UNKNOWN], [GROUP], [DEFAULT], Waiting(), id="not read yet"),
        pytest.param(
            [FORBIDDEN], [GROUP], [DEFAULT], Waiting(FORBIDDEN.why), id="not readable"
        ),
        pytest.param(
            [NODE], [FORBIDDEN], [UNKNOWN], Chosen(NODE), id="lower ones wait"
        ),
        pytest.param(
            [ABSENT, ABSENT],
            [ABSENT, ABSENT],
            [DEFAULT, OTHER],
            Ambiguous((DEFAULT, OTHER)),
            id="two kinds",
        ),
        pytest.param(
            [ABSENT, UNKNOWN],
            [ABSENT, ABSENT],
            [DEFAULT, ABSENT],
            Waiting(),
            id="the other kind is not read yet",
        ),
        pytest.param(
            [NODE, FORBIDDEN],
            [ABSENT, ABSENT],
            [ABSENT, ABSENT],
            Chosen(NODE),
            id="one kind is enough",
        ),
    ],
)
def test_the_most_specific_name_is_chosen(
    node: list[Observation],
    group: list[Observation],
    default: list[Observation],
    expected: Choice,
) -> None:
    seen = {"node.a": node, "group.g": group, "default": default}

    assert choose(("node.a", "group.g", "default"), seen) == expected


def test_an_ambiguous_choice_names_both_objects_and_the_remedy() -> None:
    assert str(Ambiguous((DEFAULT, OTHER))) == (
        "BalloonsPolicy kube-system/default and StaticPolicy kube-system/default both "
        "apply to this node: delete all but one of them"
    )


@pytest.mark.parametrize(
    ("labels", "fall_through", "names"),
    [
        pytest.param({}, False, ["default"], id="no group"),
        pytest.param({"config.nri/group": "g"}, False, ["group.g"], id="a group"),
        pytest.param({"config.nri/group": ""}, False, ["default"], id="an empty one"),
        pytest.param(
            {"config.nri/group": "g"}, True, ["group.g", "default"], id="and below"
        ),
        pytest.param(
            {"group.config.nri": "old"}, False, ["group.old"], id="deprecated"
        ),
        pytest.param(
            {"group.config.nri": "old", "config.nri/group": "g"},
            False,
            ["group.g"],
            id="the new label first",
        ),
        pytest.param(
            {"cri-resource-manager.intel.com/group": "g"},
            False,
            ["default"],
            id="a label of the other source",
        ),
    ],
)
def test_a_labelled_node_has_its_group_only(
    labels: dict[str, str],
    fall_through: bool,  # noqa: FBT001 - a row of the table
    names: list[str],
) -> None:
    found = CUSTOM_RESOURCE_NAMES.shared(labels, fall_through=fall_through)

    assert found == names
    assert CUSTOM_RESOURCE_NAMES.of_node("a") == "node.a"


def test_config_maps_have_the_names_of_cri_resource_manager() -> None:
    labels = {"cri-resource-manager.intel.com/group": "g"}
    names = CONFIG_MAP_NAMES.shared(labels, fall_through=False)

    assert names == ["cri-resmgr-config.group.g"]
    assert CONFIG_MAP_NAMES.of_node("a") == "cri-resmgr-config.node.a"


OBSERVATIONS = st.sampled_from([ABSENT, UNKNOWN, FORBIDDEN, "object"])


@given(st.lists(st.lists(OBSERVATIONS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_an_object_is_chosen_only_if_no_other_one_can_count(
    levels: list[list[Seen | NotReadable | str]],
) -> None:
    names = [f"level-{place}" for place in range(len(levels))]
    seen: dict[str, list[Observation]] = {
        name: [
            config(name, f"Kind{place}") if isinstance(one, str) else one
            for place, one in enumerate(level)
        ]
        for name, level in zip(names, levels, strict=True)
    }
    found = choose(names, seen)

    # Independent of the order of the code: whatever an unknown one turns out to be.
    first = next(
        (i for i, level in enumerate(levels) if level != [ABSENT] * len(level)), None
    )
    match found:
        case Chosen(one):
            assert first is not None
            assert names[first] == one.name
            assert UNKNOWN not in levels[first]
            assert levels[first].count("object") == 1
        case Ambiguous(several):
            assert first is not None
            assert len(several) == levels[first].count("object") > 1
        case Nothing():
            assert first is None
        case Waiting():
            assert first is not None
            assert UNKNOWN in levels[first] or "object" not in levels[first]
