"""The policy, built by the first document that can be used."""

from __future__ import annotations

import linecache
import os
import signal

from nri_resmgr.app.conduct import Conduct
from nri_resmgr.app.garbage import prefer_to_collect_between_requests
from nri_resmgr.app.reconcilers import Reconcilers
from nri_resmgr.app.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.keeper import Keeper
from nri_resmgr.daemon.recollection import recollect
from nri_resmgr.daemon.start import Start


def build(start: Start) -> DaemonConfiguration:
    """Build the policy and what feeds it with documents.

    Raises:
        InputError: A file that the operator named, and that counts, is wrong, or
            of another kind than there may be.
    """
    options = start.options
    # Under the name by which tests of nri-plugins ask for it.
    testing = bool(os.environ.get("ENABLE_TEST_APIS"))
    conduct = Conduct(options.dry_run, options.run_dir, testing)
    start.reconcilers = Reconcilers()
    observers = start.reconcilers.observers
    witnesses = (*start.watch.build(), *start.recorders, *observers)
    if start.state is not None:
        start.keeper = Keeper(start.state)
        witnesses = (*witnesses, start.keeper)

    def make(config: PolicyConfig) -> ResourcePolicy:
        return ResourcePolicy(
            start.machine, config, tree=start.tree, conduct=conduct, witnesses=witnesses
        )

    configuration = DaemonConfiguration(
        options, start.documents, make, launched=start.launched
    )
    signal.signal(signal.SIGHUP, lambda *_: configuration.ask_to_reload())
    configuration.tell_rejections(start.watch.rejected)
    for recorder in start.recorders:
        recorder.begin(configuration.policy, start.state)
    if start.state is not None:
        may_switch = not options.disable_policy_switch
        recollect(start.state, configuration.policy, may_switch=may_switch)
        start.keeper.begin(configuration.policy)
    # attrs keeps the text of every method it wrote, for debuggers.
    linecache.clearcache()
    prefer_to_collect_between_requests()
    return configuration
