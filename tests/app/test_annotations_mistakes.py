from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.annotations import (
    AnnotationProblem,
    BadAnnotation,
    Reading,
    Refused,
    read_preferences,
)
from nri_resmgr.app.annotations.keys import AFFINITY_KEYS, KEYS
from nri_resmgr.policy.preferences import Preferences

NATIVE = "resource-policy.nri.io"
CRI_RM = "cri-resource-manager.intel.com"

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("require-isolated-cpus", "always", "'always' is not true or false"),
        ("require-isolated-cpus", "", "'' is not true or false"),
        ("strict.topologyhints", "always", "'always' is not true or false"),
        ("cpu.preserve", "on", "'on' is not true or false"),
        ("memory.preserve", "2", "'2' is not true or false"),
    ],
)
def test_a_strict_annotation_that_is_misread_refuses(
    key: str, value: str, why: str
) -> None:
    name = f"{key}.{NATIVE}/pod"

    with pytest.raises(BadAnnotation) as refused:
        read_preferences({name: value}, "web", pod="sales/shop")

    assert str(refused.value) == f"sales/shop/web: annotation {name}: {why}"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("prefer-isolated-cpus", "ja", "'ja' is not true or false"),
        ("prefer-shared-cpus", " true", "' true' is not true or false"),
        ("prefer-reserved-cpus", "off", "'off' is not true or false"),
        ("hide-hyperthreads", "2", "'2' is not true or false"),
        ("pick-resources-by-hints", "on", "'on' is not true or false"),
        (
            "prefer-cpu-priority",
            "highest",
            "'highest' is not any of high, normal, low, none or default",
        ),
        (
            "memory-type",
            "dram,sram",
            "'sram' is not a kind of memory: dram, pmem, hbm, cxl or mixed",
        ),
        (
            "memory-type",
            "",
            "'' is not a kind of memory: dram, pmem, hbm, cxl or mixed",
        ),
        ("cold-start", "60s", "$: expected a mapping, not '60s'"),
        ("cold-start", "time: 60s", "$.time: unknown key, expected duration"),
        ("cold-start", "duration: 60", "$.duration: expected text, not 60"),
        (
            "cold-start",
            "duration: '60'",
            "'60' is not a duration such as 90s or 1m30s",
        ),
        ("cold-start", "duration: 61m", "'61m' is not a duration of 0s to 1h"),
        ("cold-start", "duration: 1h1ns", "'1h1ns' is not a duration of 0s to 1h"),
        (
            "cold-start",
            "duration: -5s",
            "'-5s' is not a duration such as 90s or 1m30s",
        ),
        (
            "unlimited-burstable",
            "socket",
            "'socket' is not any of system, package, die, numa or l3cache",
        ),
        (
            "scheduling-class",
            "real time",
            "'real time' is not the name of a class, without blanks",
        ),
        (
            "topologyhints",
            "mounts,gpus",
            "'mounts,gpus' is not true, false, or a list of mounts, devices, pod-",
        ),
        (
            "deny.topologyhints",
            "paths: [/]",
            "$.type: missing, expected prefix or glob",
        ),
        ("deny.topologyhints", "type: any\npaths: [/]", "$.type: unknown value, "),
        ("deny.topologyhints", "type: glob", "$.paths: missing, expected a list of"),
        (
            "allow.topologyhints",
            "{type: glob, paths: /}",
            "$.paths: expected a list",
        ),
        (
            "test.topologyhints",
            "gpu: {CPUs: 0}",
            "'gpu: {CPUs: 0}' is not accepted out",
        ),
        ("toptierlimit", "much", "bad quantity 'much': not a number with a Kubernetes"),
    ],
)
def test_any_other_misread_annotation_is_ignored(
    key: str, value: str, why: str
) -> None:
    name = f"{key}.{NATIVE}"

    reading = read_preferences({name: value}, "web")

    (problem,) = reading.problems
    assert problem.why.startswith(why)
    assert reading == Reading(problems=(AnnotationProblem(name, value, problem.why),))


def test_an_invalid_hint_for_tests_is_reported() -> None:
    reading = read_preferences(
        {f"test.topologyhints.{NATIVE}": "gpu: {CPUs: first}"}, "web", testing=True
    )

    assert reading.problems[0].why.startswith("$.gpu: not a CPU or node list: 'first'")


