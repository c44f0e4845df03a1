"""The policy, built from the first document that can be used."""

from __future__ import annotations

import linecache
import os
import signal

from nri_resmgr.app.background.garbage import prefer_to_collect_between_requests
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.checkpoint_restore import restore_checkpoint
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.documents import Documents
from nri_resmgr.daemon.start import Start


def build(start: Start) -> DaemonConfiguration:
    """Build the policy and what feeds it with documents.

    All of it before RegisterPlugin is sent: from then on the runtime waits two seconds
    for each answer, and a busy node leaves us a small part of them. What the runtime
    handed over last time is in the cache, so Configure mostly brings nothing new.

    Raises:
        InputError: A file that the operator named, and that counts, is wrong, or
            of another kind than there may be.
    """
    options = start.options
    # Under the name by which tests of nri-plugins ask for it.
    testing = bool(os.environ.get("ENABLE_TEST_APIS"))
    plugin_options = PluginOptions(options.dry_run, options.run_dir, testing)
    more = (start.recorder, start.checkpoint_writer)
    observers: tuple[DecisionObserver, ...] = (
        *start.watch.observers,
        *(one for one in more if one is not None),
        *start.reconcilers.observers,
    )

    def make(config: PolicyConfig) -> ResourcePolicy:
        return ResourcePolicy(
            start.machine,
            config,
            tree=start.tree,
            plugin_options=plugin_options,
            observers=observers,
        )

    configuration = DaemonConfiguration(
        options, Documents(options, start.state), make, launched=start.launched
    )
    signal.signal(signal.SIGHUP, lambda *_: configuration.ask_to_reload())
    configuration.tell_rejections(start.watch.rejected)
    if start.recorder is not None:
        start.recorder.begin(configuration.policy, start.state)
    if start.state is not None:
        may_switch = not options.disable_policy_switch
        restore_checkpoint(start.state, configuration.policy, may_switch=may_switch)
    if start.checkpoint_writer is not None:
        start.checkpoint_writer.begin(configuration.policy)
    # attrs keeps the text of every method it wrote, for debuggers.
    linecache.clearcache()
    prefer_to_collect_between_requests()
    return configuration
