"""Where the API server is, and by which credentials: in a pod, or by a kubeconfig."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nri_resmgr.agent.api import (
    CONFIG_MAPS,
    NODES,
    Access,
    ApiClient,
    Ref,
    Target,
    find_access,
)
from nri_resmgr.agent.api.access import (
    BadAddress,
    NoAccess,
    NoNodeName,
    find_node_name,
)
from nri_resmgr.agent.api.credentials import BadCredentials, Credentials, Source
from nri_resmgr.agent.api.kubeconfig import BadKubeconfig
from tests.agent.authority import Authority
from tests.agent.fake_api_server import FakeApiServer

ROOT = Path(__file__).parents[2]
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("secret")
    (tmp_path / "ca.crt").write_text("a CA")
    (tmp_path / "namespace").write_text("nri-system\n")
    return tmp_path


def _config(**user: object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "there", "context": {"cluster": "other", "user": "other"}},
            {
                "name": "here",
                "context": {"cluster": "c", "user": "u", "namespace": "nri"},
            },
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://[fd00::1]:6443/"}}],
        "users": [{"name": "u", "user": user}],
    }


def _write(folder: Path, config: object) -> Path:
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


# In a pod


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("10.96.0.1", "443", "https://10.96.0.1:443"),
        ("fd00:10:96::1", "443", "https://[fd00:10:96::1]:443"),
        ("[fd00:10:96::1]", "6443", "https://[fd00:10:96::1]:6443"),
        ("kubernetes.default.svc", "", "https://kubernetes.default.svc:443"),
    ],
)
def test_access_in_a_pod_is_read_from_the_environment(
    pod: Path, host: str, port: str, url: str
) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

    access = find_access(environ=environ, service_account=pod)

    assert access == Access(
        server=url,
        ca=Source(path=pod / "ca.crt"),
        token=Source(path=pod / "token"),
        namespace="nri-system",
    )


def test_an_explicit_address_overrides_the_environment(pod: Path) -> None:
    access = find_access(server="https://[::1]:6443/", environ={}, service_account=pod)

    assert access.server == "https://[::1]:6443"
    assert access.token == Source(path=pod / "token")


def test_without_environment_and_kubeconfig_there_is_no_access(
    pod: Path, tmp_path: Path
) -> None:
    with pytest.raises(NoAccess, match=r"use --kubeconfig, or run in a pod"):
        find_access(environ={}, service_account=tmp_path / "none")
    with pytest.raises(NoAccess, match=r"KUBERNETES_SERVICE_HOST is not set"):
        find_access(environ={}, service_account=pod)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1:6443",
        "ftp://10.0.0.1",
        "https://",
        "https://[::1",
        "https://host:port",
        "https://user@host",
        "https://host?x=1",
        "https://ho\x1bst",
        "http://host",  # with a token
    ],
)
def test_a_bad_address_is_refused(pod: Path, address: str) -> None:
    with pytest.raises(BadAddress):
        find_access(server=address, environ={}, service_account=pod)


def test_the_nodes_name_comes_from_the_flag_or_the_environment() -> None:
    assert find_node_name("a", {"NODE_NAME": "b"}) == "a"
    assert find_node_name(None, {"NODE_NAME": "b"}) == "b"
    with pytest.raises(NoNodeName, match=r"--node-name"):
        find_node_name(None, {})


# By a kubeconfig


def test_the_current_context_is_used(tmp_path: Path) -> None:
    access = find_access(_write(tmp_path, _config(token="secret")))  # noqa: S106

    assert access == Access(
        server="https://[fd00::1]:6443",
        token=Source(text=b"secret"),
        namespace="nri",
    )


def test_credentials_are_not_in_the_repr(tmp_path: Path) -> None:
    access = find_access(_write(tmp_path, _config(token="secret")))  # noqa: S106

    assert "secret" not in f"{access!r} {access}"


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    config = _config(
        **{
            "tokenFile": "token",
            "client-certificate": "pki/node.crt",
            "client-key": "/etc/node.key",
        }
    )
    config["clusters"][0]["cluster"] |= {
        "certificate-authority": "ca.crt",
        "tls-server-name": "kubernetes",
    }

    access = find_access(_write(tmp_path, config))

    assert access.token == Source(path=tmp_path / "token")
    assert access.certificate == Source(path=tmp_path / "pki/node.crt")
    assert access.key == Source(path=Path("/etc/node.key"))
    assert access.ca == Source(path=tmp_path / "ca.crt")
    assert (access.server_name, access.is_verified) == ("kubernetes", True)


def test_tls_verification_is_disabled_only_by_the_kubeconfig(tmp_path: Path) -> None:
    config = _config()
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True

    assert not find_access(_write(tmp_path, config)).is_verified


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: c.pop("current-context"), "it has no current-context"),
        (lambda c: c.update({"current-context": "x"}), "it has no context 'x'"),
        (lambda c: c["clusters"].clear(), "it has no cluster 'c'"),
        (lambda c: c["users"].clear(), "it has no user 'u'"),
        (lambda c: c["clusters"][0]["cluster"].clear(), "cluster 'c' has no server"),
        (lambda c: c.update(clusters=7), r"Expected `array`, got `int` - at `\$.clus"),
        (
            lambda c: c["users"][0]["user"].update(exec={"command": "aws"}),
            r"user 'u' runs a program for credentials \(exec\), which the agent does",
        ),
        (lambda c: c["users"][0]["user"].update(username="x"), "has a password"),
        (lambda c: c["users"][0]["user"].update({"as": "x"}), "impersonates another"),
        (
            lambda c: c["users"][0]["user"].update({"auth-provider": {"name": "gcp"}}),
            "has an auth-provider",
        ),
        (
            lambda c: c["users"][0]["user"].update({"client-key": "k"}),
            "has one of client-certificate and -key",
        ),
        (
            lambda c: c["users"][0]["user"].update(
                {"client-key-data": "?", "client-certificate": "c"}
            ),
            "-data is not base64",
        ),
        (
            lambda c: c["clusters"][0]["cluster"].update({"proxy-url": "http://p"}),
            "behind a proxy",
        ),
    ],
)
def test_unsupported_settings_of_a_kubeconfig_are_rejected(
    tmp_path: Path, change: Change, why: str
) -> None:
    config = _config()
    change(config)
    path = _write(tmp_path, config)

    with pytest.raises(BadKubeconfig, match=why) as error:
        find_access(path)

    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"a: [", b"- " * 20_000, b"\xff", b"!!timestamp 9999-99-99"]
)
def test_an_invalid_kubeconfig_is_rejected(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "config").write_bytes(text)

    with pytest.raises(BadKubeconfig):
        find_access(tmp_path / "config")


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadKubeconfig, match=r"config: no such file"):
        find_access(tmp_path / "config")


async def test_a_kubeconfig_with_inline_credentials_works(
    server: FakeApiServer, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.issue("node-b")
    data = {
        "client-certificate-data": certificate,
        "client-key-data": key,
    }
    config = _config(
        token="inline",  # noqa: S106
        **{
            name: base64.b64encode(path.read_bytes()).decode()
            for name, path in data.items()
        },
    )
    ca = base64.b64encode(authority.ca.read_bytes()).decode()
    cluster = {"server": f"{server.url}/", "certificate-authority-data": ca}
    config["clusters"][0]["cluster"] = cluster

    async with ApiClient.open(find_access(_write(tmp_path, config))) as api:
        await api.list(Target(NODES))

    assert server.requests[0].headers["authorization"] == "Bearer inline"


@pytest.mark.process
async def test_another_process_is_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.agent", str(tmp_path)]
    server = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    try:
        async with asyncio.timeout(60):
            while not (tmp_path / "kubeconfig").exists():  # noqa: ASYNC110 - a process
                await asyncio.sleep(0.05)
        async with ApiClient.open(find_access(tmp_path / "kubeconfig")) as api:
            await api.apply(Ref(CONFIG_MAPS, "a", "default"), {"data": {"x": "y"}})
            (found,) = await api.list(Target(CONFIG_MAPS, "default"))
    finally:
        server.terminate()
        await server.wait()

    assert found.body["data"] == {"x": "y"}


# Rotation


class Clock:
    """A monotonic clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def _access(folder: Path) -> Access:
    return Access(
        "https://host",
        Source(path=folder / "ca.crt"),
        Source(path=folder / "token"),
    )


