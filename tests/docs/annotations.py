"""The table of annotation keys."""

from __future__ import annotations

from nri_resmgr.app.annotations.keys import KEYS, KeyTarget
from tests.docs.markdown import merged


def annotation_keys(body: str) -> str:
    """Write every key; what values it takes and what they mean is by hand."""
    return merged(
        body,
        ("key", "value", "mistakes", "in force", "meaning"),
        {
            name: (
                None,
                "strict" if key.strict else "soft",
                "no" if key.target is KeyTarget.PENDING else "yes",
                None,
            )
            for name, key in KEYS.items()
        },
    )
