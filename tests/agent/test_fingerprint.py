"""The fingerprint of pods is that of the scheduler's library."""

from __future__ import annotations

from itertools import islice, permutations

import pytest

from nri_resmgr.agent.fingerprint import fingerprint_of
from nri_resmgr.agent.xxhash64 import xxhash64

# Source: data of the tests of k8stopologyawareschedwg/podfingerprint, with signatures.
THREE = [("production", one) for one in ("jaeger-dpgjk", "nginx-rt684", "envoy-g9m22")]
TEN = [
    ("analytics", "controller-69dkj"),
    ("kube-public", "subscriber-tq6v7"),
    ("kube-public", "transformer-hfbng"),
    ("kube-public", "validator-c6pn5"),
    ("kube-system", "proxy-wszrd"),
    ("middleware", "processor-jkrl4"),
    ("network", "gateway-vsll5"),
    ("network", "importer-kzdfr"),
    ("network", "importer-q5vt9"),
    ("staging", "prometheus-bwgbn"),
]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        # Longer than a stripe of 32 bytes, with a rest of each kind.
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_is_as_published(data: bytes, found: int) -> None:
    assert xxhash64(data) == found


@pytest.mark.parametrize(
    ("pods", "found"),
    [(THREE, "pfp0v001607b76a0e9d3aeb4"), (TEN, "pfp0v001567144e4a561bb5a")],
)
def test_the_fingerprint_is_as_published_in_any_order(
    pods: list[tuple[str, str]], found: str
) -> None:
    for order in islice(permutations(pods), 0, None, 100_003):
        assert fingerprint_of(order) == found
    assert fingerprint_of(reversed(pods)) == found


def test_no_pods_have_a_fingerprint_too() -> None:
    assert fingerprint_of([]) == "pfp0v001ef46db3751d8e999"
