"""``nri-resmgr convert`` of parts of documents, of manifests, and of mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.cli.main import main
from nri_resmgr.config.migrate import convert_text
from nri_resmgr.policies import parse_config, read_config
from nri_resmgr.values import InputError
from tests.cli.command import nri_resmgr


def converted(text: str) -> Any:
    """Convert a text, and parse the result."""
    return yaml.safe_load(convert_text(text, read_config))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("1", 1),
        ("0.75", 0.75),
        ("750m", "750m"),
        ("cpuset:0-3", "cpuset:0-3"),
        ("0-3", "cpuset:0-3"),
        ('"0,3"', "cpuset:0,3"),
        ("cgroup:system.slice", "cgroup:system.slice"),
        ("/system.slice", "cgroup:/system.slice"),
    ],
)
@pytest.mark.parametrize("key", ["Available", "Reserved"])
def test_all_forms_of_cpus(key: str, theirs: str, ours: object) -> None:
    text = f"policy: {{Active: static-plus, {key}Resources: {{CPU: {theirs}}}}}"

    assert converted(text)["spec"] == {f"{key.lower()}Resources": {"cpu": ours}}


def test_rdt_without_classes_is_converted() -> None:
    one = "rdt: {partitions: {all: {l3Allocation: 100%, classes: {gold: {}}}}}"
    rdt = converted(f"policy: {{Active: static}}\n{one}")["spec"]["control"]["rdt"]
    assert rdt["usePodQoSAsDefaultClass"] is False  # as with a single class before

    for nothing in ("{}", "{options: {mode: Disabled}}", "{options: {mode: Full}}"):
        text = f"policy: {{Active: static-plus}}\nrdt: {nothing}"
        assert converted(text)["spec"] == {}


def test_classes_work_on_without_their_policy() -> None:
    text = "policy: {Active: none}\nblockio: {Classes: {slow: [{Weight: 20}]}}"

    config = parse_config(convert_text(text, read_config))
    assert config.blockio is not None
    assert list(config.blockio.classes or ()) == ["slow"]


def test_an_unrelated_config_map_is_unchanged() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\ndata: {cpu: '2', colour: blue}\n"

    assert convert_text(text, read_config) == text


def test_modules_that_are_unknown_are_noted() -> None:
    assert "#   $.avx: unknown module\n" in convert_text(
        "policy: {}\navx: {}\n", read_config
    )


def test_a_class_named_default_was_not_that_of_idle_cpus() -> None:
    text = "policy: {Active: balloons}\ncpu: {classes: {default: {maxFreq: 1000000}}}"

    assert converted(text)["spec"]["idleCPUClass"] == ""
    assert parse_config(convert_text(text, read_config)).cpu_classes.idle == ""  # type: ignore[union-attr] # it has classes


MANIFEST = """\
# Two objects; comments and quotes stay.
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    prefer-shared-cpus.cri-resource-manager.intel.com/pod: "true"  # why
    'memory-type.cri-resource-manager.intel.com/container.db': dram,pmem
    cri-resource-manager.intel.com/affinity: |
      web: [db]
    cri-resource-manager.intel.com/prefer-isolated-cpus: "false"
    cri-resource-manager.intel.com/memory-type: |
      db: pmem
    dynamic-pool.dynamic-pools.cri-resource-manager.intel.com/pod: pairs
    example.com/else: "1"
---
apiVersion: apps/v1
kind: Deployment
template: {metadata: {annotations: {rdtclass.cri-resource-manager.intel.com: gold}}}
"""


def test_annotations_of_manifests() -> None:
    assert (
        convert_text(MANIFEST, read_config)
        == """\
# Without a counterpart, or with another meaning here:
#   line 12, cri-resource-manager.intel.com/memory-type: values of single containers; \
read here in this form, too
# Two objects; comments and quotes stay.
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    prefer-shared-cpus.resource-policy.nri.io/pod: "true"  # why
    'memory-type.resource-policy.nri.io/container.db': dram,pmem
    resource-policy.nri.io/affinity: |
      web: [db]
    prefer-isolated-cpus.resource-policy.nri.io: "false"
    cri-resource-manager.intel.com/memory-type: |
      db: pmem
    dynamic-pool.dynamic-pools.resource-policy.nri.io/pod: pairs
    example.com/else: "1"
---
apiVersion: apps/v1
kind: Deployment
template: {metadata: {annotations: {rdtclass.resource-policy.nri.io: gold}}}
"""
    )


def test_a_key_that_exists_already_is_not_written_twice() -> None:
    text = """\
