"""The policy, built by the first document that can be used."""

from __future__ import annotations

import argparse
import linecache
import os

from nri_resmgr.app.conduct import Conduct
from nri_resmgr.app.garbage import prefer_to_collect_between_requests
from nri_resmgr.app.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub.transport import SOCKET_VARIABLE
from nri_resmgr.topology import Machine


def build(
    options: argparse.Namespace,
    state: StateDir | None,
    machine: Machine,
    tree: HostTree,
    watch: Watch,
) -> DaemonConfiguration:
    """Build the policy and what feeds it with documents.

    Raises:
        InputError: A file that the operator named, and that counts, is wrong.
    """
    # Under the name by which tests of nri-plugins ask for it.
    testing = bool(os.environ.get("ENABLE_TEST_APIS"))
    conduct = Conduct(options.dry_run, options.run_dir, testing)

    witnesses = watch.build(options)

    def make(config: PolicyConfig) -> ResourcePolicy:
        return ResourcePolicy(
            machine, config, tree=tree, conduct=conduct, witnesses=witnesses
        )

    launched = SOCKET_VARIABLE in os.environ
    configuration = DaemonConfiguration(options, state, make, launched=launched)
    # attrs keeps the text of every method it wrote, for debuggers.
    linecache.clearcache()
    prefer_to_collect_between_requests()
    return configuration
