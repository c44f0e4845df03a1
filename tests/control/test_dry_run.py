"""What the control socket answers where decisions are not applied."""

from __future__ import annotations

import pytest

from nri_resmgr.app.observing.history import History
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.control.delivery import deliveries_of
from nri_resmgr.control.state import state_of
from nri_resmgr.topology.synthetic import parse_spec
from tests.control.daemon_parts import daemon_view


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_dry_run_is_reported(*, dry_run: bool) -> None:
    options = PluginOptions(dry_run=dry_run)
    policy = ResourcePolicy(parse_spec("1s2n4c1t"), plugin_options=options)
    daemon = daemon_view(policy, History())

    assert state_of(daemon)["daemon"]["dryRun"] is dry_run
    assert (deliveries_of(daemon)["by"] == "none") is dry_run
