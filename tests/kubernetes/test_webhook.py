"""The webhook with a real API server: what it annotates, and what it never prevents."""

from __future__ import annotations

import asyncio
import base64
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nri_resmgr.agent.api import ApiClient, Ref, find_access
from nri_resmgr.app.requests.webhook import read_resources
from nri_resmgr.webhook.own_certificates.cluster import (
    MUTATING,
    SECRETS,
    read_secret,
)
from nri_resmgr.webhook.own_certificates.keeper import CertificateKeeper, KeeperOptions
from nri_resmgr.webhook.own_certificates.openssl import make_pair
from nri_resmgr.webhook.own_certificates.plan import Pair
from tests.deploy.helm import Release
from tests.kubernetes.accounts import Account, make_account
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import Kubectl, KubectlFailed
from tests.real_host.patience import wait_until
from tests.webhook.rig import (
    RunningWebhook,
    running_webhook,
    starting_webhook,
    write_pair,
)
from tests.webhook.test_checks import DOCUMENT

KEY: Final = "noderesource.dev/resources"
FOLDER: Final = Path(__file__).parents[2] / "deploy/kubernetes/options/webhook"
# Without a network of services the API server reaches the webhook by this URL.
HOST: Final = "localhost"


def shipped(kind: str) -> list[dict[str, Any]]:
    """Objects of a kind as they are shipped."""
    return [
        one
        for file in ("rbac.yaml", "webhook.yaml")
        for one in yaml.safe_load_all((FOLDER / file).read_text())
        if one["kind"] == kind
    ]


def configuration(name: str, port: int, bundle: str = "") -> dict[str, Any]:
    """The configuration that is shipped, for a webhook of the test's namespace."""
    (found,) = shipped("MutatingWebhookConfiguration")
    (hook,) = found["webhooks"]
    # This release is too old for it, and gives namespaces no label with their name.
    del hook["matchConditions"]
    hook["namespaceSelector"] = {"matchLabels": {"test": name}}
    hook["clientConfig"] = {"url": f"https://{HOST}:{port}/mutate"}
    if bundle:
        text = base64.b64encode(bundle.encode()).decode()
        hook["clientConfig"]["caBundle"] = text
    return {**found, "metadata": {"name": name}}


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    limits = {"cpu": "1500m", "memory": "1Gi", "example.com/nic": "2"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "image": "registry/web:1",
                    "resources": {"requests": {"cpu": "1m"}, "limits": limits},
                },
                {"name": "log", "image": "registry/log:1"},
            ],
        },
    }


