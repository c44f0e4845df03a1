from __future__ import annotations

import pytest

from nri_resmgr.app.annotations import AnnotationProblem, Reading, read_preferences
from nri_resmgr.policy.affinity import Affinity, Expression, Operator
from nri_resmgr.policy.preferences import Preferences

KEY = "resource-policy.nri.io/affinity"
ANTI_KEY = "resource-policy.nri.io/anti-affinity"
CRI_RM_KEY = "cri-resource-manager.intel.com/affinity"

DB = Expression("name", Operator.EQUALS, ("db",))
CACHE = Expression("name", Operator.EQUALS, ("cache",))


def rules(text: str, key: str = KEY) -> tuple[Affinity, ...]:
    reading = read_preferences({key: text}, "web")
    assert reading == Reading(Preferences(affinities=reading.preferences.affinities))
    return reading.preferences.affinities


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("web: [db]", [Affinity(DB)], id="one name"),
        pytest.param(
            "web: [db, cache]",
            [Affinity(Expression("name", Operator.IN, ("cache", "db")))],
            id="several names",
        ),
        pytest.param("db: [web]", [Affinity(DB)], id="the other side of a pair"),
        pytest.param(
            "db: [web, cache]\ncache: [web]",
            [Affinity(Expression("name", Operator.IN, ("cache", "db")))],
            id="two others name it",
        ),
        pytest.param(
            "web: [db]\ndb: [web]", [Affinity(DB)], id="both sides count once"
        ),
        pytest.param("web: [web]", [], id="not itself"),
        pytest.param("db: [cache]", [], id="others among themselves"),
        pytest.param("web:", [], id="none"),
        pytest.param("", [], id="an empty text"),
    ],
)
def test_the_short_notation(text: str, found: list[Affinity]) -> None:
    assert rules(text) == tuple(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            "web:\n- match:\n    key: name\n    operator: Equals\n    values: [db]\n",
            Affinity(DB),
            id="the defaults",
        ),
        pytest.param(
            "web:\n"
            "  - scope:\n"
            "      key: pod/labels/app.kubernetes.io/part-of\n"
            "      operator: Matches\n"
            "      values:\n"
            "        - shop-*\n"
            "    match:\n"
            "      key: ':,:pod/qosclass,name'\n"
            "      operator: MatchesAny\n"
            "      values: [Guaranteed:*, 8]\n"
            "    weight: 10\n",
            Affinity(
                Expression(
                    ":,:pod/qosclass,name", Operator.MATCHES_ANY, ("Guaranteed:*", "8")
                ),
                Expression(
                    "pod/labels/app.kubernetes.io/part-of",
                    Operator.MATCHES,
                    ("shop-*",),
                ),
                10,
            ),
            id="everything",
        ),
        pytest.param(
            "web: [{match: {key: labels/gpu, operator: NotExists}}]",
            Affinity(Expression("labels/gpu", Operator.NOT_EXIST)),
            id="the operator as CRI-RM documents it",
        ),
        pytest.param(
            "web: [{match: {operator: AlwaysTrue}, scope: {operator: AlwaysTrue}}]",
            Affinity(
                Expression("", Operator.ALWAYS_TRUE),
                Expression("", Operator.ALWAYS_TRUE),
            ),
            id="what is always true needs no key",
        ),
    ],
)
@pytest.mark.parametrize("key", [KEY, CRI_RM_KEY])
def test_the_full_notation(text: str, found: Affinity, key: str) -> None:
    assert rules(text, key) == (found,)


@pytest.mark.parametrize(
    ("written", "attracts", "repels"),
    [
        pytest.param("", 1, -1, id="without a weight"),
        pytest.param("weight: 7", 7, -7, id="its own"),
        pytest.param("weight: -7", -7, 7, id="turned round by hand"),
        pytest.param("weight: 0", 0, 0, id="nothing"),
        pytest.param("weight: 1000", 1000, -1000, id="the heaviest"),
        pytest.param("weight: 1001", 1000, -1000, id="too heavy"),
        pytest.param("weight: -9999", -1000, 1000, id="too heavy the other way"),
    ],
)
def test_weights(written: str, attracts: int, repels: int) -> None:
    text = f"web: [{{match: {{key: name, operator: Equals, values: [db]}}, {written}}}]"

    assert rules(text, KEY) == (Affinity(DB, weight=attracts),)
    assert rules(text, ANTI_KEY) == (Affinity(DB, weight=repels),)


