"""The plugin without a socket: stub values in, stub values out."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import BadSetting, StaticPolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.errors import ExclusiveCpusShort
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerState,
    ContainerUpdate,
    CreateReply,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pod,
)
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.stub.replies import stop_response
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError

#  node 0: cores {0,4} {1,5}     node 1: cores {2,6} {3,7}
MACHINE = parse_spec("1s2n2c2t")

SLICES = {
    "guaranteed": "/kubepods.slice/kubepods-pod{}.slice",
    "burstable": "kubepods-burstable-pod{}.slice",
}


def pod(name: str, qos: str = "guaranteed", namespace: str = "default") -> Pod:
    return Pod(
        id=f"pod-{name}",
        name=name,
        namespace=namespace,
        linux=LinuxPod(cgroup_parent=SLICES[qos].format(name)),
    )


def cpus(count: float) -> LinuxResources:
    return LinuxResources(
        cpu=LinuxCpu(
            shares=int(count * 1024), quota=int(count * 100_000), period=100_000
        ),
        memory=LinuxMemory(limit=1 << 30),
    )


def container(
    name: str, resources: LinuxResources, state: int = ContainerState.UNKNOWN
) -> Container:
    return Container(
        id=name,
        pod_sandbox_id=f"pod-{name}",
        name=name,
        state=state,
        linux=LinuxContainer(resources=resources),
    )


def pinned(name: str, count: float, cpus_: str, mems: str = "") -> Container:
    wanted = cpus(count)
    assert wanted.cpu is not None
    cpu = LinuxCpu(wanted.cpu.shares, wanted.cpu.quota, cpus=cpus_, mems=mems)
    return container(name, LinuxResources(cpu=cpu), ContainerState.RUNNING)


def update(name: str, cpus_: str = "", mems: str = "") -> ContainerUpdate:
    change = ContainerUpdate(name)
    change = change.set_cpus(cpus_) if cpus_ else change
    return change.set_mems(mems) if mems else change


def config(spec: str) -> str:
    return f"apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\nspec: {spec}"


def started(machine: Machine = MACHINE, spec: str = "{}") -> ResourcePolicy:
    plugin = ResourcePolicy(machine)
    plugin.configure(Configuration(config(spec), RuntimeInfo()))
    return plugin


def test_a_day_on_a_node() -> None:
    plugin = started()
    log, web = container("log", cpus(0.2)), container("web", cpus(2))

    answers = [
        plugin.synchronize([pod("log", "burstable")], [log]),
        plugin.create_container(pod("web"), web),
        plugin.update_container(pod("web"), web, LinuxResources(cpu=LinuxCpu())),
        plugin.update_container(pod("web"), web, cpus(4)),
        plugin.stop_container(pod("web"), Container(id="web")),
    ]
    plugin.remove_container(Pod(), Container(id="web"))
    plugin.stop_pod_sandbox(Pod(id="pod-web"))

    assert answers == [
        (update("log", "0-7", "0-1"),),
        CreateReply(
            ContainerAdjustment().set_cpus("1,5").set_mems("0"),
            (update("log", "0,2-4,6-7"),),
        ),
        (update("web", "1,5", "0"),),
        (update("web", "2-3,6-7", "1"), update("log", "0-1,4-5")),
        (update("log", "0-7"),),
    ]
    assert list(plugin.state.ledger.entries) == ["log"]


def test_a_restart_reports_nothing_that_is_known() -> None:
    plugin = started()
    found = [
        pinned("log", 0.2, "0,2-4,6-7", "0-1"),
        pinned("web", 2, "1,5", "0"),
        pinned("odd", 0.5, "no list"),
        container("dead", cpus(6), ContainerState.STOPPED),
    ]
    pods = [pod("log", "burstable"), pod("web"), pod("odd"), pod("dead")]

    assert plugin.synchronize(pods, found) == (update("odd", "0,2-4,6-7", "0-1"),)


def test_the_qos_class_of_a_container_without_pod_is_read_from_its_cgroup() -> None:
    plugin = started()
    own = LinuxContainer(
        resources=cpus(2), cgroups_path="kubepods-burstable-pod1.slice:cri-containerd:x"
    )
    lone = Container(id="x", pod_sandbox_id="gone", linux=own)

    assert plugin.synchronize([], [lone]) == (update("x", "0-7", "0-1"),)


def test_the_runtimes_text_counts_where_there_is_no_own_file() -> None:
    plugin = started(spec="{reservedResources: {cpu: 'cpuset:0-1,4-5'}}")

    assert plugin.create_container(pod("web"), container("web", cpus(2))) == (
        CreateReply(ContainerAdjustment().set_cpus("2,6").set_mems("1"))
    )


def test_the_own_file_wins_and_the_other_text_is_logged() -> None:
    own = StaticPolicyConfig(on_failure="shared")
    plugin = ResourcePolicy(MACHINE, own)
    with capture_logs() as lines:
        plugin.configure(Configuration(config("nonsense"), RuntimeInfo()))

    assert plugin.config == own
    assert [line["event"] for line in lines] == ["configuration.ignored"]


def test_an_invalid_document_changes_nothing() -> None:
    plugin = started()
    plugin.create_container(pod("web"), container("web", cpus(2)))
    before = plugin.config, plugin.policy, plugin.state
    text = config("{reservedResources: {cpu: 99}}")

    plugin.configure(Configuration(text, RuntimeInfo()))

    assert (plugin.config, plugin.policy, plugin.state) == before
    error = plugin.configuration.status.error
    assert error is not None
    assert error.why.startswith("$.spec.reservedResources.cpu: expected 1 to ")


def test_a_refusal_leaves_the_state_and_has_a_reason() -> None:
    plugin = started()
    before = plugin.state

    with pytest.raises(
        ExclusiveCpusShort, match="default/big/big asks for 8 exclusive CPUs"
    ):
        plugin.create_container(pod("big"), container("big", cpus(8)))

    assert plugin.state is before


def test_a_container_without_an_id_is_refused_and_takes_nothing() -> None:
    policy = started()
    before = policy.state
    web = pod("web")
    nameless = Container(name="web", pod_sandbox_id="pod-web")
    for ask in (
        lambda: policy.create_container(web, nameless),
        lambda: policy.update_container(web, nameless, cpus(1)),
    ):
        with pytest.raises(InputError, match="web: the runtime gave the container no"):
            ask()
    updates = policy.synchronize([web], [nameless])

    assert updates == ()
    assert policy.state.ledger == before.ledger


def test_a_new_configuration_moves_only_the_containers_it_affects() -> None:
    plugin = started()
    for name in ("web", "db"):
        plugin.create_container(pod(name), container(name, cpus(2)))
    plugin.create_container(pod("log", "burstable"), container("log", cpus(0.2)))

    own = parse_config(config("{reservedResources: {cpu: 'cpuset:1,5'}}"))
    reconfigure(plugin, own)
    plugin.configure(Configuration("", RuntimeInfo()))

    assert plugin.config == own
    # No runtime takes calls here, so the stub adds them to the next reply.
    reply = stop_response(plugin.stop_container(Pod(), Container(id="another")))
    plugin.updates.pending.attach(reply, busy="another")
    assert [from_message(one) for one in reply.update] == [
        update("log", "1,3,5,7", "0-1"),
        update("web", "0,4", "0"),
    ]


def test_a_new_configuration_that_does_not_fit_changes_nothing() -> None:
    plugin = started()
    before = plugin.config, plugin.policy, plugin.state

    with pytest.raises(BadSetting):
        reconfigure(plugin, parse_config(config("{availableResources: {cpu: 99}}")))

    assert (plugin.config, plugin.policy, plugin.state) == before


def test_a_dry_run_decides_and_adjusts_nothing() -> None:
    plugin = ResourcePolicy(
        MACHINE, StaticPolicyConfig(), plugin_options=PluginOptions(dry_run=True)
    )
    log, web = container("log", cpus(0.2)), container("web", cpus(2))
    with capture_logs() as lines:
        answers = [
            plugin.synchronize([pod("log", "burstable")], [log]),
            plugin.create_container(pod("web"), web),
            plugin.update_container(pod("web"), web, cpus(4)),
            plugin.stop_container(pod("web"), web),
        ]

    assert answers == [(), None, (), ()]
    assert lines[-2] == {
        "event": "container.updated",
        "log_level": "info",
        "container": "web",
        "title": "default/web/web",
        "rule": "moved",
        "cpus": "2-3,6-7",
        "detail": "node",
        "mems": "1",
        "pool": "exclusive CPUs",
        "source": "oci",
        "updates": 1,
        "dry_run": True,
    }


def test_every_decision_is_one_line_for_each_that_changes() -> None:
    plugin = started(spec="{onFailure: shared}")
    with capture_logs() as lines:
        plugin.create_container(pod("web"), container("web", cpus(6)))
        plugin.create_container(pod("big"), container("big", cpus(2)))
        plugin.stop_container(pod("web"), Container(id="web"))
        plugin.remove_container(pod("web"), Container(id="web"))
        plugin.stop_pod_sandbox(Pod(id="pod-big"))
        plugin.stop_pod_sandbox(Pod(id="pod-big"))

    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("container.placed", "info"),
        ("container.placed", "warning"),
        ("container.released", "info"),
        ("container.now-fits", "info"),  # in the same decision, of the other one
        ("container.removed", "debug"),
        ("pod.removed", "info"),
    ]