@pytest.fixture
def named(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """The namespace, labelled; its webhook configuration is removed afterwards."""
    kubectl("label", "namespace", namespace, f"test={namespace}")
    yield namespace
    kubectl("delete", "mutatingwebhookconfigurations", namespace, "--ignore-not-found")


@contextmanager
def configured(
    kubectl: Kubectl, name: str, folder: Path
) -> Iterator[tuple[RunningWebhook, Pair]]:
    pair = make_pair((HOST,), 30)
    write_pair(folder, pair)
    with running_webhook(folder) as webhook:
        kubectl.apply(configuration(name, webhook.port, pair.authority))
        yield webhook, pair


def annotation(kubectl: Kubectl, name: str) -> str | None:
    metadata = kubectl.get("pod", name)["metadata"]
    text: str | None = metadata.get("annotations", {}).get(KEY)
    return text


def annotated(kubectl: Kubectl, prefix: str) -> str:
    """Create pods until one is annotated; API servers learn of a webhook in a while."""
    made: list[str] = []

    def is_one() -> bool:
        made.append(f"{prefix}-{len(made)}")
        kubectl.apply(pod(made[-1]))
        return annotation(kubectl, made[-1]) is not None

    wait_until(is_one, "an annotated pod", 60)
    return made[-1]


def test_pods_have_the_annotation_and_the_daemon_reads_it(
    kubectl: Kubectl, named: str, tmp_path: Path
) -> None:
    with configured(kubectl, named, tmp_path):
        name = annotated(kubectl, "web")
        text = annotation(kubectl, name)
        assert text is not None
        found = read_resources(text)
        web = found.containers["web"]

        assert found.names == {"web", "log"}
        # The API server has made requests of limits.
        assert (web.cpu, web.cpu_limit) == (1, 1500)
        assert (web.memory, web.memory_limit) == (2**30, 2**30)
        assert dict(web.extended) == {"example.com/nic": 2}

        # An update puts right what its author writes there.
        kubectl("annotate", "--overwrite", "pod", name, f"{KEY}=forged", "more=yes")
        after = kubectl.get("pod", name)["metadata"]["annotations"]
        assert (after[KEY], after["more"]) == (text, "yes")
        kubectl("delete", "pod", name, "--grace-period=0", "--force")


def test_other_kinds_and_other_namespaces_are_left_alone(
    kubectl: Kubectl, named: str, tmp_path: Path, control_plane: ControlPlane
) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    mirror = pod("mirror", annotations={"kubernetes.io/config.mirror": "1"})
    mirror["spec"]["nodeName"] = "any"
    with configured(kubectl, named, tmp_path):
        annotated(kubectl, "web")
        kubectl.apply(deployment, mirror)
        control_plane.kubectl("create", "namespace", f"{named}-other")
        other = control_plane.kubectl.within(f"{named}-other")
        other.apply(pod("web"))

        made = kubectl.get("deployment", "web")["spec"]["template"]
        assert "annotations" not in made["metadata"]
        assert annotation(kubectl, "mirror") is None
        assert annotation(other, "web") is None


def test_without_the_webhook_pods_are_created(
    kubectl: Kubectl, named: str, tmp_path: Path
) -> None:
    with configured(kubectl, named, tmp_path) as (webhook, pair):
        annotated(kubectl, "before")
        other = make_pair((HOST,), 30)

        # An authority that the API server does not know.
        write_pair(tmp_path, other)
        wait_until(lambda: webhook.log().count("webhook.certificate ") > 1, "it")
        kubectl.apply(configuration(named, webhook.port, new_authority()))

        def is_ignored() -> bool:
            name = f"unknown-{time.monotonic_ns()}"
            kubectl.apply(pod(name))
            return annotation(kubectl, name) is None

        # The API server may still have the old connection.
        wait_until(is_ignored, "a pod without annotation", 60)
        write_pair(tmp_path, pair)
        webhook.process.terminate()
        webhook.process.wait()

        kubectl.apply(pod("down"))
        assert annotation(kubectl, "down") is None


def new_authority() -> str:
    return make_pair((HOST,), 30).authority


def bundle_of(kubectl: Kubectl, name: str) -> str:
    """The CAs that the API server trusts for a webhook."""
    (hook,) = kubectl.get("mutatingwebhookconfigurations", name)["webhooks"]
    return base64.b64decode(hook["clientConfig"]["caBundle"]).decode()


@pytest.fixture
def validated(kubectl: Kubectl, named: str, tmp_path: Path) -> Iterator[RunningWebhook]:
    """A webhook that refuses annotations, by the configuration of the chart."""
    objects = Release(version="v1.27.0").render(
        webhook={"enabled": True, "validate": True}, crds={"install": False}
    )
    kind = "ValidatingWebhookConfiguration"
    (found,) = (one for one in objects if one["kind"] == kind)
    (hook,) = found["webhooks"]
    document = tmp_path / "config.yaml"
    document.write_text(DOCUMENT)
    pair = make_pair((HOST,), 30)
    write_pair(tmp_path, pair)
    with running_webhook(tmp_path, "--validate-with", str(document)) as webhook:
        hook["namespaceSelector"] = {"matchLabels": {"test": named}}
        hook["clientConfig"] = {
            "url": f"https://{HOST}:{webhook.port}/validate",
            "caBundle": base64.b64encode(pair.authority.encode()).decode(),
        }
        kubectl.apply({**found, "metadata": {"name": named}})
        yield webhook
    kubectl("delete", "validatingwebhookconfigurations", named)


def test_annotations_that_nodes_would_refuse_are_refused_by_kubectl_apply(
    kubectl: Kubectl, validated: RunningWebhook
) -> None:
    key = "rdtclass.resource-policy.nri.io/pod"
    bad = pod("bad", annotations={key: "golden"})
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {key: "golden"}},
        "spec": bad["spec"],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "bad"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }

    def refusal(subject: dict[str, Any]) -> str:
        try:
            kubectl.apply(subject)
        except KubectlFailed as failed:
            return str(failed)
        kubectl("delete", subject["kind"].lower(), "bad", "--wait=false", "--force")
        return ""

    # API servers learn of a webhook in a while.
    wait_until(lambda: refusal(bad) != "", "a refusal", 60)
    sentence = f"container web asks for RDT class 'golden' by {key}; known: "

    assert sentence in refusal(bad)
    assert sentence in refusal(deployment)
    kubectl.apply(pod("good", annotations={key: "gold"}), pod("plain"))


