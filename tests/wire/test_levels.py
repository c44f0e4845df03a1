"""Which NRI level a runtime carries, and which events it knows."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from nri_proto import NriLevel, infer_level
from nri_proto.levels import (
    DEDICATED_CALLS,
    NEWEST,
    OLDEST_EVENT_MASK,
    POD_UPDATES,
    SAFE_UPDATES,
    SPLIT_SYNC,
    VALIDATION,
)

PAGE = Path(__file__).parents[2] / "docs" / "nri-levels.md"


@pytest.mark.parametrize(
    ("runtime", "releases", "level", "mask"),
    [
        ("containerd", "1.7.0 1.7.6", "0.3.0", 0x7FF),
        ("containerd", "1.7.7 1.7.13", "0.4.0", 0x7FF),
        ("containerd", "1.7.14 1.7.15", "0.6.0", 0x7FF),
        ("containerd", "1.7.16 1.7.25", "0.6.1", 0x7FF),
        ("containerd", "1.7.26 1.7.34", "0.8.0", 0x7FF),
        ("containerd", "2.0.0 2.0.11", "0.8.0", 0x7FF),
        ("containerd", "2.1.0 2.1.9", "0.8.0", 0x7FF),
        ("containerd", "2.2.0", "0.10.0", 0x3FFF),
        ("containerd", "2.2.1 2.2.7", "0.11.0", 0x3FFF),
        ("containerd", "2.3.0 2.3.4", "0.12.0", 0x3FFF),
        ("containerd", "2.4.0-beta.0 2.4.0 3.0.0", "0.12.1", 0x3FFF),
        ("v2", "2.0.0 2.0.3", "0.8.0", 0x7FF),
        ("cri-o", "1.26.0 1.26.1", "0.2.0", 0x7FF),
        ("cri-o", "1.26.2 1.26.3 1.27.0", "0.3.0", 0x7FF),
        # These carry 0.3.1-pre, whose API is that of 0.3.0.
        ("cri-o", "1.26.4 1.27.1 1.28.0 1.28.11", "0.3.0", 0x7FF),
        ("cri-o", "1.29.0 1.29.1", "0.5.0", 0x7FF),
        ("cri-o", "1.29.2 1.30.0 1.30.14", "0.6.0", 0x7FF),
        ("cri-o", "1.31.0 1.31.13", "0.6.1", 0x7FF),
        ("cri-o", "1.32.0 1.32.9", "0.9.0", 0x7FF),
        ("cri-o", "1.33.0 1.33.5", "0.9.1", 0x1FFF),
        ("cri-o", "1.34.0 1.34.2", "0.10.0", 0x3FFF),
        ("cri-o", "1.35.0 1.36.0 1.36.3", "0.11.0", 0x3FFF),
        ("cri-o", "1.37.0-dev 1.37.0", "0.12.0", 0x3FFF),
    ],
)
def test_levels_and_masks_of_the_releases(
    runtime: str, releases: str, level: str, mask: int
) -> None:
    for release in releases.split():
        found = infer_level(runtime, release)
        assert found is not None
        assert (release, str(found), found.event_mask) == (release, level, mask)


@pytest.mark.parametrize(
    ("runtime", "version", "level"),
    [
        pytest.param("containerd", "v2.2.1", NriLevel(0, 11), id="containerd's v"),
        pytest.param("cri-o", "v1.36.0", NriLevel(0, 11), id="a v that CRI-O has not"),
        pytest.param(
            "containerd", "1.7.24~ds1", NriLevel(0, 6, 1), id="Debian's suffix"
        ),
        pytest.param(
            "containerd",
            "1.7.28-0ubuntu1~24.04.1",
            NriLevel(0, 8),
            id="Ubuntu's suffix",
        ),
        pytest.param("containerd", "v2.3.0+unknown", NriLevel(0, 12), id="build data"),
        pytest.param("containerd", "2.2", NriLevel(0, 10), id="no patch is patch 0"),
        pytest.param("containerd", "1.6.38", None, id="containerd before NRI"),
        pytest.param("cri-o", "1.25.5", None, id="CRI-O before NRI"),
        pytest.param("containerd", "", None, id="no version"),
        pytest.param("containerd", "unknown", None, id="a word for a version"),
        pytest.param("containerd", "release 2.2.1", None, id="not at the start"),
        pytest.param("containerd", "2", None, id="a lone number"),
        pytest.param("containerd", "9" * 5000 + ".1", None, id="absurd digits"),
        pytest.param("", "2.2.1", None, id="no name"),
        pytest.param("docker", "28.0.0", None, id="an unlisted runtime"),
    ],
)
def test_versions_as_builders_write_them(
    runtime: str, version: str, level: NriLevel | None
) -> None:
    assert infer_level(runtime, version) == level


@pytest.mark.parametrize(
    ("text", "level"),
    [
        pytest.param("v0.12.1", NriLevel(0, 12, 1), id="a module version"),
        pytest.param("0.12.1", NriLevel(0, 12, 1), id="without v"),
        pytest.param("v0.11.0-37-g41b9c58", NriLevel(0, 11), id="as git describes"),
        pytest.param(
            "v0.9.1-0.20250327-e597e7849f24",
            NriLevel(0, 9, 1),
            id="Go's pseudo-version",
        ),
        pytest.param("v1.0.0-rc.1", NriLevel(1, 0), id="the release it leads to"),
        pytest.param("(devel)", None, id="a build in a working copy"),
        pytest.param("0.0.0-unknown", None, id="a build without stamp"),
        pytest.param("", None, id="nothing"),
        pytest.param("v.12", None, id="half a version"),
        pytest.param("0." + "9" * 5000, None, id="absurd digits"),
        pytest.param("\u0661.\u0662.\u0663", None, id="digits of other scripts"),
    ],
)
def test_levels_are_read(text: str, level: NriLevel | None) -> None:
    assert NriLevel.parse(text) == level


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        pytest.param(
            {"nri_version": "v0.12.2"}, NriLevel(0, 12, 2), id="the reported level wins"
        ),
        pytest.param(
            {"nri_version": "v0.11.0-37-g41b9c58"},
            NriLevel(0, 11),
            id="also when it is older than the table's",
        ),
        pytest.param(
            {"nri_version": "(devel)"},
            NriLevel(0, 12),
            id="a version proves 0.12",
        ),
        pytest.param({"has_timeouts": True}, NriLevel(0, 11), id="the table is higher"),
        pytest.param({}, NriLevel(0, 11), id="the table alone"),
    ],
)
def test_fields_of_configure_determine_the_level(
    fields: dict[str, str | bool], level: NriLevel
) -> None:
    assert infer_level("containerd", "2.2.1", **fields) == level  # type: ignore[arg-type]  # a row names its keywords


@pytest.mark.parametrize(
    ("runtime", "version", "nri_version", "level"),
    [
        pytest.param("containerd", "1.7.0", "", SPLIT_SYNC, id="timeouts prove 0.7"),
        pytest.param(
            "containerd",
            "2.4.0",
            "(devel)",
            NriLevel(0, 12, 1),
            id="the highest counts",
        ),
        pytest.param(
            "containerd", "2.1.0", "(devel)", DEDICATED_CALLS, id="a version beats both"
        ),
        pytest.param(
            "mine", "1.0", "(devel)", DEDICATED_CALLS, id="an unlisted runtime"
        ),
        pytest.param("mine", "1.0", "", None, id="timeouts alone say nothing of masks"),
    ],
)
def test_timeouts_and_versions_lift_the_level(
    runtime: str, version: str, nri_version: str, level: NriLevel | None
) -> None:
    found = infer_level(runtime, version, nri_version=nri_version, has_timeouts=True)

    assert found == level


def table(heading: str) -> list[list[str]]:
    """Read the rows of the page's table under *heading*."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    lines = section.split("\n## ")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def level_of(text: str) -> NriLevel:
    level = NriLevel.parse(text)
    assert level is not None
    return level


