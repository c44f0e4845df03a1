"""Which containers a name, or a part of one, selects."""

from __future__ import annotations

import pytest

from nri_resmgr.control.http_request import RequestRefused
from nri_resmgr.control.names import NamedContainer, find

WEB = NamedContainer("shop", "web-7d9f", "nginx", "c1", "s1", "u1")
LOGS = NamedContainer("shop", "web-7d9f", "logs", "c2", "s1", "u1")
DB = NamedContainer("shop", "db", "postgres", "c3", "s3", "u3")
DB_COPY = NamedContainer("shop", "db-copy", "postgres", "c4", "s4", "u4")
OTHER = NamedContainer("test", "db", "postgres", "c5", "s5", "u5")
KNOWN = (WEB, LOGS, DB, DB_COPY, OTHER)


@pytest.mark.parametrize(
    ("pod", "container", "found"),
    [
        pytest.param("web-7d9f", "", (WEB, LOGS), id="a pod with all its containers"),
        pytest.param("shop/web-7d9f", "nginx", (WEB,), id="a container by whole names"),
        pytest.param("web", "", (WEB, LOGS), id="a part of the pod's name"),
        pytest.param("web", "ng", (WEB,), id="a part of the container's name"),
        pytest.param("shop/db", "", (DB,), id="the whole name goes before a part"),
        pytest.param("es/db", "", (OTHER,), id="a part of the namespace"),
        pytest.param("c5", "", (OTHER,), id="a container's id"),
        pytest.param("s1", "", (WEB, LOGS), id="a pod sandbox's id"),
        pytest.param("u3", "postgres", (DB,), id="a pod's uid"),
        pytest.param("te/d", "", (OTHER,), id="parts of both names"),
        pytest.param("cache", "", (), id="a name of none"),
        pytest.param("shop/db", "redis", (), id="no container of the pod"),
    ],
)
def test_a_name_selects_its_container(
    pod: str, container: str, found: tuple[NamedContainer, ...]
) -> None:
    assert find(pod, container, KNOWN) == found


@pytest.mark.parametrize(
    ("pod", "container", "why"),
    [
        ("db", "", "'db' matches shop/db, test/db; give a longer name"),
        ("web", "g", "'g' matches logs, nginx; give a longer name"),
    ],
)
def test_an_ambiguous_name_lists_the_containers(
    pod: str, container: str, why: str
) -> None:
    with pytest.raises(RequestRefused) as raised:
        find(pod, container, KNOWN)

    assert (raised.value.status, raised.value.why) == (409, why)


def test_no_more_than_five_are_listed() -> None:
    known = [NamedContainer("shop", f"web-{n}", "main", f"c{n}") for n in range(7)]
    with pytest.raises(RequestRefused, match="web-4 and 2 more; give a longer"):
        find("web", "", known)


def test_a_title_is_read_whole() -> None:
    assert NamedContainer.of_title("a/b/c", "x") == NamedContainer("a", "b", "c", "x")
    assert NamedContainer.of_title("a/b") == NamedContainer("a", "b", "")