@asynccontextmanager
async def keeper_of(
    account: Account, folder: Path, name: str, days_later: float = 0.0, **how: Any
) -> AsyncIterator[CertificateKeeper]:
    access = find_access(account.kubeconfig(folder / "keeper.yaml"))
    options = KeeperOptions(
        secret=Ref(SECRETS, "nri-resmgr-webhook", account.namespace),
        configurations=(Ref(MUTATING, name),),
        names=(HOST,),
        folder=folder,
        pause=0.2,
        **{"wait": 1.0, "retry": 0.1, **how},
    )

    def now() -> datetime:
        return datetime.now(UTC) + timedelta(days=days_later)

    async with ApiClient.open(access) as api:
        keeper = CertificateKeeper(api, options, now)
        task = asyncio.create_task(keeper.run())
        try:
            yield keeper
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.fixture
def keeper_account(
    kubectl: Kubectl, named: str, control_plane: ControlPlane
) -> Account:
    """The account of the shipped rights, and the Secret as it is shipped."""
    found = make_account(control_plane, named, "webhook")
    (secret,) = shipped("Secret")
    del secret["metadata"]["namespace"]
    kubectl.apply(secret)
    (role,), (cluster_role,) = shipped("Role"), shipped("ClusterRole")
    found.allow(*role["rules"])
    for rule in cluster_role["rules"]:
        rule["resourceNames"] = [named]
    found.allow(*cluster_role["rules"], cluster=True)
    return found


async def until(holds: Any) -> None:
    async with asyncio.timeout(90):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - of processes
            await asyncio.sleep(0.1)


async def test_certificates_of_the_webhook_are_rotated_without_a_gap(
    kubectl: Kubectl, named: str, tmp_path: Path, keeper_account: Account
) -> None:
    """Each pod that is created meanwhile has the annotation."""
    with starting_webhook(tmp_path) as webhook:
        async with keeper_of(keeper_account, tmp_path, named) as keeper:
            kubectl.apply(configuration(named, 1))
            await until(lambda: keeper.is_kept)
            await asyncio.to_thread(webhook.wait_until_listening)
            bundle = bundle_of(kubectl, named)
            # The port is known only now. A user's apply leaves the bundle alone.
            kubectl.apply(configuration(named, webhook.port))
            assert bundle_of(kubectl, named) == bundle
            await asyncio.to_thread(annotated, kubectl, "first")
        first = (tmp_path / "tls.crt").read_text()

        # Two thirds of its life later.
        missing: list[str] = []
        is_over = asyncio.Event()

        async def create_pods() -> int:
            count = 0
            while not is_over.is_set():
                name = f"meanwhile-{count}"
                await asyncio.to_thread(kubectl.apply, pod(name))
                if await asyncio.to_thread(annotation, kubectl, name) is None:
                    missing.append(name)
                count += 1
            return count

        creating = asyncio.create_task(create_pods())
        # Longer than the server takes to notice new files, and its API server a bundle.
        wait = {"wait": 6.0}
        async with keeper_of(keeper_account, tmp_path, named, 61, **wait) as keeper:
            await until(lambda: keeper.steps == 1)
        # Certificates are made by the machine's own clock.
        async with keeper_of(keeper_account, tmp_path, named, **wait) as keeper:
            await until(lambda: keeper.steps == 2)
            await until(lambda: bundle_of(kubectl, named).count("BEGIN") == 1)
            await until(lambda: webhook.log().count("webhook.certificate ") == 2)
        is_over.set()
        assert await creating > 3

    assert missing == []
    assert (tmp_path / "tls.crt").read_text() != first
    data = kubectl.get("secret", "nri-resmgr-webhook")["data"]
    assert sorted(data) == ["ca.crt", "tls.crt", "tls.key"]