---
apiVersion: v1
kind: Pod
metadata:
  annotations:
    cri-resource-manager.intel.com/memory-type: pmem
    memory-type.cri-resource-manager.intel.com: dram
"""
    head, body = convert_text(text, read_config).split("apiVersion")

    assert head.splitlines()[0] == "---"
    assert "line 6, cri-resource-manager.intel.com/memory-type: the new key" in head
    assert "    memory-type.resource-policy.nri.io: dram\n" in body


def test_several_documents_of_several_kinds() -> None:
    text = """\
policy: {Active: static}
---
apiVersion: criresmgr.intel.com/v1alpha1
kind: Adjustment
---
apiVersion: config.nri/v1alpha1
kind: StaticPolicy # as it is
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
"""
    found = convert_text(text, read_config)

    kinds = [one["kind"] for one in yaml.safe_load_all(found) if one]
    assert kinds[:2] == ["StaticPolicy", "StaticPolicy"]
    assert len(kinds) == 3
    assert "kind: StaticPolicy # as it is\n" in found
    assert "# An Adjustment of CRI Resource Manager needs no conversion" in found


def test_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = "---\napiVersion: config.nri/v1alpha1\nkind: StaticPolicy\n"
    (one := tmp_path / "one.yaml").write_text(ours)
    (two := tmp_path / "two.yaml").write_text(ours.replace("\n", "\r\n"))
    (three := tmp_path / "three.yaml").write_text("policy: {Active: static}")

    assert main(["convert", str(one), str(two), str(three)]) == 0
    found = capsys.readouterr().out
    assert found.startswith(ours * 2 + "---\n# Converted from")
    assert all(yaml.safe_load_all(found))


def test_keys_cannot_end_a_comment() -> None:
    found = convert_text('policy: {Active: static, "x\\nkind": 1}', read_config)

    assert "#   $.policy.x\\nkind: not of the active policy\n" in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no document in it"),
        ("[]", "expected a document of nri-plugins, of CRI Resource Manager"),
        ("some: thing", "expected a document of nri-plugins"),
        ("policy: {Active: statics}", "$.policy.Active: expected topology-aware or"),
        ("policy: {Active: 7}", "$.policy.Active: expected text"),
        ("policy: 7", "$.policy: expected a mapping"),
        ("policy: {Active: balloons, balloons: {BalloonTypes: 1}}", "expected a list"),
        (
            "policy: {Active: balloons}\npolicy.Active: static",
            "$.policy.Active: twice in this document",
        ),
        (
            "policy: {Active: static, ReservedResources: {CPU: many}}",
            "as converted: $.spec.reservedResources.cpu",
        ),
        (
            "kind: KubeletConfiguration\ncpuManagerPolicy: dynamic",
            "$.cpuManagerPolicy: 'dynamic' is not none or static",
        ),
        (
            "kind: KubeletConfiguration\nkubeReserved: {cpu: lots}",
            "$.kubeReserved.cpu",
        ),
        ("apiVersion: config.nri/v1alpha1\nkind: Policies", "unknown value"),
        ("apiVersion: v1\nkind: Pod\n---\n\nc: 1\nc: 2", "line 6: duplicate key"),
        (
            "apiVersion: v1\nkind: ConfigMap\ndata: {policy: '{a: 1, a: 2}'}",
            "$.data.policy: line 1: duplicate key",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (good := tmp_path / "good.yaml").write_text("policy: {Active: static}")
    (bad := tmp_path / "bad.yaml").write_text(text)

    assert main(["convert", str(good), str(bad)]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith(f"nri-resmgr: cannot convert {bad}: ")
    assert said in found.err
    assert found.err.count("\n") == 1


def test_a_file_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "/none.yaml"]) == 2
    assert capsys.readouterr().err == (
        "nri-resmgr: cannot read /none.yaml: no such file or directory\n"
    )


@pytest.mark.process
def test_standard_input() -> None:
    done = nri_resmgr("convert", "-", given="policy: {Active: static}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "kind: StaticPolicy\n" in done.stdout

    bad = nri_resmgr("convert", "-", given="policy: {Active: nothing}")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("nri-resmgr: cannot convert standard input: $.policy")

    binary = nri_resmgr("convert", "-", given="\udcff")
    assert (binary.returncode, binary.stdout) == (2, "")
    assert binary.stderr == (
        "nri-resmgr: cannot read standard input: not UTF-8 at byte 0\n"
    )


KEYS = st.sampled_from(
    [
        *("policy", "Active", "balloons", "topology-aware", "static", "policy.static"),
        *("AvailableResources", "ReservedResources", "CPU", "BalloonTypes", "Name"),
        *("rdt", "options", "mode", "partitions", "classes", "l3Allocation", "p"),
        *("blockio", "Classes", "cpu", "resource-manager.control", "Controllers"),
        *("kind", "apiVersion", "metadata", "annotations", "data", "reservedMemory"),
        *("cpuManagerPolicy", "cpuManagerPolicyOptions", "kubeReserved", "logger"),
        "memory-type.cri-resource-manager.intel.com",
        "cri-resource-manager.intel.com/memory-type",
    ]
)
VALUES = st.recursive(
    st.sampled_from(
        [
            *(None, True, 0, 1, 2.5, "", "static", "balloons", "topology-aware"),
            *("v1", "Pod", "ConfigMap", "KubeletConfiguration", "0-3", "disabled"),
            *("100%", "Full", "Discovery", "Active: static", "kubelet/v1", "[", "\n"),
        ]
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_any_document_is_converted_to_a_valid_one_or_refused(
    document: dict[str, object],
) -> None:
    # Any other exception fails the test.
    try:
        found = convert_text(yaml.safe_dump(document, sort_keys=False), read_config)
    except InputError:
        return
    if "\napiVersion: config.nri/v1alpha1" in found:
        parse_config(found)
    else:
        yaml.safe_load(found)


@pytest.mark.parametrize(
    ("modules", "log", "instrumentation", "notes"),
    [
        pytest.param(
            "logger: {Debug: 'on:policy,stp,off:rdt'}",
            {"debug": ["policy", "rdt:off"]},
            None,
            ["logger.Debug"],
            id="sources, one of which has no component here",
        ),
        pytest.param(
            "logger: {Klog: {v: 3, skip_headers: true}}",
            {"klog": {"skip_headers": True}},
            None,
            ["logger.Klog.v"],
            id="flags of klog",
        ),
        pytest.param(
            "instrumentation: {Sampling: production, JaegerAgent: 'j:6831'}",
            None,
            {"samplingRatePerMillion": 100_000},
            ["instrumentation.Sampling", "instrumentation.JaegerAgent"],
            id="sampling by a word",
        ),
        pytest.param(
            "instrumentation: {Sampling: 0.25, HTTPEndpoint: ''}",
            None,
            {"samplingRatePerMillion": 250_000},
            ["instrumentation.Sampling"],
            id="sampling by a number",
        ),
        pytest.param(
            "dump: {Config: 'off:.*,short:CreateContainer'}",
            {"debug": ["message"]},
            None,
            ["dump.Config"],
            id="messages of one method",
        ),
        pytest.param(
            "dump: {Config: 'off:.*'}", None, None, [], id="messages of no method"
        ),
        pytest.param(
            "dump: {Config: 'full:.*', Disabled: true}",
            None,
            None,
            [],
            id="a dumper that is off",
        ),
    ],
)
def test_log_and_instrumentation_of_cri_rm_are_converted(
    modules: str, log: object, instrumentation: object, notes: list[str]
) -> None:
    text = convert_text(f"policy: {{Active: none}}\n{modules}\n", read_config)
    spec = yaml.safe_load(text)["spec"]

    assert (spec.get("log"), spec.get("instrumentation")) == (log, instrumentation)
    paths = [
        line.split(":")[0][6:] for line in text.splitlines() if line[:6] == "#   $."
    ]
    assert paths == notes


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        pytest.param("optional", "there are no modes here: ", id="on"),
        pytest.param("disabled", "cannot be switched off here", id="off"),
    ],
)
def test_the_controller_of_fast_memory_is_noted(mode: str, sentence: str) -> None:
    modules = f"resource-manager.control: {{Controllers: {{memory: {mode}}}}}"

    text = convert_text(f"policy: {{Active: none}}\n{modules}\n", read_config)

    (line,) = [one for one in text.splitlines() if "Controllers.memory: " in one]
    assert sentence in line


def test_the_key_of_limits_of_fast_memory_is_renamed() -> None:
    pod = """
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    toptierlimit.cri-resource-manager.intel.com/pod: 1Gi
"""
    found = convert_text(pod, read_config)

    assert "    toptierlimit.resource-policy.nri.io/pod: 1Gi\n" in found
    assert "# " not in found