LEVELS = table("What each level brings")
RELEASES = table("Which runtime carries which level")


@pytest.mark.parametrize(("level", "mask", "news"), LEVELS)
def test_the_page_reports_each_levels_mask(level: str, mask: str, news: str) -> None:
    assert (news, f"0x{level_of(level).event_mask:04x}") == (news, mask)


def test_the_page_names_the_levels_that_matter_to_the_code() -> None:
    levels = [level_of(row[0]) for row in LEVELS]

    assert levels == sorted(set(levels))
    assert levels[-1] == NEWEST
    assert {
        news: level_of(row[0])
        for row in LEVELS
        for news in (
            "Synchronize in chunks",
            "UpdatePodSandbox,",
            "ValidateContainerAdjustment",
            "a call of its own",
            "no longer dead-lock",
        )
        if news in row[2]
    } == {
        "Synchronize in chunks": SPLIT_SYNC,
        "UpdatePodSandbox,": POD_UPDATES,
        "ValidateContainerAdjustment": VALIDATION,
        "a call of its own": DEDICATED_CALLS,
        "no longer dead-lock": SAFE_UPDATES,
    }
    assert levels[0].event_mask == OLDEST_EVENT_MASK


@pytest.mark.parametrize("row", RELEASES, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_page_reports_each_releases_abilities(row: list[str]) -> None:
    level = level_of(row[2])

    assert row[3:6] == [
        f"0x{level.event_mask:04x}",
        "yes" if level < DEDICATED_CALLS else "no",
        "yes" if level >= SPLIT_SYNC else "no",
    ]
    assert row[2] in {known[0] for known in LEVELS}


def test_the_page_and_the_code_know_the_same_releases() -> None:
    versions = itertools.product((1, 2), range(40), range(40))
    rows = [(name, *map(int, from_.split("."))) for name, from_, *_ in RELEASES]

    for version in versions:
        text = ".".join(map(str, version))
        for runtime in ("containerd", "cri-o"):
            reported = [
                level_of(known[2])
                for (name, *from_), known in zip(rows, RELEASES, strict=True)
                if name == runtime and from_ <= list(version)
            ]
            expected = reported[-1] if reported else None
            assert (text, infer_level(runtime, text)) == (text, expected)
