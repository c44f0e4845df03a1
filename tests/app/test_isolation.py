"""What CRI-O's isolation annotations do to the containers that have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from nri_resmgr.stub.model import KeyValue
from nri_resmgr.testing import RuntimeRefusal
from tests.app.node import Node, running_node

ALLOWED = "{isolationAnnotations: true, reserveWholeCores: true}"
NO_QUOTA = {"cpu-quota.crio.io": "disable"}
CORES = "1s1n4c2t"  # CPU 0 and 4 are of one core, and reserved


def node(folder: Path, spec: str = ALLOWED) -> Any:
    return running_node(folder, machine=CORES, spec=spec)


def quota(one: Node, name: str) -> int:
    return one.runtime.world.containers[name].linux.resources.cpu.quota.value


async def test_a_disabled_quota_stays_disabled_after_a_resize(tmp_path: Path) -> None:
    async with node(tmp_path) as one:
        await one.run("web", 2, NO_QUOTA)
        await one.run("log", 2)
        before = quota(one, "web"), quota(one, "log")
        await one.resize("web", 3)

        assert before == (-1, 200_000)
        assert quota(one, "web") == -1


async def test_a_resize_to_a_part_of_a_cpu_has_its_quota(tmp_path: Path) -> None:
    async with node(tmp_path) as one:
        await one.run("web", 1, NO_QUOTA)
        await one.resize("web", 0.5)

        assert quota(one, "web") == 50_000


@pytest.mark.parametrize(
    ("spec", "cpus", "annotations", "logged"),
    [
        pytest.param(
            "{}",
            2,
            NO_QUOTA,
            {
                "event": "isolation.not-allowed",
                "title": "default/web/web",
                "why": "spec.isolationAnnotations is off",
            },
            id="the configuration does not allow it",
        ),
        pytest.param(
            "{}",
            2,
            {"cpu-quota.crio.io": "off"},
            {
                "event": "isolation.not-allowed",
                "title": "default/web/web",
                "why": "spec.isolationAnnotations is off",
            },
            id="mistakes do not count without leave",
        ),
        pytest.param(
            ALLOWED,
            1.5,
            NO_QUOTA,
            {
                "event": "isolation.annotation-ineffective",
                "title": "default/web/web",
                "why": "it has no exclusive CPUs",
            },
            id="a part of a CPU is shared",
        ),
    ],
)
async def test_a_container_that_cannot_be_isolated_is_created_with_a_warning(
    tmp_path: Path,
    spec: str,
    cpus: float,
    annotations: dict[str, str],
    logged: dict[str, str],
) -> None:
    with capture_logs() as logs:
        async with node(tmp_path, spec) as one:
            created = await one.run("web", cpus, annotations)

    assert created.container.linux.resources.cpu.quota == cpus * 100_000
    found = [log for log in logs if log["event"].startswith("isolation.")]
    assert found == [logged | {"log_level": "warning"}]


async def test_housekeeping_cpus_are_reported(tmp_path: Path) -> None:
    async with node(tmp_path) as one:
        created = await one.run(
            "web", 4, {"irq-load-balancing.crio.io": "housekeeping"}
        )

    assert created.adjustment.env == (KeyValue("OPENSHIFT_HOUSEKEEPING_CPUS", "1,5"),)
    assert one.pinned("web")[0] == "1-2,5-6"


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        pytest.param(
            {"cpu-quota.crio.io": "off"},
            "annotation cpu-quota.crio.io: expected disable or enable, not 'off'",
            id="a word that means nothing",
        ),
        pytest.param(
            {"cpu-freq-governor.crio.io/web": "schedutil"},
            "annotation cpu-freq-governor.crio.io/web: CPU 1 has no governor "
            "schedutil; available: performance powersave",
            id="a governor that there is not",
        ),
        pytest.param(
            {"cpu-freq-governor.crio.io": "performance"},
            "annotation cpu-freq-governor.crio.io: CPU 5 has no governor performance"
            "; available: none",
            id="a governor that some CPUs have",
        ),
        pytest.param(
            {"cpu-shared.crio.io/web": "enable", "cpu-load-balancing.crio.io": "true"},
            "annotation cpu-shared.crio.io/web: shared CPUs are balanced; to help, "
            "remove cpu-load-balancing",
            id="two that cannot be had together",
        ),
    ],
)
async def test_mistakes_refuse_the_container(
    tmp_path: Path, annotations: dict[str, str], why: str
) -> None:
    folder = tmp_path / "host/sys/devices/system/cpu/cpufreq/policy1"
    folder.mkdir(parents=True)
    (folder / "scaling_available_governors").write_text("performance powersave\n")
    async with node(tmp_path) as one:
        with pytest.raises(RuntimeRefusal) as refused:
            await one.run("web", 2, annotations)

    assert f"default/web/web: {why}" in str(refused.value)


async def test_shared_cpus_are_added_to_the_exclusive_ones(tmp_path: Path) -> None:
    async with node(tmp_path) as one:
        created = await one.run("web", 2, {"cpu-shared.crio.io/web": "enable"})
        before = one.pinned("web")[0]
        await one.run("log", 2)

        assert created.adjustment.env == (
            KeyValue("OPENSHIFT_ISOLATED_CPUS", "1,5"),
            KeyValue("OPENSHIFT_SHARED_CPUS", "2-3,6-7"),
        )
        assert (before, quota(one, "web")) == ("1-3,5-7", -1)
        assert created.container.linux.resources.cpu.shares == 2048
        assert one.pinned("log")[0] == "2,6"
        assert one.pinned("web")[0] == "1,3,5,7"


async def test_the_last_shared_cpus_are_not_granted_while_a_container_uses_them(
    tmp_path: Path,
) -> None:
    async with node(tmp_path) as one:
        await one.run("web", 2, {"cpu-shared.crio.io/web": "enable"})
        with pytest.raises(RuntimeRefusal):
            await one.run("log", 4)

        assert one.pinned("web")[0] == "1-3,5-7"


async def test_shared_cpus_have_to_be_permitted(tmp_path: Path) -> None:
    async with node(tmp_path, "{}") as one:
        await one.run("web", 2, {"cpu-shared.crio.io/web": "enable"})

        assert one.pinned("web")[0] == "1,5"
