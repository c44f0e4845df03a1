from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.affinity import (
    BadValueCount,
    Expression,
    Operator,
    UnknownAffinityKey,
    split_key,
)
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import predicate_of, reader_of
from nri_resmgr.values import QosClass
from nri_resmgr.values.globs import BadGlob

WEB = ContainerSpec(
    id="c1",
    pod="p1",
    namespace="sales",
    qos=QosClass.BURSTABLE,
    name="web",
    pod_name="shop",
    pod_uid="u-1",
    labels={"tier": "front", "example.com/part": "ui", "empty": ""},
    tags={"build": "7/a"},
    pod_labels={"app": "shop", "example.com/part": "all"},
    pod_tags={"owner": "me"},
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "web"),
        ("namespace", "sales"),
        ("qosclass", "Burstable"),
        ("id", "c1"),
        ("uid", "u-1"),
        ("labels/tier", "front"),
        ("labels/example.com/part", "ui"),
        ("labels/empty", ""),
        ("labels/absent", None),
        ("tags/build", "7/a"),
        ("tags/absent", None),
        ("pod/name", "shop"),
        ("pod/namespace", "sales"),
        ("pod/qosclass", "Burstable"),
        ("pod/id", "p1"),
        ("pod/uid", "u-1"),
        ("pod/labels/app", "shop"),
        ("pod/labels/example.com/part", "all"),
        ("pod/tags/owner", "me"),
        pytest.param("example.com/part", "ui", id="a label by its name alone"),
        pytest.param("pod/example.com/part", "all", id="the pod's by its name alone"),
        pytest.param(":pod/name:name", "shop:web", id="two keys"),
        pytest.param(":,-pod/name,name,id", "shop-web-c1", id="own separators"),
        pytest.param(":::pod/name:name", "shop:web", id="the usual ones, said aloud"),
        pytest.param(":.:name", ":web", id="a dot divides nothing"),
        pytest.param(":labels/absent:name", ":web", id="one of two keys"),
        pytest.param(":labels/absent:tags/absent", None, id="none of two keys"),
    ],
)
def test_a_key_selects_its_value(key: str, value: str | None) -> None:
    assert reader_of(key)(WEB) == value


@pytest.mark.parametrize(
    "key", ["name", "namespace", "id", "uid", "pod/name", "pod/namespace", "pod/id"]
)
def test_an_unreported_value_does_not_exist(key: str) -> None:
    assert reader_of(key)(ContainerSpec(id="")) is None


@pytest.mark.parametrize(
    "key",
    [
        *("", "Name", "labels", "labels/", "pod", "pod/", "pod/app", "pod/pod/name"),
        *(":a:b", ":,name", ":name:", "pod/labels/", "app/a.b", ":", ":,", ":,,"),
    ],
)
def test_an_unknown_key_is_refused(key: str) -> None:
    with pytest.raises(UnknownAffinityKey, match="expected name, namespace"):
        split_key(key)


