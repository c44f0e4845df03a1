from __future__ import annotations

import pytest

from nri_resmgr.topology.hint_options import HintOptions, PathMatch, PathRule


def prefixes(*paths: str) -> PathRule:
    return PathRule(PathMatch.PREFIX, paths)


def globs(*paths: str) -> PathRule:
    return PathRule(PathMatch.GLOB, paths)


@pytest.mark.parametrize(
    ("rule", "path", "covered"),
    [
        pytest.param(prefixes("/dev/"), "/dev/sda", True, id="below a folder"),
        pytest.param(prefixes("/dev"), "/device", True, id="a prefix of the text"),
        pytest.param(prefixes("/mnt", "/sys"), "/sys/x", True, id="one of several"),
        pytest.param(prefixes("/mnt"), "/data/mnt", False, id="not at the beginning"),
        pytest.param(prefixes(), "/data", False, id="no path"),
        pytest.param(globs("/dev/sd*"), "/dev/sda", True, id="a star"),
        pytest.param(globs("/dev/*"), "/dev/a/b", False, id="never a slash"),
        pytest.param(globs("/*/x?/[ab]"), "/q/x1/b", True, id="all signs"),
        pytest.param(globs("/[^a]"), "/b", True, id="a set negated as in Go"),
        pytest.param(globs("/[^a]"), "/a", False, id="what such a set excludes"),
        pytest.param(globs("/dev"), "/dev/sda", False, id="the whole path"),
        pytest.param(globs("/DEV/*"), "/dev/sda", False, id="case counts"),
    ],
)
def test_which_paths_a_rule_covers(
    rule: PathRule,
    path: str,
    covered: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert rule.covers(path) is covered


@pytest.mark.parametrize(
    ("options", "admitted"),
    [
        pytest.param(HintOptions(), True, id="no rules"),
        pytest.param(HintOptions(deny=prefixes("/dev")), False, id="denied"),
        pytest.param(HintOptions(deny=prefixes("/sys")), True, id="not denied"),
        pytest.param(
            HintOptions(deny=prefixes("/"), allow=globs("/dev/sd?")),
            True,
            id="denied with all, allowed by name",
        ),
        pytest.param(
            HintOptions(deny=prefixes("/"), allow=globs("/dev/nvme*")),
            False,
            id="denied, others are allowed",
        ),
        pytest.param(
            HintOptions(allow=prefixes("/sys")), True, id="allowing others denies none"
        ),
    ],
)
def test_whether_a_disk_gives_a_hint(
    options: HintOptions,
    admitted: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert options.admits("/dev/sda") is admitted
