"""Builds the policy from the first usable document, before the runtime connects."""

from __future__ import annotations

import linecache
import os
import signal
from functools import partial

from msgspec.structs import replace

from nri_resmgr.app.configuration.acceptance import Rules
from nri_resmgr.app.configuration.status import Document
from nri_resmgr.app.observers.garbage import prefer_to_collect_between_requests
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.changes.claimed_cpus import begin_claims
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.restore import restore_checkpoint, saved_kind
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.claims_file import ClaimsFile, read_claims
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.delivery import ApplyUpdates, delivery_for
from nri_resmgr.daemon.documents import Documents
from nri_resmgr.daemon.parts import Startup
from nri_resmgr.kubelet.sockets import kubelet_dir, why_no_devices


def build(startup: Startup) -> DaemonConfiguration:
    """Build the policy and its source of documents.

    All of it before RegisterPlugin is sent: from then on the runtime waits two seconds
    for each answer, and on a busy node this process gets a small part of them. The
    last text of the runtime is in the cache, so Configure mostly has nothing new.

    Raises:
        InputError: A file of the command line has a mistake, or a kind that must not
            follow the saved state's.
        CgroupsNotWritable: See `delivery_for`.
    """
    options = startup.options
    # The same variable as for tests of nri-plugins.
    testing = bool(os.environ.get("ENABLE_TEST_APIS"))
    plugin_options = PluginOptions(
        options.dry_run,
        options.run_dir,
        options.mpolset,
        testing,
        resource_path=options.resource_path,
        pod_resources=startup.pod_resources,
        why_no_devices=partial(why_no_devices, kubelet_dir(options.kubelet_dir)),
        cpu_drivers=tuple(filter(None, options.cpu_drivers.split(","))),
        vm_handlers=options.vm_handlers,
    )
    more = (startup.recorder, startup.checkpoint_writer)
    observers: tuple[DecisionObserver, ...] = (
        *startup.observers.of_decisions,
        *(one for one in more if one is not None),
        *startup.reconcilers.observers,
        startup.observability,
        startup.rebalancer,
        startup.offers,
        startup.sandboxes,
    )

    def make(config: PolicyConfig, document: Document, rules: Rules) -> ResourcePolicy:
        return ResourcePolicy(
            startup.machine,
            config,
            tree=startup.tree,
            plugin_options=replace(plugin_options, document=document, rules=rules),
            observers=observers,
        )

    kept = ""
    if options.spool and options.disable_policy_switch and startup.state is not None:
        kept = saved_kind(startup.state)
    documents = Documents(options, startup.state, kept)
    configuration = DaemonConfiguration(
        options, documents, make, launched=startup.launched
    )
    # Until `follow` handles it in the loop, so that no request is lost.
    signal.signal(signal.SIGHUP, lambda *_: configuration.ask_to_reload())
    configuration.on_rejection(startup.observers.rejected)
    if configuration.cluster is not None:
        configuration.cluster.report_trials(startup.observers.history)
    policy = configuration.policy
    startup.observability.configured(policy.config)
    if not options.dry_run:
        how = ApplyUpdates(options.apply_updates)
        repairs = bool(options.verify_interval) and options.verify_repair == "yes"
        delivery = delivery_for(
            how, startup.tree, policy, startup.state, watches=repairs
        )
        policy.use_delivery(delivery)
    # Before the restore, which may set the checkpoint aside.
    if startup.recorder is not None:
        startup.recorder.begin(configuration.policy, startup.state)
    if startup.state is not None:
        begin_claims(policy, read_claims(startup.state))
        startup.claims_file = ClaimsFile(startup.state, policy.claims)
        may_switch = not options.disable_policy_switch
        restore_checkpoint(startup.state, configuration.policy, may_switch=may_switch)
    if startup.checkpoint_writer is not None:
        startup.checkpoint_writer.begin(configuration.policy)
    # attrs caches the source of generated methods for debuggers only.
    linecache.clearcache()
    prefer_to_collect_between_requests()
    return configuration
