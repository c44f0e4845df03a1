"""``nri-resmgr convert`` of whole documents: the result is valid, and keeps all."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nri_resmgr.cli.main import main
from nri_resmgr.config.migrate import convert_text
from nri_resmgr.policies import read_config
from nri_resmgr.values import InputError
from tests.fast_yaml import read_yaml

SAMPLES: Final = Path(__file__).parent / "migrate"
NRI_PLUGINS: Final = Path(__file__).parent / "nri_plugins"
MACHINE: Final = "2s2n2c2t memory=8Gi"

NO_PINS: Final = "NonePolicy"


class Result:
    """What the command prints, and the document in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.document: Any = yaml.safe_load(text)
        self.spec = self.document["spec"]
        self.kind = self.document["kind"]
        self.notes = "".join(
            line for line in text.splitlines(keepends=True) if line.startswith("#   ")
        )

    def noted(self, path: str) -> bool:
        """Return whether a comment is about *path*."""
        return f"#   {path}: " in self.notes


@pytest.fixture
def convert(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that converts a sample."""

    def call(name: str) -> Result:
        assert main(["convert", str(SAMPLES / name)]) == 0
        return Result(capsys.readouterr().out)

    return call


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.yaml")), ids=lambda p: p.stem)
def test_the_result_passes_check(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(path)]) == 0
    (made := tmp_path / "made.yaml").write_text(capsys.readouterr().out)
    status = main(["check", "--topology", MACHINE, str(made)])

    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "path", sorted(NRI_PLUGINS.glob("*.yaml")), ids=lambda p: p.stem
)
def test_documents_of_nri_plugins_are_unchanged(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(path)]) == 0
    assert capsys.readouterr().out == path.read_text()


def test_topology_aware(convert: Any) -> None:
    found = convert("topology-aware.yaml")

    assert found.kind == "TopologyAwarePolicy"
    control = found.spec.pop("control")
    assert found.spec == {
        "availableResources": {"cpu": "cpuset:0-6"},
        "reservedResources": {"cpu": "cpuset:0"},
        "pinCPU": True,
        "pinMemory": False,
        "preferIsolatedCPUs": False,
        "preferSharedCPUs": True,
        "reservedPoolNamespaces": ["monitoring-*"],
        "colocatePods": True,
        "colocateNamespaces": False,
    }
    rdt = control.pop("rdt")
    assert (rdt["enable"], rdt["usePodQoSAsDefaultClass"]) == (True, True)
    assert rdt["options"] == {"l3": {"optional": True}}
    assert list(rdt["partitions"]) == ["front", "back"]
    assert "monitorPods" not in rdt
    assert control == {
        "blockio": {
            "enable": True,
            "usePodQoSAsDefaultClass": True,
            "classes": {
                "BestEffort": [
                    {"Weight": 40},
                    {
                        "Devices": ["/dev/sd*"],
                        "ThrottleReadBps": "20M",
                        "ThrottleWriteIOPS": "1k",
                    },
                ]
            },
        }
    }
    control_path = "$.resource-manager.control"
    for path in (
        "$.policy.Active",
        "$.policy.topology-aware.PageMoveCount",
        f"{control_path}.Controllers.rdt",
        f"{control_path}.Controllers.page-migration",
        f"{control_path}.page-migration",
        "$.cpu",
    ):
        assert found.noted(path), path
    assert found.notes.count("\n") == 6


def test_balloons(convert: Any) -> None:
    found = convert("balloons.yaml")

    assert found.kind == "BalloonsPolicy"
    classes = found.spec.pop("control")["cpu"]["classes"]
    assert found.spec == {
        "reservedResources": {"cpu": "750m"},
        "pinMemory": False,
        "idleCPUClass": "quiet",
        "reservedPoolNamespaces": ["node-*"],
        "allocatorTopologyBalancing": True,
        "balloonTypes": [
            {
                "name": "packets",
                "namespaces": ["net-*"],
                "minCPUs": 2,
                "maxCPUs": 3,
                "minBalloons": 1,
                "maxBalloons": 2,
                "cpuClass": "quick",
                "shareIdleCPUsInSame": "package",
                "preferSpreadOnPhysicalCores": True,
                "allocatorPriority": "normal",
            },
            {
                "name": "jobs",
                "preferSpreadingPods": True,
                "preferPerNamespaceBalloon": True,
                "preferNewBalloons": True,
            },
        ],
    }
    assert classes == {
        "default": {"minFreq": 800000, "maxFreq": 1800000},
        "quick": {"minFreq": 2000000, "maxFreq": 3000000},
        "quiet": {"minFreq": 800000, "maxFreq": 900000, "uncoreMaxFreq": 1500000},
    }
    for path in (
        "$.policy.balloons.BalloonTypes[1].PreferNewBalloon",
        "$.cpu.classes.quick.energyPerformancePreference",
        "$.cpu.classes.forgotten",
    ):
        assert found.noted(path), path
    assert found.notes.count("\n") == 3


def test_static_policy_with_options_that_were_flags(convert: Any) -> None:
    found = convert("static.yaml")

    assert (found.kind, found.spec) == (
        "StaticPolicy",
        {
            "reservedResources": {"cpu": 1},
            "relaxedIsolation": True,
            "borrowIsolatedCPUs": True,
            "control": {
                "rdt": {
                    "enable": True,
                    "usePodQoSAsDefaultClass": True,
                    "monitorPods": True,
                }
            },
            "log": {
                "debug": ["policy", "cache", "message"],
                "source": True,
                "klog": {"skip_headers": True},
            },
            "instrumentation": {
                "httpEndpoint": ":8891",
                "prometheusExport": True,
                "reportPeriod": "60s",
            },
        },
    )
    for path in ("dump.Config", "dump.File", "instrumentation.ReportPeriod"):
        assert found.noted(f"$.{path}")
    assert found.noted("$.policy.static.Rdt")
    assert not found.noted("$.policy.static.RelaxedIsolation")
    assert "--resource-path /.cri-resmgr" in found.notes


def test_static_plus(convert: Any) -> None:
    found = convert("static-plus.yaml")

    assert (found.kind, found.spec) == (
        "StaticPlusPolicy",
        {
            "availableResources": {"cpu": "cpuset:0-7"},
            "reservedResources": {"cpu": 2},
        },
    )
    assert found.noted("$.policy.static-plus.Unknown")
    assert "--resource-path /.cri-resmgr" in found.notes


def test_the_data_of_a_config_map(convert: Any) -> None:
    found = convert("configmap.yaml")

    assert (found.kind, found.spec) == (
        "TopologyAwarePolicy",
        {"reservedResources": {"cpu": 1}, "preferSharedCPUs": True},
    )
    assert "# It is the ConfigMap cri-resmgr-config.default.\n" in found.text
    assert found.noted("$.data.rdt")


def test_podpools(convert: Any) -> None:
    found = convert("podpools.yaml")

    assert (found.kind, found.spec) == (
        "PodpoolsPolicy",
        {
            "availableResources": {"cpu": "cpuset:0-7"},
            "reservedResources": {"cpu": "cpuset:7"},
            "pools": [{"name": "pairs", "cpu": 2, "maxPods": 2, "instances": "50 %"}],
        },
    )


def test_dynamic_pools(convert: Any) -> None:
    found = convert("dynamic-pools.yaml")

    assert (found.kind, found.spec) == (
        "DynamicPoolsPolicy",
        {
            "availableResources": {"cpu": "cpuset:0-7"},
            "reservedResources": {"cpu": "cpuset:7"},
            "pinMemory": False,
            "pools": [
                {
                    "name": "web",
                    "namespaces": ["shop"],
                    "cpuClass": "turbo",
                    "allocatorPriority": "high",
                },
                {"name": "batch"},
            ],
            "control": {
                "cpu": {"classes": {"turbo": {"minFreq": 2000000, "maxFreq": 3000000}}}
            },
        },
    )
    assert found.noted("$.cpu.classes.none")


def test_static_pools(convert: Any) -> None:
    found = convert("static-pools.yaml")

    assert (found.kind, found.spec) == (
        "StaticPoolsPolicy",
        {
            "pools": [
                {
                    "name": "exclusive",
                    "exclusive": True,
                    "cpuLists": [
                        {"socket": 0, "cpus": "1"},
                        {"socket": 1, "cpus": "4-5,6"},
                    ],
                },
                {"name": "shared", "cpuLists": [{"socket": 0, "cpus": "2,3"}]},
                {"name": "infra", "cpuLists": [{"socket": 0, "cpus": "0"}]},
            ]
        },
    )
    assert found.noted("$.policy.ReservedResources")
    assert found.noted("$.policy.static-pools.pools.shared.cpuLists[0].Color")
    assert not found.noted("$.policy.static-pools.TaintNode")
    assert (
        "$.policy.static-pools.LabelNode: by hand: "
        "kubectl label node NODE cmk.intel.com/cmk-node=true\n"
    ) in found.notes
    assert (
        "kubectl patch node NODE --subresource=status --type=merge "
        '-p \'{"status":{"capacity":{"cmk.intel.com/exclusive-cores":"2"}}}\'\n'
    ) in found.notes


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        ("{}", "ConfDirPath: the pools are not in this file: `nri-resmgr convert "),
        ("{}", "nri-resmgr convert /etc/cmk` on the node"),
        ("{ConfDirPath: /opt/cmk}", "nri-resmgr convert /opt/cmk` on the node"),
        ("{ConfFilePath: /x.yaml}", "ConfFilePath: the pools are not in this file"),
        ("{ConfFilePath: /x.yaml}", "nri-resmgr convert /x.yaml` on the node"),
        ("{TaintNode: true}", "kubectl taint node NODE cmk=true:NoSchedule"),
    ],
)
def test_static_pools_that_are_elsewhere(options: str, noted: str) -> None:
    text = convert_text(
        f"policy: {{Active: static-pools, static-pools: {options}}}", read_config
    )

    assert "kind: StaticPoolsPolicy\nspec: {}\n" in text
    assert noted in text


def test_pools_of_cmk_in_a_file(convert: Any) -> None:
    found = convert("cmk-pools.yaml")

    assert found.kind == "StaticPoolsPolicy"
    assert found.spec["pools"] == [
        {
            "name": "exclusive",
            "exclusive": True,
            "cpuLists": [{"socket": 0, "cpus": "1"}],
        },
        {
            "name": "shared",
            "exclusive": False,
            "cpuLists": [{"socket": 0, "cpus": "2,3"}],
        },
    ]
    assert '"cmk.intel.com/exclusive-cores":"1"' in found.notes


def test_pools_of_cmk_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pool, exclusive, lists in (
        ("shared", "0", ["0/2"]),
        ("exclusive", "1", ["1/5", "0/1,9", "0/3"]),
    ):
        for one in lists:
            (tmp_path / "pools" / pool / one).mkdir(parents=True)
        (tmp_path / "pools" / pool / "exclusive").write_text(exclusive)

    assert main(["convert", str(tmp_path)]) == 0
    document = yaml.safe_load(capsys.readouterr().out)
    assert document["kind"] == "StaticPoolsPolicy"
    assert document["spec"]["pools"] == [
        {
            "name": "exclusive",
            "exclusive": True,
            "cpuLists": [
                {"socket": 0, "cpus": "1,9"},
                {"socket": 0, "cpus": "3"},
                {"socket": 1, "cpus": "5"},
            ],
        },
        {
            "name": "shared",
            "exclusive": False,
            "cpuLists": [{"socket": 0, "cpus": "2"}],
        },
    ]


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("", "pools: no such file or directory"),
        ("pools/shared/0/2", "pools/shared/exclusive: no such file or directory"),
        ("pools/shared/left/2", "expected a folder named by the number of a socket"),
        ("pools/shared/0/two", "not a CPU or node list: 'two'"),
    ],
)
def test_other_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str, why: str
) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    if "left" in folder or "two" in folder:
        (tmp_path / "pools" / "shared" / "exclusive").write_text("0")

    assert main(["convert", str(tmp_path)]) == 2
    assert why in capsys.readouterr().err


def test_no_policy_is_no_loss(convert: Any) -> None:
    found = convert("none.yaml")

    assert found.kind == NO_PINS
    assert found.notes.count("\n") == 1  # the message dump
    assert found.noted("$.dump.Config")


def test_the_kubelets_static_manager(convert: Any) -> None:
    found = convert("kubelet-static.yaml")

    assert (found.kind, found.spec) == (
        "StaticPolicy",
        {"reservedResources": {"cpu": "1500m"}, "pinCPU": True, "pinMemory": False},
    )
    assert "set cpuManagerPolicy: none" in found.text
    options = "$.cpuManagerPolicyOptions"
    assert found.noted(f"{options}.full-pcpus-only")
    assert found.noted(f"{options}.strict-cpu-reservation")
    assert not found.noted(f"{options}.align-by-socket")  # it is off
    assert found.noted("$.cpuManagerReconcilePeriod")
    assert "clusterDomain" not in found.notes


def test_the_kubelets_topology_manager(convert: Any) -> None:
    found = convert("kubelet-aligned.yaml")

    assert (found.kind, found.spec) == (
        "TopologyAwarePolicy",
        {
            "reservedResources": {"cpu": "cpuset:0,4"},
            "pinCPU": True,
            "pinMemory": True,
            "placePods": "strict",
        },
    )
    for path in (
        "$.topologyManagerPolicy",
        "$.topologyManagerPolicyOptions.prefer-closest-numa-nodes",
        "$.reservedMemory",
        "$.kubeReserved.cpu",
    ):
        assert found.noted(path), path


def test_a_kubelet_that_pins_nothing(convert: Any) -> None:
    found = convert("kubelet-default.yaml")

    assert found.kind == NO_PINS
    assert found.noted("$.cpuManagerPolicy")


def mappings(document: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each mapping of a document, with its place."""
    if isinstance(document, dict):
        yield path, document
        for key, value in document.items():
            yield from mappings(value, f"{path}.{key}")
    if isinstance(document, list):
        for place, value in enumerate(document):
            yield from mappings(value, f"{path}[{place}]")


CRI_RM: Final = {
    path.stem: read_yaml(path)
    for path in SAMPLES.glob("*.yaml")
    if not path.stem.startswith(("kubelet", "configmap"))
}


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name, one in CRI_RM.items() for place, _ in mappings(one)],
)
def test_every_dropped_key_is_noted(name: str, place: str) -> None:
    document = copy.deepcopy(CRI_RM[name])
    dict(mappings(document))[place]["Surprise"] = {}

    text, sentence = "", ""
    try:
        text = convert_text(yaml.safe_dump(document), read_config)
    except InputError as error:
        sentence = str(error)
    if not text:
        assert "Surprise" in sentence  # our own readers accept no such key
        return
    result = Result(text)
    noted = re.findall(r"^#   (\$\S*): ", result.notes, re.MULTILINE)
    is_noted = any(f"{place}.Surprise".startswith(path) for path in noted)
    is_kept = any("Surprise" in one for _, one in mappings(result.spec))
    assert is_noted or is_kept


