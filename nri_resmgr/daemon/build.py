"""Builds the policy from the first usable document, and the stub that connects it."""

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
from nri_resmgr.app.plugin.reduced import reduced_container, reduced_pod
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.plugin.status_codes import status_of
from nri_resmgr.app.running.delivery import PinDelivery
from nri_resmgr.checkpoint.restore import restore_checkpoint, saved_kind
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.claims_file import ClaimsFile, read_claims
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.daemon.delivery import ApplyUpdates, delivery_for
from nri_resmgr.daemon.documents import Documents
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.kubelet.sockets import kubelet_dir, why_no_devices
from nri_resmgr.stub import Stub, StubOptions, UnsolicitedUpdates
from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE


def build(daemon: Daemon) -> None:
    """Build the policy, its source of documents, and the stub.

    All of it before RegisterPlugin is sent: from then on the runtime waits two seconds
    for each answer, and on a busy node this process gets a small part of them. The
    last text of the runtime is in the cache, so Configure mostly has nothing new.

    Raises:
        InputError: A file of the command line has a mistake, or a kind that must not
            follow the saved state's.
        CgroupsNotWritable: See `delivery_for`.
        BadIdentity: The plugin has no valid name, index or descriptor.
    """
    daemon.configuration = configuration = _configuration_of(daemon)
    # Until `follow` handles it in the loop, so that no request is lost.
    signal.signal(signal.SIGHUP, lambda *_: configuration.ask_to_reload())
    policy = configuration.policy
    policy.configuration.on_rejection(daemon.observers.rejected)
    if configuration.cluster is not None:
        configuration.cluster.report_trials(daemon.observers.history)
    daemon.observability.configured(policy.config)
    if not daemon.options.dry_run:
        policy.use_delivery(_delivery_of(daemon))
    _restore(daemon)
    daemon.stub = _stub_of(daemon)
    policy.use_update_sender(daemon.stub.updates)
    # attrs caches the source of generated methods for debuggers only.
    linecache.clearcache()
    prefer_to_collect_between_requests()


def _configuration_of(daemon: Daemon) -> DaemonConfiguration:
    options, state = daemon.options, daemon.state
    plugin_options = _plugin_options_of(daemon)
    observers = _observers_of(daemon)

    def make(config: PolicyConfig, document: Document, rules: Rules) -> ResourcePolicy:
        return ResourcePolicy(
            daemon.machine,
            config,
            tree=daemon.tree,
            plugin_options=replace(plugin_options, document=document, rules=rules),
            observers=observers,
        )

    kept = ""
    if options.spool and options.disable_policy_switch and state is not None:
        kept = saved_kind(state)
    documents = Documents(options, state, kept)
    return DaemonConfiguration(options, documents, make, launched=daemon.launched)


def _plugin_options_of(daemon: Daemon) -> PluginOptions:
    options = daemon.options
    # The same variable as for tests of nri-plugins.
    testing = bool(os.environ.get("ENABLE_TEST_APIS"))
    return PluginOptions(
        options.dry_run,
        options.run_dir,
        options.mpolset,
        testing,
        resource_path=options.resource_path,
        pod_resources=daemon.pod_resources,
        why_no_devices=partial(why_no_devices, kubelet_dir(options.kubelet_dir)),
        cpu_drivers=tuple(filter(None, options.cpu_drivers.split(","))),
        vm_handlers=options.vm_handlers,
    )


def _observers_of(daemon: Daemon) -> tuple[DecisionObserver, ...]:
    more = (daemon.recorder, daemon.checkpoint_writer)
    return (
        *daemon.observers.of_decisions,
        *(one for one in more if one is not None),
        *daemon.reconcilers.observers,
        daemon.observability,
        daemon.rebalancer,
        daemon.offers,
        daemon.sandboxes,
    )


def _delivery_of(daemon: Daemon) -> PinDelivery:
    options = daemon.options
    how = ApplyUpdates(options.apply_updates)
    repairs = bool(options.verify_interval) and options.verify_repair == "yes"
    tree, state = daemon.tree, daemon.state
    return delivery_for(how, tree, daemon.policy, state, watches=repairs)


def _restore(daemon: Daemon) -> None:
    policy, state = daemon.policy, daemon.state
    # Before the restore, which may set the checkpoint aside.
    if daemon.recorder is not None:
        daemon.recorder.begin(policy, state)
    if state is not None:
        begin_claims(policy, read_claims(state))
        daemon.claims_file = ClaimsFile(state, policy.claims)
        may_switch = not daemon.options.disable_policy_switch
        restore_checkpoint(state, policy, may_switch=may_switch)
    if daemon.checkpoint_writer is not None:
        daemon.checkpoint_writer.begin(policy)


def _stub_of(daemon: Daemon) -> Stub:
    options = daemon.options
    name, index = options.nri_plugin_name, options.nri_plugin_index
    if not os.environ.keys() & {NAME_VARIABLE, INDEX_VARIABLE}:
        # A runtime that launches a plugin sets its name.
        name = DEFAULT_NAME if name is None else name
        index = DEFAULT_INDEX if index is None else index
    return Stub.from_environment(
        daemon.policy,
        name=name,
        index=index,
        socket=options.nri_socket,
        options=StubOptions(
            status_of=status_of,
            unsolicited_updates=UnsolicitedUpdates(options.unsolicited_updates),
            observer=daemon.observers,
            on_message=daemon.recorder.tap if daemon.recorder else None,
            reduce_pod=reduced_pod,
            reduce_container=reduced_container,
            waits_for_runtime=options.wait_for_runtime,
        ),
    )
