"""Complaints stay short, whatever the document is full of."""

from __future__ import annotations

import pytest

from nri_resmgr.config import BadSetting, BadSyntax
from nri_resmgr.policies import parse_config

HEAD = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\n"
LONG = "x" * 100_000
DIGITS = "1" * 20_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{HEAD}spec: {{pinCPU: {LONG}}}", id="a value"),
        pytest.param(f"{HEAD}spec: {{{LONG}: true}}", id="a key"),
        pytest.param(f"{HEAD}spec: !{LONG} 1", id="a tag"),
        pytest.param(f"{LONG}: [", id="no YAML"),
        pytest.param(f"{HEAD}spec: {{pinCPU: {DIGITS}}}", id="a number"),
        pytest.param(f"{HEAD}spec: {{pinCPU: 0x{DIGITS}}}", id="a number in base 16"),
        pytest.param(f"{HEAD}spec: {{pinCPU: 0b{DIGITS}}}", id="a number in base 2"),
    ],
)
def test_the_message_about_a_long_value_is_short(text: str) -> None:
    with pytest.raises((BadSetting, BadSyntax)) as error:
        parse_config(text)

    assert len(str(error.value)) < 1000