@pytest.mark.parametrize(
    ("operator", "values", "answer"),
    [
        (Operator.EQUALS, ("web",), True),
        (Operator.EQUALS, ("db",), False),
        (Operator.EQUALS, ("*",), True),
        (Operator.IN, ("db", "web"), True),
        (Operator.IN, ("db", "cache"), False),
        (Operator.IN, ("db", "*"), True),
        (Operator.EXISTS, (), True),
        (Operator.MATCHES, ("w?b",), True),
        (Operator.MATCHES, ("W*",), False),
        (Operator.MATCHES, ("[^a-v]eb",), True),
        (Operator.MATCHES, ("[^w]eb",), False),
        (Operator.MATCHES_ANY, ("d*", "w*"), True),
        (Operator.MATCHES_ANY, ("d*", "c*"), False),
        (Operator.NOT_EQUAL, ("web",), False),
        (Operator.NOT_EQUAL, ("db",), True),
        (Operator.NOT_IN, ("db", "web"), False),
        (Operator.NOT_IN, ("db", "cache"), True),
        (Operator.NOT_EXIST, (), False),
        (Operator.MATCHES_NOT, ("w*",), False),
        (Operator.MATCHES_NOT, ("d*",), True),
        (Operator.MATCHES_NONE, ("d*", "w*"), False),
        (Operator.MATCHES_NONE, ("d*", "c*"), True),
        (Operator.ALWAYS_TRUE, (), True),
    ],
)
def test_each_operator_evaluates_its_values(
    operator: Operator,
    values: tuple[str, ...],
    answer: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert predicate_of(Expression("name", operator, values))(WEB) is answer


NEGATED = (
    Operator.NOT_EQUAL,
    Operator.NOT_IN,
    Operator.NOT_EXIST,
    Operator.MATCHES_NOT,
    Operator.MATCHES_NONE,
)


@pytest.mark.parametrize("operator", Operator)
def test_without_the_key_only_negations_are_true(operator: Operator) -> None:
    expected = operator in (*NEGATED, Operator.ALWAYS_TRUE)

    actual = predicate_of(Expression("labels/absent", operator, ("*",)))(WEB)

    assert actual is expected


@given(st.lists(st.sampled_from(["web", "w*", "db", "*", ""]), min_size=1))
def test_every_negation_is_the_opposite(values: list[str]) -> None:
    pairs = zip(
        NEGATED,
        (
            Operator.EQUALS,
            Operator.IN,
            Operator.EXISTS,
            Operator.MATCHES,
            Operator.MATCHES_ANY,
        ),
        strict=True,
    )
    for negation, plain in pairs:
        for key in ("name", "labels/absent"):
            no = predicate_of(Expression(key, negation, tuple(values)))(WEB)
            yes = predicate_of(Expression(key, plain, tuple(values)))(WEB)

            assert no is not yes


GLOBS = st.text("ab*?[]!-^&~|(.\\{:", max_size=9)


@given(st.lists(GLOBS, min_size=1, max_size=3), st.text("ab[]-^(.", max_size=5))
def test_any_text_is_a_glob(globs: list[str], name: str) -> None:
    spec = ContainerSpec(id="c", name=name or "a")
    asked = Expression("name", Operator.MATCHES_ANY, tuple(globs))

    expected = any(fnmatchcase(spec.name, one.replace("[^", "[!")) for one in globs)
    assert predicate_of(asked)(spec) is expected


@pytest.mark.parametrize(
    ("operator", "count", "accepted"),
    [
        (Operator.EQUALS, 0, "exactly one value"),
        (Operator.NOT_EQUAL, 2, "exactly one value"),
        (Operator.MATCHES, 2, "exactly one value"),
        (Operator.MATCHES_NOT, 0, "exactly one value"),
        (Operator.EXISTS, 1, "no values"),
        (Operator.NOT_EXIST, 1, "no values"),
        (Operator.IN, 0, "at least one value"),
        (Operator.MATCHES_NONE, 0, "at least one value"),
    ],
)
def test_how_many_values_an_operator_takes(
    operator: Operator, count: int, accepted: str
) -> None:
    with pytest.raises(BadValueCount, match=f"{operator} takes {accepted}, not"):
        Expression("name", operator, ("x",) * count).check()


@pytest.mark.parametrize("glob", ["[", "a[b", "[]", "[!]", "[^]", "[a]["])
def test_a_set_without_an_end_is_no_glob(glob: str) -> None:
    with pytest.raises(BadGlob, match="a set begins with"):
        Expression("name", Operator.MATCHES_ANY, ("*", glob)).check()


@pytest.mark.parametrize("glob", ["", "*", "[a]", "[]]", "[!]]", "[^a-z]", "]", "[[]"])
def test_sets_with_an_end_are_globs(glob: str) -> None:
    Expression("name", Operator.MATCHES, (glob,)).check()


def test_always_true_needs_no_key() -> None:
    Expression("", Operator.ALWAYS_TRUE).check()
