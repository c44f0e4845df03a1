"""Files that stay the same are read once."""

from __future__ import annotations

from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.remembered import RememberedTree


def test_a_present_file_is_read_once() -> None:
    files = {"/a": "1"}
    tree = RememberedTree(RecordedTree(files=files))
    first = tree.read("/a")
    files["/a"] = "2"

    assert (first, tree.read("/a")) == ("1", "1")
    assert tree.read_again("/a") == "2"
    assert tree.read("/a") == "2"


def test_a_missing_file_is_looked_for_again() -> None:
    files = dict[str, str]()
    tree = RememberedTree(RecordedTree(files=files))
    first = tree.read("/a")
    files["/a"] = "1"

    assert (first, tree.read("/a")) == (None, "1")
