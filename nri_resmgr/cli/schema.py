"""``nri-resmgr schema``: schemas of documents for editors and for the API server."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from nri_resmgr.cli.flags import Parser
from nri_resmgr.policies import known_kinds
from nri_resmgr.schema import custom_resources, json_schema, json_schema_of_all
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import JsonObject

_EXAMPLES: Final = """\
examples:
  nri-resmgr schema > nri-resmgr.schema.json      for documents of all kinds
  nri-resmgr schema BalloonsPolicy                for those of one kind
  nri-resmgr schema --crd | kubectl apply --server-side -f -
  nri-resmgr schema --crd BalloonsPolicy

An editor with a language server for YAML completes and checks a document that begins
with the line
  # yaml-language-server: $schema=nri-resmgr.schema.json

exit status: 0 printed; 2 there is no such kind
"""


@dataclass(eq=False)
class NoDefinition(InputError):
    """A kind has no custom resource definition."""

    kind: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = " or ".join(self.known)
        return f"no custom resource definition of {self.kind}, expected {known}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Print JSON Schema of configurations, or custom resource definitions."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "kind",
        nargs="?",
        metavar="KIND",
        help="the kind of document; without it all kinds",
    )
    parser.add_argument(
        "--crd",
        action="store_true",
        help="custom resource definitions in YAML, instead of JSON Schema",
    )


def run(options: argparse.Namespace) -> int:
    """Print the schema."""
    if options.crd:
        print(yaml_of(_chosen(options.kind)), end="")
    elif options.kind:
        print(json_of(json_schema(options.kind)), end="")
    else:
        print(json_of(json_schema_of_all(known_kinds())), end="")
    return 0


def json_of(schema: JsonObject) -> str:
    """Format a JSON Schema."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def yaml_of(definitions: Iterable[Mapping[str, object]]) -> str:
    """Format definitions as documents of YAML."""
    # By JSON, so that parts that occur several times are written out.
    plain = json.loads(json.dumps(list(definitions)))
    return yaml.safe_dump_all(
        plain, sort_keys=False, explicit_start=True, allow_unicode=True, width=88
    )


def _chosen(kind: str | None) -> Iterable[Mapping[str, object]]:
    known = custom_resources()
    if kind is None:
        return known.values()
    if kind not in known:
        raise NoDefinition(kind, tuple(known))
    return (known[kind],)
