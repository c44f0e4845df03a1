"""An agent understands a daemon of the version before, and of the next one.

The other way is in `tests/control/test_cluster_answers.py`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from nri_resmgr.agent import daemon_state
from nri_resmgr.values.documents import from_plain

ANSWERS: Final[list[Any]] = [
    one
    for one in vars(daemon_state).values()
    if isinstance(one, type) and issubclass(one, msgspec.Struct)
]


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_fields_may_be_missing_and_others_there(kind: Any) -> None:
    assert from_plain(kind, {}) == kind()
    assert from_plain(kind, {"later": {"more": [1, "text"]}}) == kind()
