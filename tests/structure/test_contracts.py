"""The import contracts of pyproject.toml: what they allow, and what they refuse.

A contract that refuses nothing looks like one that holds. Therefore imports that each
has to refuse are planted, one at a time, in the graph of all imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final

import pytest
from grimp import ImportGraph, build_graph
from importlinter import Contract
from importlinter.api import read_configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

from tests.structure.source import ROOT, modules

CONFIGURATION: Final = read_configuration(str(ROOT / "pyproject.toml"))
CONTRACTS: Final[Mapping[str, dict[str, Any]]] = {
    options["name"]: options for options in CONFIGURATION["contracts_options"]
}
TYPES: Final[Mapping[str, type[Contract]]] = {
    one.type_name: one
    for one in (
        ForbiddenContract,
        IndependenceContract,
        LayersContract,
        ProtectedContract,
    )
}

LAYERS: Final = "Layers: imports point downwards only"
FLOORS: Final = "App: five floors"
PURE: Final = "Policy, classes, pictures, topology, runtimes, spool and values are pure"
INDEPENDENT: Final = "Policies do not know each other"
NO_FILES: Final = "App, checkpoints, kinds, configuration and schemas open no files"
NRI: Final = "Only packages and modules named here know NRI"
DEMO: Final = "Only the demo, trials and pytest's fixtures need the fake runtime"

# By contract: modules, and what each must not import. Names are those below
# `nri_resmgr`, where it has them.
REFUSED: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    LAYERS: (
        ("testing.world", "app.plugin.resource_policy"),
        ("app.plugin.engine", "testing.world"),
        ("stub.session", "host.tree"),
        ("values.cpuset", "policy.ledger"),
        ("policies.static", "app.configuration.build"),
        ("app.plugin.engine", "checkpoint.encode"),
        ("checkpoint.restore", "daemon.state"),
        ("config.balloons", "policies.balloons"),
        # Parts of plugins: the daemon needs none of them, nor does the stub.
        ("daemon.run", "sdk.store"),
        ("stub.serve", "sdk.settings"),
        ("cli.status", "kubectl.daemons"),
        # Clients draw answers with it, and import nothing of a policy.
        ("pictures.svg", "policy.views"),
    ),
    FLOORS: (("app.requests.chain", "app.running.delivery"),),
    "The wire is sans-I/O": (("nri_proto.mux", "asyncio"),),
    PURE: (
        ("policy.ledger", "threading"),
        ("policy.topology_aware.place", "io"),
        ("policy.balloons.policy", "shutil"),
        ("policy.base", "secrets"),
        ("policy.static.place", "os"),
        ("policy.events", "log"),
        ("classes.blockio", "pathlib"),
        ("pictures.svg", "pathlib"),
    ),
    INDEPENDENT: (
        ("policy.balloons.policy", "policy.topology_aware.place"),
        ("policy.static.policy", "policy.static_plus.settings"),
        # All others import it.
        ("policy.base", "policy.none.policy"),
    ),
    NO_FILES: (
        ("app.plugin.engine", "os"),
        ("app.metrics.text", "pathlib"),
        ("config.table", "os"),
        ("config.balloons", "pathlib"),
        ("policies.documents", "pathlib"),
        ("policies.chosen_cpus", "os"),
        ("checkpoint.writer", "os"),
    ),
    NRI: (
        # These know policies.
        ("checkpoint.encode", "stub.model"),
        ("app.verification.verifier", "stub.update"),
        ("app.observing.history", "stub.model"),
        ("app.annotations.queryable", "stub.contents"),
        ("app.configuration.build", "nri_proto.levels"),
        ("policies.balloons", "stub.model"),
        ("agent.agent", "stub.model"),
    ),
    DEMO: (
        ("daemon.run", "testing"),
        ("control.routes", "testing.runtime"),
        ("recordings.recorder", "testing.tape"),
        ("cli.run", "testing"),
        ("cli.inspect_chain", "testing.runtime"),
    ),
    "Stub, host and configuration do not know policies": (
        ("stub.model", "policy.events"),
    ),
    "Host and configuration do not know the wire": (("host.tree", "nri_proto.mux"),),
    "The kubelet's services know neither NRI nor policies": (
        ("kubelet.pods", "policy.requests"),
    ),
    "The agent does not know NRI, policies or the daemon's parts": (
        ("agent.reporter", "app.plugin.engine"),
    ),
    "The daemon has no network: no HTTP or TLS client": (("control.http", "ssl"),),
    "The server of the webhook has no client, and knows neither NRI nor the host's"
    " parts": (("webhook.server", "agent.api.client"),),
    "Reviews of the webhook are sans-I/O": (("webhook.review", "socket"),),
    "The kubectl plugin stands alone": (
        ("kubectl.main", "values.errors"),
        ("kubectl.gather", "control.client"),
        ("kubectl.pieces", "msgspec"),
    ),
    "The API client stands alone": (("agent.api.client", "log"),),
    "The list/watch machine is sans-I/O": (("agent.api.watch", "time"),),
}


@cache
def imports_of_tree() -> ImportGraph:
    """Read all imports of the tree."""
    packages = CONFIGURATION["session_options"]["root_packages"]
    return build_graph(*packages, include_external_packages=True, cache_dir=None)


def holds(contract: str, graph: ImportGraph) -> bool:
    """Check one contract; *graph* is left as it is."""
    options = CONTRACTS[contract]
    made = TYPES[options["type"]](contract, CONFIGURATION["session_options"], options)
    # Checks take the imports that they ignore out of their graph.
    return made.check(deepcopy(graph), verbose=False).kept


def full_name(graph: ImportGraph, name: str) -> str:
    """Complete the name of a module of ours; others are of Python itself."""
    for one in (f"nri_resmgr.{name}", name):
        if one in graph.modules:
            return one
    assert name in sys.stdlib_module_names
    return name


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_tree_keeps(contract: str) -> None:
    assert holds(contract, imports_of_tree())


@pytest.mark.parametrize(
    ("contract", "importer", "imported"),
    [
        pytest.param(contract, *names, id=" imports ".join(names))
        for contract, imports in REFUSED.items()
        for names in imports
    ],
)
def test_an_import_is_refused(contract: str, importer: str, imported: str) -> None:
    graph = deepcopy(imports_of_tree())
    one, two = full_name(graph, importer), full_name(graph, imported)
    assert not graph.direct_import_exists(importer=one, imported=two)
    if two not in graph.modules:
        # As other modules outside of the tree: one node for all that is in it.
        graph.add_module(two, is_squashed=True)

    graph.add_import(importer=one, imported=two)

    assert not holds(contract, graph)


def named_in_text(graph: ImportGraph) -> Iterator[tuple[str, str]]:
    """Yield modules with those that they name in text, which they may import by it."""
    for name, module in modules().items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = node.value.partition(":")[0]
                if "." in named and named in graph.modules and named != name:
                    yield name, named


@pytest.mark.parametrize("contract", [LAYERS, FLOORS])
def test_a_name_in_text_points_downwards_as_an_import_does(contract: str) -> None:
    graph = deepcopy(imports_of_tree())
    found = set(named_in_text(graph))
    for importer, imported in found:
        graph.add_import(importer=importer, imported=imported)

    assert ("nri_resmgr.policies.find", "nri_resmgr.policies.balloons") in found
    assert holds(contract, graph)


def test_an_import_is_planted_for_each_contract() -> None:
    assert set(REFUSED) == set(CONTRACTS)


def test_the_contract_names_all_policies() -> None:
    packages = imports_of_tree().find_children("nri_resmgr.policy")

    policies = {one for one in packages if f"{one}.policy" in imports_of_tree().modules}

    assert set(CONTRACTS[INDEPENDENT]["modules"]) == policies


@pytest.mark.parametrize("contract", [NRI, DEMO])
def test_each_importer_that_is_named_imports_it(contract: str) -> None:
    options = CONTRACTS[contract]

    for importer in options["allowed_importers"]:
        assert any(
            imports_of_tree().direct_import_exists(
                importer=importer, imported=imported, as_packages=True
            )
            for imported in options["protected_modules"]
        ), importer
