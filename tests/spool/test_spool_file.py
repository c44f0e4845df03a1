"""Spool files: what is written is read, and whatever was spoiled is rejected."""

from __future__ import annotations

import hashlib

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from nri_resmgr.spool import (
    LARGEST,
    BadSpoolFile,
    BadSpoolHeader,
    SpoolFile,
    SpoolHeader,
    decode,
    encode,
)
from tests.examples import examples

WORDS = st.from_regex(r"[!-~]([ -~]{0,40}[!-~])?", fullmatch=True)
HEADERS = st.builds(
    SpoolHeader,
    kind=WORDS,
    name=st.just("") | WORDS,
    namespace=st.just("") | WORDS,
    uid=st.just("") | WORDS,
    generation=st.integers(0, 10**18 - 1),
    resource_version=st.just("") | WORDS,
    node=st.just("") | WORDS,
)
BODIES = st.text(st.characters(codec="utf-8"), max_size=200)


@given(HEADERS, BODIES)
def test_an_encoded_file_is_decoded(header: SpoolHeader, body: str) -> None:
    digest = hashlib.sha256(body.encode()).hexdigest()

    assert decode(encode(header, body)) == SpoolFile(header, body, digest)


@given(HEADERS)
def test_yaml_sees_the_document_only(header: SpoolHeader) -> None:
    text = encode(header, "kind: TopologyAwarePolicy\nspec: {}\n").decode()

    assert yaml.safe_load(text) == {"kind": "TopologyAwarePolicy", "spec": {}}


@examples(3)
@given(HEADERS, BODIES, st.data())
def test_a_body_that_differs_is_rejected(
    header: SpoolHeader, body: str, data: st.DataObject
) -> None:
    content = body.encode()
    whole = encode(header, body)
    head = whole[: len(whole) - len(content)]
    other = data.draw(
        st.binary(max_size=200)
        | st.integers(0, len(content)).map(lambda end: content[:end])
        | st.binary(min_size=1, max_size=3).map(lambda more: content + more)
    )
    assume(other != content)

    with pytest.raises(BadSpoolFile, match="digest"):
        decode(head + other)


@examples(3)
@given(HEADERS, BODIES, st.data())
def test_a_spoiled_file_is_rejected_or_has_the_whole_body(
    header: SpoolHeader, body: str, data: st.DataObject
) -> None:
    whole = bytearray(encode(header, body))
    at = data.draw(st.integers(0, len(whole) - 1))
    match data.draw(st.sampled_from(("cut", "flip", "drop", "insert"))):
        case "cut":
            del whole[at:]
        case "flip":
            whole[at] ^= data.draw(st.integers(1, 255))
        case "drop":
            del whole[at : at + data.draw(st.integers(1, 50))]
        case "insert":
            whole[at:at] = data.draw(st.binary(min_size=1, max_size=50))

    try:
        found = decode(bytes(whole))
    except BadSpoolFile:
        return
    # A change of the header alone, such as of the name.
    assert found.body == body


@given(st.binary(max_size=300))
def test_any_bytes_are_rejected_or_a_file(content: bytes) -> None:
    for one in (content, b"# nri-resmgr spool 1\n" + content):
        with pytest.raises(BadSpoolFile):
            decode(one)


def test_a_truncated_file_is_rejected_at_each_length() -> None:
    whole = encode(SpoolHeader("BalloonsPolicy", "default", uid="7"), "spec: {}\n")

    for end in range(len(whole)):
        with pytest.raises(BadSpoolFile):
            decode(whole[:end])


def test_a_file_at_the_limit_is_read_and_a_larger_one_is_not() -> None:
    header = SpoolHeader("BalloonsPolicy")
    rest = LARGEST - len(encode(header, ""))

    assert len(decode(encode(header, "#" * rest)).body) == rest
    with pytest.raises(BadSpoolFile, match="expected at most"):
        encode(header, "#" * (rest + 1))
    with pytest.raises(BadSpoolFile, match="expected at most"):
        decode(encode(header, "#" * rest) + b"#")


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (SpoolHeader(""), "kind"),
        (SpoolHeader("A", "two\nlines"), "name"),
        (SpoolHeader("A", "ä"), "name"),
        (SpoolHeader("A", uid=" "), "uid"),
        (SpoolHeader("A", namespace="x" * 513), "namespace"),
    ],
)
def test_a_header_that_would_not_be_read_again_is_not_written(
    header: SpoolHeader, field: str
) -> None:
    with pytest.raises(BadSpoolHeader) as caught:
        encode(header, "")

    assert caught.value.field == field


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"# nri-resmgr spool 2\n# kind: A\n", "version 2"),
        (b"# nri-resmgr spool 1\n# kind: A\n# kind: B\n", "given twice"),
        (b"# nri-resmgr spool 1\n# kind: A\n# generation: -1\n", "expected a number"),
        (b"# nri-resmgr spool 1\n# name: A\n", "kind: missing"),
        (b"# nri-resmgr spool 1\n# kind: \xff\n", "expected printable ASCII"),
        (b"kind: A\n", "no spool file"),
    ],
)
def test_a_wrong_header_is_named(head: bytes, why: str) -> None:
    digest = hashlib.sha256(b"").hexdigest().encode()

    with pytest.raises(BadSpoolFile, match=why):
        decode(head + b"# sha256: " + digest + b"\n")


def test_lines_of_a_later_agent_are_skipped() -> None:
    digest = hashlib.sha256(b"a: 1\n").hexdigest().encode()
    head = b"# nri-resmgr spool 1\n# kind: A\n# source: ConfigMap\n"

    found = decode(head + b"# sha256: " + digest + b"\na: 1\n")

    assert found == SpoolFile(SpoolHeader("A"), "a: 1\n", digest.decode())