@pytest.mark.parametrize(
    ("key", "why"),
    [
        pytest.param(
            f"prefer-isolated-cpu.{NATIVE}",
            "unknown key, did you mean prefer-isolated-cpus?",
            id="nearly a key",
        ),
        pytest.param(
            f"x.{CRI_RM}/pod",
            "unknown key, expected prefer-reserved-cpus or ",
            id="none",
        ),
        pytest.param(
            f"{NATIVE}/afinity", "unknown key, did you mean /affinity?", id="behind it"
        ),
        pytest.param(
            f"{NATIVE}/memory-type", "unknown key, did you mean ", id="CRI-RM's only"
        ),
        pytest.param(
            f"hide-hyperthreads.{NATIVE}/web",
            "for no container, expected /pod or /container.NAME at its end",
            id="a container without the word",
        ),
        pytest.param(
            f"hide-hyperthreads.{NATIVE}/container.",
            "for no container, expected /pod or /container.NAME at its end",
            id="a container without a name",
        ),
    ],
)
def test_an_unknown_key_is_reported(key: str, why: str) -> None:
    reading = read_preferences({key: "true"}, "web")

    (problem,) = reading.problems
    assert problem.why.startswith(why)
    assert reading == Reading(problems=(AnnotationProblem(key, "true", problem.why),))


@pytest.mark.parametrize(
    "key",
    [
        f"balloon.static-pools.{NATIVE}/pod",
        f"pool.static-pools.{CRI_RM}/pod",
        f"misc-limit.{NATIVE}/container.web",
        f"dynamic-pool.static-pools.{CRI_RM}",
        f"x{NATIVE}",
        f"example.com/{NATIVE}",
        "class.memory-qos.nri.io",
        "intel.com/resources",
    ],
)
def test_keys_of_other_programs_are_ignored(key: str) -> None:
    assert read_preferences({key: "x"}, "web") == Reading()


def test_a_long_value_is_shown_by_its_beginning() -> None:
    reading = read_preferences({f"hide-hyperthreads.{NATIVE}": "x" * 81}, "web")

    assert reading.problems[0].why == f"'{'x' * 80}...' is not true or false"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 9999, id="deep"),
        pytest.param("web: [db]\n" * 9999, id="long"),
        pytest.param(f"web: [{{weight: {DIGITS}}}]", id="many digits"),
        pytest.param(f"web: [{{weight: 0x{DIGITS}}}]", id="many digits, in base 16"),
        pytest.param(
            f"web: [{{match: {{key: 0x{DIGITS}, operator: Exists}}}}]",
            id="more digits than Python prints",
        ),
        pytest.param("b: &b [web]\nweb: *b", id="a reference"),
        pytest.param(
            "a: &a [&x {match: {key: name, operator: In, values: [b, b]}}, *x]\n"
            f"web: [{'*a, ' * 5000}]",
            id="references to references",
        ),
        pytest.param(f"a: &a [web]\nweb: *a\n{'b: *a' * 3000}", id="the same often"),
        pytest.param("web: &a [*a]", id="a list in itself"),
        pytest.param(
            "web: [{match: {key: name, operator: Matches, values: "
            f"['{'[a' * 7000}']}}}}]",
            id="brackets without an end",
        ),
        pytest.param("web: !!python/object:os.system [x]", id="a foreign tag"),
        pytest.param("web: [2026-02-31]", id="a date that is none"),
        pytest.param("web: ['\x00']", id="signs that YAML does not have"),
        pytest.param("a: 1\n---\nb: 2", id="two documents"),
        pytest.param("? [a]\n: b", id="a list for a key"),
    ],
)
def test_hostile_texts_are_soon_refused(text: str) -> None:
    start = time.monotonic()
    reading = read_preferences({f"{NATIVE}/affinity": text}, "web")

    assert [problem.key for problem in reading.problems] == [f"{NATIVE}/affinity"]
    assert reading.preferences == Preferences()
    assert time.monotonic() - start < 1


NAMES = st.sampled_from(
    [f"{key}.{NATIVE}{scope}" for key in KEYS for scope in ("", "/container.web")]
    + [f"{space}{key}" for key in AFFINITY_KEYS for space in (NATIVE, CRI_RM)]
    + [f"{CRI_RM}/{key}" for key in ("cold-start", "memory-type")]
)
WORDS = st.sampled_from(
    [
        *("true", "web", ": ", "[", "]", "{", "}", "\n", "- ", "match", "operator"),
        *("key", "In", "values", ",", "1", "duration", "60s", "&a ", "*a", "type"),
        *("glob", "0x"),
    ]
)


@given(
    st.dictionaries(
        NAMES, st.text() | st.lists(WORDS).map("".join), min_size=1, max_size=4
    )
)
def test_any_text_is_read_or_refused(annotations: dict[str, str]) -> None:
    reading = read_preferences(annotations, "web", refuse=Refused.NONE, testing=True)

    assert {problem.key for problem in reading.problems} <= set(annotations)
    strict = [problem for problem in reading.problems if problem.strict]
    if strict:
        with pytest.raises(BadAnnotation):
            read_preferences(annotations, "web", testing=True)
