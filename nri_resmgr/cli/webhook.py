"""``nri-resmgr webhook``: answers reviews of admission."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Final

from nri_resmgr.cli.flags import (
    Parser,
    add_endpoint_flags,
    add_log_flags,
    one_of,
    seconds,
)
from nri_resmgr.daemon.log_setup import log_in_use
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.process.endpoint import read_endpoint
from nri_resmgr.webhook.certificate import CertificateFiles
from nri_resmgr.webhook.checks import AnnotationChecks
from nri_resmgr.webhook.pods import Form
from nri_resmgr.webhook.webhook import Webhook, WebhookOptions

_FOLDER: Final = "/run/nri-resmgr-webhook"
_ENDPOINT: Final = "[::]:8443"

_FORMS: Final = {
    "nri-plugins": Form.NRI_PLUGINS,
    "cri-resource-manager": Form.CRI_RM,
}

_EXAMPLES: Final = """\
examples:
  nri-resmgr webhook --tls-cert tls.crt --tls-key tls.key
  nri-resmgr webhook --annotation cri-resource-manager   intel.com/resources instead
  nri-resmgr webhook --validate-with my.yaml             serves /validate, too

Both files may be replaced at any time: new connections have the new certificate. See
docs/webhook.md.

exit status: 0 after SIGTERM; 1 a part cannot be started again; 2 bad input
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Serve the API server's reviews of pods: write requests of their containers "
        "into an annotation that the daemon reads."
    )
    parser.epilog = _EXAMPLES
    parser.add_flag(
        "--endpoint",
        default=_ENDPOINT,
        metavar="[ADDRESS]:PORT",
        help=f"address for API servers ({_ENDPOINT})",
    )
    parser.add_flag(
        "--tls-cert",
        default=f"{_FOLDER}/tls.crt",
        metavar="FILE",
        help=f"certificate in PEM ({_FOLDER}/tls.crt)",
    )
    parser.add_flag(
        "--tls-key",
        default=f"{_FOLDER}/tls.key",
        metavar="FILE",
        help=f"its key in PEM ({_FOLDER}/tls.key)",
    )
    parser.add_flag(
        "--annotation",
        type=one_of(*_FORMS),
        default="nri-plugins",
        metavar="FORM",
        help="form of the annotation: nri-plugins (noderesource.dev/resources) or "
        "cri-resource-manager (intel.com/resources)",
    )
    parser.add_flag(
        "--validate-with",
        default="",
        metavar="FILE",
        help="configuration document whose classes and pools annotations may name; "
        "serves /validate; off by default",
    )
    parser.add_flag(
        "--linger",
        type=seconds,
        default="5",
        metavar="SECONDS",
        help="time between SIGTERM and the end, in which reviews are still answered",
    )
    add_endpoint_flags(parser)
    add_log_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Run the webhook until a signal arrives."""
    with log_in_use(options):
        asyncio.run(_webhook_of(options).run())
    return 0


def _webhook_of(options: argparse.Namespace) -> Webhook:
    for flag in ("--http-endpoint", "--health-endpoint"):
        if given := getattr(options, flag.strip("-").replace("-", "_")):
            read_endpoint(flag, given)
    settings = WebhookOptions(
        endpoint=read_endpoint("--endpoint", options.endpoint),
        files=CertificateFiles(Path(options.tls_cert), Path(options.tls_key)),
        form=_FORMS[options.annotation],
        linger=options.linger,
        http_endpoint=options.http_endpoint,
        health_endpoint=options.health_endpoint,
    )
    validate = None
    if options.validate_with:
        text = read_text_file(Path(options.validate_with))
        validate = AnnotationChecks.of_document(text).judge
    return Webhook(settings, validate)