def test_classes_of_disks(convert: Any) -> None:
    found = convert("classes-of-disks.yaml")

    assert found.kind == NO_PINS
    classes = found.spec["control"]["blockio"]["classes"]
    assert [len(one) for one in classes.values()] == [3, 1]
    assert classes["Crawling"][2]["ThrottleReadBps"] == "90M"
    assert found.noted("$.resource-manager.blockio")
    assert found.notes.count("\n") == 1


def test_memtier(convert: Any) -> None:
    found = convert("memtier.yaml")

    assert found.kind == "TopologyAwarePolicy"
    assert found.spec == {
        "reservedResources": {"cpu": "500m"},
        "log": {"debug": ["cache", "policy", "message"]},
    }
    assert found.noted("$.dump.Config")


def test_old_cache_classes(convert: Any) -> None:
    found = convert("configmap-of-a-node.yaml")

    assert "the ConfigMap cri-resmgr-config.node.worker-7" in found.text
    classes = found.spec["control"]["rdt"]["partitions"]["all"]["classes"]
    assert classes["Guaranteed"] == {"l3Allocation": {"all": "100%"}}
    assert classes["BestEffort"] == {
        "l3Allocation": {"all": {"unified": "40%", "code": "50%", "data": "30%"}},
        "mbAllocation": ["20%"],
    }
    for path in ("Guaranteed.l3schema", "BestEffort.l3schema", "BestEffort.mbschema"):
        assert found.noted(f"$.data.rdt.partitions.all.classes.{path}")
    assert found.noted("$.data.policy.static-pools")


