"""A pod, or a document, costs little time and memory whatever is written in it."""

from __future__ import annotations

import contextlib
import gc
import json
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.app.adjustments.read import read_adjustments
from nri_resmgr.config import BadSyntax
from nri_resmgr.config.syntax import MAX_TEXT, parse_yaml
from nri_resmgr.policies import parse_config
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.values import InputError, ResmgrError
from tests.fuzz import samples

pytestmark = pytest.mark.slow


KIB: Final = 1 << 10
OURS: Final = "resource-policy.nri.io"
ROOM: Final = 250 * KIB  # of 256 that a pod has for annotations

# Of a CPU, of which the machines of tests have a part; a runtime waits for 2 seconds.
SECONDS: Final = 1.0


def affinity(rules: str) -> dict[str, str]:
    return {f"{OURS}/affinity": f"new: [{rules}]"}


def rule(key: str, operator: str, *values: str) -> str:
    listed = json.dumps(values)
    return f"{{match: {{key: {key}, operator: {operator}, values: {listed}}}}}"


# By what a pod has them, each another one for each number.
BOMBS: Final[Mapping[str, Callable[[int], Mapping[str, str]]]] = {
    "unknown keys": lambda n: {f"k{n}-{i}.{OURS}": "" for i in range(8_000)},
    "keys of no container": lambda n: {
        f"memory-type.{OURS}/{n}-{i}": "" for i in range(6_000)
    },
    "keys for others": lambda n: {
        f"memory-type.{OURS}/container.{n}-{i}": "" for i in range(5_000)
    },
    "a bad value": lambda n: {f"memory-type.{OURS}": f"{n}" * (ROOM // len(f"{n}"))},
    "digits": lambda n: {f"toptierlimit.{OURS}": f"{n + 1}" + "9" * ROOM},
    "brackets": lambda n: {f"{OURS}/affinity": f"{n}: " + "[" * ROOM},
    "brackets that fit": lambda n: {f"{OURS}/affinity": f"{n}: " + "[" * 16_000},
    "laughs": lambda n: {f"{OURS}/affinity": laughs(n)},
    "many rules": lambda n: affinity(", ".join([rule(f"a{n}", "Exists")] * 350)),
    "a long glob": lambda n: affinity(rule("name", "Matches", f"{n}" + "*a" * 7_000)),
    "long globs": lambda n: affinity(
        ", ".join(rule("name", "Matches", f"{n}-{i}" + "*a" * 220) for i in range(30))
    ),
    "a long key": lambda n: affinity(rule(":name" * 3_000 + f"{n}", "Exists")),
    "a book": lambda n: {f"example.com/{n}": "x" * ROOM},
    "small talk": lambda n: {f"example.com/{n}-{i}": "x" for i in range(12_000)},
    "deep resources": lambda _: {"noderesource.dev/resources": '{"a":' * 40_000},
    "many resources": lambda n: {
        "noderesource.dev/resources": json.dumps(
            {"containers": {f"c{n}-{i}": {} for i in range(1_500)}}
        )
    },
}


def laughs(number: int) -> str:
    """Write a short text that stands for a billion words."""
    rows = [f"a: &a0 [x{number}]"]
    rows += [
        f"b{depth}: &a{depth} [{', '.join([f'*a{depth - 1}'] * 10)}]"
        for depth in range(1, 10)
    ]
    return "\n".join(rows)


def merges() -> str:
    """Write mappings that each take over ten times all of the one before."""
    rows = ["a: &a0 {x: 0}"]
    for depth in range(1, 10):
        parts = ", ".join([f"*a{depth - 1}"] * 10)
        rows.append(f"b{depth}: &a{depth} {{<<: [{parts}]}}")
    return "\n".join(rows)


def resident() -> int:
    """Return our resident memory, MiB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 // KIB


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "BalloonsPolicy"])
def test_a_pod_takes_a_moment_at_most(kind: str, name: str) -> None:
    policy = samples.fresh_policy(kind)
    pod, container = samples.pod("new", dict(BOMBS[name](0))), samples.container("new")
    begun = time.thread_time()

    policy.run_pod_sandbox(pod)
    with contextlib.suppress(ResmgrError):
        policy.create_container(pod, container)
    policy.remove_pod_sandbox(pod)

    assert time.thread_time() - begun < SECONDS


@pytest.mark.slow  # thirty pods for each
@pytest.mark.parametrize("name", BOMBS)
def test_removed_pods_leave_nothing_behind(name: str) -> None:
    policy = samples.fresh_policy("TopologyAwarePolicy")
    before = resident()

    for number in range(30):
        pod = samples.pod(f"new{number}", dict(BOMBS[name](number)))
        policy.run_pod_sandbox(pod)
        with contextlib.suppress(ResmgrError):
            policy.create_container(pod, samples.container(f"new{number}"))
        policy.remove_pod_sandbox(pod)

    assert resident() - before < 24


@pytest.mark.parametrize("read", [parse_config, read_workload])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * MAX_TEXT, id="a word"),
        pytest.param("a" + "\n" * (MAX_TEXT - 2) + "b", id="lines without words"),
        pytest.param("#\n" * (MAX_TEXT // 2), id="remarks"),
        pytest.param("? " + "k" * (MAX_TEXT - 2), id="a key"),
        pytest.param("!" + "t" * (MAX_TEXT - 1), id="a tag"),
        pytest.param('"' + "a\n" * (MAX_TEXT // 2 - 1), id="a quotation without end"),
        pytest.param("a: |\n" + "  a\n" * (MAX_TEXT // 4 - 2), id="a poem"),
    ],
)
def test_the_longest_document_takes_a_moment(
    read: Callable[[str], object], text: str
) -> None:
    begun = time.thread_time()

    with contextlib.suppress(InputError):
        read(text)

    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize("read", [parse_config, read_workload])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(laughs(0), "more than 100000 values", id="a billion laughs"),
        pytest.param(merges(), "more than 100000 values", id="merges"),
        pytest.param("a: &a [*a]", "contains itself", id="a part of itself"),
        pytest.param("[" * 100_000, "levels deep", id="brackets"),
        pytest.param("[" + "1," * 200_000 + "]", "more than 100000 values", id="list"),
        pytest.param("a" * (3 << 20), "characters, expected at most", id="a book"),
    ],
)
def test_a_document_that_goes_off_is_refused(
    read: Callable[[str], object], text: str, why: str
) -> None:
    begun = time.thread_time()

    with pytest.raises(BadSyntax, match=why):
        read(text)

    assert time.thread_time() - begun < SECONDS


def test_many_adjustments_take_little_more_than_their_yaml() -> None:
    row = "- {{apiVersion: config.nri/v1alpha1, metadata: {{name: a{}}}}}\n"
    text = "".join(row.format(at) for at in range(14_000))
    times = [time.thread_time()]
    parse_yaml(text)
    times.append(time.thread_time())
    read_adjustments(text, "n")
    times.append(time.thread_time())
    alone, whole = (after - before for before, after in pairwise(times))

    assert whole < 3 * alone