def test_short_and_full_entries_side_by_side() -> None:
    text = "web: [cache, {match: {key: name, operator: Equals, values: [db]}}]"

    assert rules(text, ANTI_KEY) == (
        Affinity(DB, weight=-1),
        Affinity(CACHE, weight=-1),
    )


def test_full_rules_are_not_symmetric() -> None:
    text = "db: [{match: {key: name, operator: Equals, values: [web]}}]"

    assert rules(text) == ()


EITHER = (
    "Equals or NotEqual or In or NotIn or Exists or NotExist or AlwaysTrue or "
    "Matches or MatchesNot or MatchesAny or MatchesNone"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[web", "line 2: ", id="no YAML"),
        pytest.param("web", "$: expected a mapping", id="no mapping"),
        pytest.param("web: db", "$.web: expected a list", id="no list"),
        pytest.param("db: web", "$.db: expected a list", id="another's is no list"),
        pytest.param(
            "web: [1]", "$.web[0]: expected a mapping, not 1", id="no name in it"
        ),
        pytest.param(
            "web: [[db]]", "$.web[0]: expected a mapping, not a list", id="a list in it"
        ),
        pytest.param(
            "web: [{}]", "$.web[0].match: missing, expected", id="nothing to match"
        ),
        pytest.param(
            "web: [{wieght: 1}]",
            "$.web[0].wieght: unknown key, did you mean weight?",
            id="an unknown key",
        ),
        pytest.param(
            "web: [{match: {key: name, op: Exists}}]",
            "$.web[0].match.op: unknown key, ",
            id="an unknown key further in",
        ),
        pytest.param(
            "web: [{match: {key: name}}]",
            f"$.web[0].match.operator: missing, expected {EITHER}",
            id="no operator",
        ),
        pytest.param(
            "web: [{match: {key: name, operator: Exist}}]",
            "$.web[0].match.operator: unknown value, did you mean Exists?",
            id="an unknown operator",
        ),
        pytest.param(
            "web: [{match: {operator: Exists}}]",
            "$.web[0].match: unknown key '', expected name, namespace,",
            id="no key",
        ),
        pytest.param(
            "web: [{match: {key: pod/app, operator: Exists}}]",
            "$.web[0].match: unknown key 'pod/app', expected name, namespace,",
            id="a key that is none",
        ),
        pytest.param(
            "web: [{match: {key: name, operator: Equals, values: [a, b]}}]",
            "$.web[0].match: Equals takes exactly one value, not 2",
            id="too many values",
        ),
        pytest.param(
            "web: [{match: {key: name, operator: In, values: [1.5]}}]",
            "$.web[0].match.values[0]: expected text; write it in quotes",
            id="a value that may be written in several ways",
        ),
        pytest.param(
            "web: [{weight: heavy, match: {key: name, operator: Exists}}]",
            "$.web[0].weight: expected a whole number, -1000 to 1000",
            id="no number",
        ),
        pytest.param(
            "web: [{weight: yes, match: {key: name, operator: Exists}}]",
            "$.web[0].weight: expected a whole number, -1000 to 1000",
            id="a truth value",
        ),
        pytest.param(
            "web: [db, {scope: {operator: Always}, match: {operator: AlwaysTrue}}]",
            "$.web[1].scope.operator: unknown value, did you mean AlwaysTrue?",
            id="a scope that is none",
        ),
    ],
)
def test_an_invalid_rule_is_reported_and_has_no_effect(text: str, why: str) -> None:
    reading = read_preferences({KEY: text}, "web")

    (problem,) = reading.problems
    assert problem.why.startswith(why)
    assert reading == Reading(problems=(AnnotationProblem(KEY, text, problem.why),))


def test_mistakes_in_rules_of_other_containers_are_not_reported() -> None:
    assert rules("web: [db]\ndb: [{}]") == (Affinity(DB),)