def test_nri_resmgr(convert: Any) -> None:
    found = convert("configmap-of-nri-resmgr.yaml")

    assert found.kind == "BalloonsPolicy"
    assert found.spec == {
        "reservedResources": {"cpu": "cpuset:0"},
        "pinMemory": False,
        "balloonTypes": [{"name": "shop", "namespaces": ["shop-*"]}],
    }
    assert "the options are those of balloons" in found.notes
    assert found.noted("$.data.policy.static")


def test_files_of_plugins(convert: Any) -> None:
    qos = convert("nri-plugins-memory-qos.yaml")
    policy = convert("nri-plugins-memory-policy.yaml")
    monitors = convert("nri-plugins-resctrl-mon.yaml")

    assert [one.kind for one in (qos, policy, monitors)] == [NO_PINS] * 3
    assert qos.spec["memoryQos"]["classes"][0] == {
        "name": "patient",
        "swaplimitratio": 0.7,
    }
    assert [one["name"] for one in policy.spec["memoryPolicy"]["classes"]] == [
        "spread",
        "near",
    ]
    assert "copy memoryPolicy into the spec" in policy.text
    assert monitors.spec["control"]["rdt"] == {
        "monitorPods": True,
        "monitoring": {
            "namespaces": ["shop-*"],
            "labelSelector": {"tier": "front"},
        },
    }
    assert monitors.noted("$.resctrlPath")
    assert monitors.noted("$.telemetry")
    assert monitors.notes.count("\n") == 2