def test_files_are_read_again_each_minute(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.ca.read_bytes())
    (tmp_path / "token").write_text("first")
    clock = Clock()
    credentials = Credentials(_access(tmp_path), clock=clock)
    before = credentials.context()
    other = Authority(tmp_path / "other")
    (tmp_path / "token").write_text("second")
    (tmp_path / "ca.crt").write_bytes(other.ca.read_bytes())

    clock.now += 59
    assert (credentials.token(), credentials.context()) == ("first", before)
    clock.now += 1
    assert credentials.token() == "second"
    assert credentials.context() is not before
    after = credentials.context()
    clock.now += 60
    assert credentials.context() is after  # nothing has changed


def test_a_half_written_file_is_read_later(
    authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.ca.read_bytes())
    (tmp_path / "token").write_text("first")
    clock = Clock()
    credentials = Credentials(_access(tmp_path), clock=clock)
    context = credentials.context()
    (tmp_path / "token").write_text("")
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nMII")

    clock.now += 60
    assert (credentials.token(), credentials.context()) == ("first", context)
    (tmp_path / "token").unlink()
    (tmp_path / "ca.crt").unlink()
    clock.now += 60
    assert (credentials.token(), credentials.context()) == ("first", context)


def test_a_refused_certificate_has_files_looked_at_once_a_minute(
    authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.ca.read_bytes())
    (tmp_path / "token").write_text("first")
    clock = Clock()
    credentials = Credentials(_access(tmp_path), clock=clock)
    assert not credentials.refused()  # nothing has changed

    other = Authority(tmp_path / "other")
    (tmp_path / "ca.crt").write_bytes(other.ca.read_bytes())
    clock.now += 59
    assert not credentials.refused()
    clock.now += 1
    assert credentials.refused()


@pytest.mark.parametrize("token", ["", " \n", "a\nb", "a b", "ä", "a\x00b"])
def test_an_invalid_token_is_rejected(
    authority: Authority, tmp_path: Path, token: str
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.ca.read_bytes())
    (tmp_path / "token").write_text(token)

    with pytest.raises(BadCredentials, match=r"it is empty or no token"):
        Credentials(_access(tmp_path))


@pytest.mark.parametrize("ca", ["", "no PEM"])
def test_an_invalid_ca_is_rejected(tmp_path: Path, ca: str) -> None:
    (tmp_path / "ca.crt").write_text(ca)
    (tmp_path / "token").write_text("first")

    with pytest.raises(BadCredentials, match=r"no certificate in PEM form"):
        Credentials(_access(tmp_path))


def test_a_key_with_a_password_is_refused(authority: Authority) -> None:
    certificate, key = authority.issue("node-c")
    encrypted = subprocess.run(
        ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:x"],
        check=True,
        capture_output=True,
    ).stdout
    access = Access(
        "https://host",
        certificate=Source(path=certificate),
        key=Source(text=encrypted),
    )

    with pytest.raises(BadCredentials, match=r"certificate and key are not usable"):
        Credentials(access)
