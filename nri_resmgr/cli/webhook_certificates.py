"""``nri-resmgr webhook-certificates``: makes and rotates the webhook's certificates."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.agent.api import ApiClient, Ref, find_access
from nri_resmgr.cli.flags import Parser, add_log_flags
from nri_resmgr.daemon.log_setup import log_in_use
from nri_resmgr.log import Logger
from nri_resmgr.process.endpoint import read_endpoint
from nri_resmgr.process.health import Probes, process_problem, serve_probes
from nri_resmgr.values import InputError
from nri_resmgr.webhook.own_certificates.cluster import MUTATING, SECRETS, VALIDATING
from nri_resmgr.webhook.own_certificates.keeper import CertificateKeeper, KeeperOptions

log = Logger(__name__)

_NAME: Final = "nri-resmgr-webhook"
_FOLDER: Final = "/run/nri-resmgr-webhook"
_NAMESPACE: Final = "kube-system"
_MOST_DAYS: Final = 825  # what clients accept

_EXAMPLES: Final = """\
examples:
  nri-resmgr webhook-certificates                    in a pod, beside the webhook
  nri-resmgr webhook-certificates --validating nri-resmgr-webhook

The Secret has to exist, and may be empty. The program openssl makes certificates. See
docs/webhook.md.

exit status: 0 after SIGTERM; 2 bad input
"""


@dataclass(eq=False)
class BadDays(InputError):
    """``--days`` is no life of a certificate."""

    text: str

    def __str__(self) -> str:
        return f"--days: {self.text!r}: expected 1 to {_MOST_DAYS}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Keep the certificate of the webhook and its CA in a Secret, have API servers "
        "trust the CA, and write the certificate into a folder for the webhook. Both "
        "are replaced after two thirds of their life."
    )
    parser.epilog = _EXAMPLES
    parser.add_flag(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="kubeconfig of the cluster; by default the ServiceAccount of this pod",
    )
    parser.add_flag(
        "--namespace",
        default="",
        metavar="NAMESPACE",
        help="namespace of Secret and Service, by default that of the pod or "
        f"kubeconfig, else {_NAMESPACE}",
    )
    parser.add_flag(
        "--service",
        default=_NAME,
        metavar="NAME",
        help=f"Service of the webhook, whose name the certificate has ({_NAME})",
    )
    parser.add_flag(
        "--secret", default=_NAME, metavar="NAME", help=f"the Secret ({_NAME})"
    )
    parser.add_flag(
        "--mutating",
        default=_NAME,
        metavar="NAME",
        help=f"MutatingWebhookConfiguration, empty for none ({_NAME})",
    )
    parser.add_flag(
        "--validating",
        default="",
        metavar="NAME",
        help="ValidatingWebhookConfiguration; none by default",
    )
    parser.add_flag(
        "--folder",
        default=_FOLDER,
        metavar="DIR",
        help=f"folder for tls.crt and tls.key ({_FOLDER})",
    )
    parser.add_flag(
        "--days", default="90", metavar="DAYS", help="life of a certificate (90)"
    )
    parser.add_flag(
        "--health-endpoint",
        default="",
        metavar="[ADDRESS]:PORT",
        help="address that serves liveness and readiness; off by default",
    )
    add_log_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Keep certificates until a signal arrives."""
    with log_in_use(options):
        asyncio.run(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    access = find_access(Path(options.kubeconfig) if options.kubeconfig else None)
    namespace = options.namespace or access.namespace or _NAMESPACE
    service = f"{options.service}.{namespace}.svc"
    named = ((MUTATING, options.mutating), (VALIDATING, options.validating))
    settings = KeeperOptions(
        secret=Ref(SECRETS, options.secret, namespace),
        configurations=tuple(Ref(kind, name) for kind, name in named if name),
        names=(service, f"{service}.cluster.local"),
        folder=Path(options.folder),
        days=_days(options.days),
    )
    if options.health_endpoint:
        read_endpoint("--health-endpoint", options.health_endpoint)
    async with ApiClient.open(access) as api:
        keeper = CertificateKeeper(api, settings)
        task = asyncio.create_task(_serve(keeper, options.health_endpoint))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        log.info("webhook.certificates-started", secret=str(settings.secret))
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _serve(keeper: CertificateKeeper, endpoint: str) -> None:
    probes = Probes(
        process_problem,
        lambda: "" if keeper.is_kept else keeper.problem or "no certificate yet",
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(keeper.run())
        if endpoint:
            group.create_task(serve_probes(probes, endpoint))


def _days(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_DAYS:
        raise BadDays(text)
    return int(text)
