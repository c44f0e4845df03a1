"""Documents that differ in the CPU they reserve, and what follows them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from nri_resmgr.app.configuration.acceptance import Rules
from nri_resmgr.app.configuration.status import ConfigurationStatus, Document
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.documents import Documents
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.topology.synthetic import parse_spec

MACHINE = parse_spec("1s1n8c1t")


def document(cpu: int, kind: str = "StaticPolicy") -> str:
    return (
        f"apiVersion: config.nri/v1alpha1\nkind: {kind}\n"
        f"spec: {{reservedResources: {{cpu: 'cpuset:{cpu}'}}}}\n"
    )


BAD = document(0).replace("reserved", "preserved")
UNFIT = document(0).replace("'cpuset:0'", "99")
TOO_MANY = "expected 1 to 8 CPUs (available, not isolated), not 99"


def make(
    config: PolicyConfig, document: Document, rules: Rules, host: Path | None = None
) -> ResourcePolicy:
    tree = HostTree(host) if host else None
    options = PluginOptions(document=document, rules=rules)
    return ResourcePolicy(MACHINE, config, tree=tree, plugin_options=options)


def begun(
    config_file: Path | None = None,
    fallback_config: Path | None = None,
    state: StateDir | None = None,
    *,
    spool: Path | None = None,
    host: Path | None = None,
    **plugin_options: bool,
) -> DaemonConfiguration:
    """Start from these files.

    Args:
        config_file: As on the command line.
        fallback_config: The same.
        state: Where the cache is.
        spool: As on the command line.
        host: The root of the cgroups' files.
        **plugin_options: Whether it was ``launched``, and ``disable_policy_switch``.
    """
    options = argparse.Namespace(
        config_file=str(config_file) if config_file else None,
        fallback_config=str(fallback_config) if fallback_config else None,
        disable_policy_switch=plugin_options.get("disable_policy_switch", False),
        spool=str(spool) if spool else None,
    )
    made = partial(make, host=host)
    launched = plugin_options.get("launched", False)
    documents = Documents(options, state)
    return DaemonConfiguration(options, documents, made, launched=launched)


def hand_over(to: DaemonConfiguration, text: str) -> None:
    """Do as a runtime with a text for us; must not raise."""
    to.policy.configure(Configuration(text, RuntimeInfo()))


def status_of(configuration: DaemonConfiguration) -> ConfigurationStatus:
    return configuration.policy.configuration.status


def reserved(of: DaemonConfiguration) -> str:
    """Name a document of ours by its CPU; the built-in default is ``default``."""
    config = of.policy.config
    found = getattr(config, "reserved", None)
    return "default" if found is None else str(found.cpus)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@asynccontextmanager
async def followed(of: DaemonConfiguration) -> AsyncIterator[None]:
    """Follow its file, faster than a daemon would."""
    following = asyncio.create_task(of.follow(0.01))
    try:
        await asyncio.sleep(0)
        yield
    finally:
        following.cancel()
        await asyncio.wait({following})
