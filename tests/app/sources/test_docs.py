"""The documentation says what the code does."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.app.requests import ANNOTATIONS, DeclaredRequests
from nri_resmgr.app.requests.webhook import read_resources
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, MilliCpus

PAGE = (Path(__file__).parents[3] / "docs" / "requests.md").read_text()


def test_the_example_of_the_page_is_read_as_written() -> None:
    example = PAGE.split("```json\n")[1].split("```")[0]
    source = RequestOrigin.ANNOTATION

    assert read_resources(example) == DeclaredRequests(
        containers={
            "web": Requests(
                cpu=MilliCpus(500),
                cpu_limit=MilliCpus(2000),
                memory=Bytes(1 << 30),
                memory_limit=Bytes(2 << 30),
                hugepages=(HugePages(Bytes(2 << 20), 3),),
                extended={"vendor.com/gpu": 1},
                source=source,
            )
        },
        init={
            "fetch": Requests(cpu=MilliCpus(2000), source=source),
            "log": Requests(cpu=MilliCpus(100), source=source),
        },
        sidecars=frozenset({"log"}),
    )


def test_keys_and_sources_are_named() -> None:
    names = [*ANNOTATIONS, *RequestOrigin]

    assert [name for name in names if f"`{name}`" not in PAGE] == []