async def test_a_certificate_is_kept_when_it_is_in_the_folder(
    kubectl: Kubectl, named: str, tmp_path: Path, keeper_account: Account
) -> None:
    kubectl.apply(configuration(named, 1))
    async with keeper_of(keeper_account, tmp_path, named, retry=600.0) as keeper:
        await until(lambda: keeper.steps == 1)
        assert not keeper.is_kept  # only the Secret has it
    async with keeper_of(keeper_account, tmp_path, named) as keeper:
        await until(lambda: keeper.is_kept)
        assert (tmp_path / "tls.crt").exists()


async def test_replicas_agree_on_one_certificate(
    kubectl: Kubectl, named: str, tmp_path: Path, keeper_account: Account
) -> None:
    kubectl.apply(configuration(named, 1))
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    async with (
        keeper_of(keeper_account, folders[0], named) as one,
        keeper_of(keeper_account, folders[1], named) as two,
        keeper_of(keeper_account, folders[2], named) as three,
    ):
        keepers = (one, two, three)
        await until(lambda: all(keeper.is_kept for keeper in keepers))
        async with ApiClient.open(
            find_access(keeper_account.kubeconfig(tmp_path / "reader.yaml"))
        ) as api:
            ref = Ref(SECRETS, "nri-resmgr-webhook", named)
            stored = (await read_secret(api, ref)).stored

    assert stored.current is not None
    assert sum(keeper.steps for keeper in keepers) == 1
    for folder in folders:
        assert (folder / "tls.crt").read_text() == stored.current.certificate
        assert (folder / "tls.key").read_text() == stored.current.key
        assert (folder / "tls.key").stat().st_mode & 0o777 == 0o600


def test_the_command_keeps_certificates_with_the_shipped_rights(
    kubectl: Kubectl, named: str, tmp_path: Path, keeper_account: Account
) -> None:
    kubectl.apply(configuration(named, 1))
    command: list[str | Path] = [
        *(sys.executable, "-m", "nri_resmgr", "webhook-certificates"),
        *("--kubeconfig", keeper_account.kubeconfig(tmp_path / "kubeconfig")),
        *("--mutating", named, "--folder", tmp_path),
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log)
    try:
        wait_until((tmp_path / "tls.crt").exists, "a certificate", 60)
    finally:
        process.terminate()
        assert process.wait() == 0

    text = (tmp_path / "tls.crt").read_text()
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"DNS:nri-resmgr-webhook.{named}.svc" in shown
    lines = (tmp_path / "log").read_text()
    assert "PRIVATE" not in lines
    assert re.search(r"webhook\.certificates +step=make-current", lines)


def test_the_account_of_the_webhook_has_no_other_rights(
    kubectl: Kubectl, tmp_path: Path, keeper_account: Account
) -> None:
    own = keeper_account.kubectl(tmp_path / "own")
    kubectl("create", "secret", "generic", "other")

    for words in (
        ("get", "secret", "other"),
        ("get", "secrets"),
        ("create", "secret", "generic", "another"),
        ("delete", "secret", "nri-resmgr-webhook"),
        ("get", "mutatingwebhookconfigurations"),
        ("get", "pods"),
    ):
        with pytest.raises(KubectlFailed, match=r"[Ff]orbidden"):
            own(*words)
