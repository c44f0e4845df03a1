"""The forms of output: the same words in all commands, the same data in both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.cli.main import build_parser
from nri_resmgr.cli.output import document_text
from nri_resmgr.recordings.entries import Configured, Header
from nri_resmgr.recordings.text import entry_line, header_line
from nri_resmgr.topology.synthetic import parse_spec
from tests.cli.command import nri_resmgr
from tests.cli.test_examples import parsers_below
from tests.examples import examples

DOCUMENT = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec: {reservedResources: {cpu: %d}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, uid: web}
spec: {containers: [{name: app, image: any}]}
"""
PLUGIN = """\
from nri_resmgr.stub import *

class Hello:
    def create_container(self, pod, container):
        return ContainerAdjustment().set_env("POD", pod.name)

if __name__ == "__main__":
    serve(Hello(), index="07")
"""
STORY = "story: [{create: web, guaranteed: 2, memory: 1Gi}]\n"


def forms_by_command() -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(action.choices or ())
        for name, parser in parsers_below(build_parser({}))
        for action in parser._actions  # noqa: SLF001 - argparse shows it in no other way
        if "-o" in action.option_strings
    }


def test_all_commands_have_the_same_forms() -> None:
    forms = forms_by_command()
    wide = {name for name, words in forms.items() if "wide" in words}

    narrow = {tuple(one for one in words if one != "wide") for words in forms.values()}

    assert forms.keys() >= {"status", "explain", "top", "topology", "replay"}
    assert wide == {"status", "events", "simulate"}
    assert narrow == {("table", "json", "yaml")}


@examples(0.5)
@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        ),
    )
)
def test_both_forms_have_the_same_data_and_nothing_invisible(
    document: dict[str, Any],
) -> None:
    as_json, as_yaml = (document_text(document, form) for form in ("json", "yaml"))

    assert json.loads(as_json) == yaml.safe_load(as_yaml) == document
    for line in (*as_json.split("\n"), *as_yaml.split("\n")):
        assert line.isprintable()


@pytest.mark.process
def test_documents_without_a_daemon(tmp_path: Path) -> None:
    story, first, second = (tmp_path / name for name in ("story", "a.yaml", "b.yaml"))
    story.write_text(STORY)
    first.write_text(DOCUMENT % 1)
    second.write_text(DOCUMENT % 2)
    machine = ("--topology", "1s2n4c1t")
    simulate = ("simulate", *machine, story, "--config-file", first)
    folder, pod, program = (tmp_path / name for name in ("nodes", "pod.yaml", "p.py"))
    folder.mkdir()
    nri_resmgr("topology", "--machine", "1s2n4c1t", "dump", folder / "node-a.tgz")
    pod.write_text(POD)
    program.write_text(PLUGIN)
    recording, host = tmp_path / "today.rec", tmp_path / "host"
    header = header_line(Header("1.2", 17, parse_spec("1s2n4c1t")))
    recording.write_text(f"{header}\n{entry_line(Configured(18, DOCUMENT % 1))}\n")
    (host / "run" / "containerd").mkdir(parents=True)
    (host / "run" / "containerd" / "containerd.sock").touch()
    rollout = ("simulate", "--cluster", folder, pod, "--config-file", first)
    commands: dict[str, tuple[str | Path, ...]] = {
        "Topology": ("topology", "--machine", "1s2n4c1t"),
        "CheckResults": ("check", *machine, first, second),
        "Simulation": simulate,
        "SimulationChanges": (*simulate, "--against", second),
        "ClusterSimulation": rollout,
        "ClusterSimulationChanges": (*rollout, "--against", second),
        "PluginTrial": ("try", program, pod),
        "Replay": ("replay", recording),
        "RuntimeChange": ("enable-runtime", "--host-root", host, "--dry-run"),
    }
    for kind, words in commands.items():
        found = [
            parse(nri_resmgr(*words, "-o", form).stdout)
            for form, parse in (("json", json.loads), ("yaml", yaml.safe_load))
        ]

        assert (found[0]["apiVersion"], found[0]["kind"]) == ("cli.nri/v1", kind)
        assert found[0] == found[1]
