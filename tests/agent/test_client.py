"""The calls of `ApiClient`, against a server with real sockets and TLS."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from nri_resmgr.agent.api import (
    NODES,
    Access,
    ApiClient,
    ApiError,
    Ref,
    Resource,
    Target,
)
from nri_resmgr.agent.api.credentials import Source
from nri_resmgr.agent.api.errors import (
    BadAnswer,
    Conflict,
    Forbidden,
    KindMissing,
    ObjectMissing,
    ObjectRejected,
    ServerFailed,
    TlsFailed,
    TooLarge,
    Unauthorized,
    Unreachable,
)
from nri_resmgr.agent.api.objects import MOST_BYTES
from tests.agent.authority import Authority
from tests.agent.fake_api_server import FakeApiServer, Json, Request, Wire, status

BALLOONS = Resource(
    "config.nri", "v1alpha1", "balloonspolicies", "BalloonsPolicy", True
)
IN_SYSTEM = BALLOONS.path("kube-system")
DEFAULT = Ref(BALLOONS, "default", "kube-system")
STATUS = Ref(BALLOONS, "default", "kube-system", "status")


def _policy(name: str = "default", **spec: object) -> Json:
    return {"metadata": {"name": name}, "spec": spec}


async def test_an_object_is_read(server: FakeApiServer, access: Access) -> None:
    server.put(IN_SYSTEM, _policy(pinCPU=True))

    async with ApiClient.open(access) as api:
        found = await api.get(DEFAULT)

    assert (found.name, found.namespace, found.generation) == (
        "default",
        "kube-system",
        1,
    )
    assert found.body["spec"] == {"pinCPU": True}


async def test_a_list_has_all_parts(server: FakeApiServer, access: Access) -> None:
    for number in range(300):
        server.put(IN_SYSTEM, _policy(f"node.{number}"))
    server.put(BALLOONS.path("other"), _policy())

    async with ApiClient.open(access) as api:
        found = await api.list(Target(BALLOONS, "kube-system"))

    assert [one.name for one in found] == [f"node.{number}" for number in range(300)]
    assert len(server.requests) == 2


async def test_apply_creates_and_updates(server: FakeApiServer, access: Access) -> None:
    async with ApiClient.open(access) as api:
        first = await api.apply(DEFAULT, {"spec": {"pinCPU": True}})
        second = await api.apply(DEFAULT, {"spec": {"pinMemory": True}}, force=False)

    assert (first.generation, second.generation) == (1, 2)
    assert second.body["apiVersion"] == "config.nri/v1alpha1"
    assert second.body["kind"] == "BalloonsPolicy"
    forced, polite = server.requests
    assert forced.method == "PATCH"
    assert forced.query == {"fieldManager": "nri-resmgr", "force": "true"}
    assert polite.query == {"fieldManager": "nri-resmgr"}
    assert forced.headers["content-type"] == "application/apply-patch+yaml"


async def test_a_status_is_merged(server: FakeApiServer, access: Access) -> None:
    server.put(IN_SYSTEM, _policy())

    async with ApiClient.open(access) as api:
        await api.merge_patch(STATUS, {"status": {"nodes": {"a": 1, "b": 2}}})
        found = await api.merge_patch(STATUS, {"status": {"nodes": {"a": None}}})

    assert found.body["status"] == {"nodes": {"b": 2}}
    assert server.requests[0].path == f"{IN_SYSTEM}/default/status"
    content_type = server.requests[0].headers["content-type"]
    assert content_type == "application/merge-patch+json"


async def test_an_object_is_created_once(server: FakeApiServer, access: Access) -> None:
    async with ApiClient.open(access) as api:
        await api.create(DEFAULT, {"spec": {}})
        with pytest.raises(Conflict, match=r"already exists"):
            await api.create(DEFAULT, {"spec": {}})

    assert server.requests[0].path == IN_SYSTEM


async def test_a_name_cannot_lead_to_another_path(
    server: FakeApiServer, access: Access
) -> None:
    async with ApiClient.open(access) as api:
        with pytest.raises(ObjectMissing):
            await api.get(Ref(BALLOONS, "../../pods?x=1#", "kube-system"))

    assert server.requests[0].path == f"{IN_SYSTEM}/..%2F..%2Fpods%3Fx%3D1%23"


async def test_requests_identify_the_client(
    server: FakeApiServer, access: Access
) -> None:
    async with ApiClient.open(access) as api:
        await api.list(Target(NODES))

    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer first"
    assert headers["user-agent"].startswith("nri-resmgr-agent/")
    assert headers["accept-encoding"] == "identity"


# Errors


async def test_a_missing_object_is_not_a_missing_kind(
    server: FakeApiServer, access: Access
) -> None:
    async with ApiClient.open(access) as api:
        with pytest.raises(ObjectMissing, match=r"default in namespace kube-system"):
            await api.get(DEFAULT)
        server.kinds.clear()
        with pytest.raises(
            KindMissing, match=r"install the CRD balloonspolicies\.config\.nri"
        ):
            await api.get(DEFAULT)


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        (
            403,
            Forbidden,
            (
                "a Role in namespace kube-system bound to this client needs "
                '{apiGroups: ["config.nri"], resources: ["balloonspolicies/status"], '
                'resourceNames: ["default"], verbs: ["patch"]}'
            ),
        ),
        (409, Conflict, "status of BalloonsPolicy default in namespace kube-system"),
        (422, ObjectRejected, "CRD and client are probably of different versions"),
        (429, ServerFailed, "cannot answer now (429): too many"),
        (500, ServerFailed, "cannot answer now (500): too many"),
        (302, BadAnswer, "does not answer like an API server: status 302"),
    ],
)
async def test_errors_name_the_party_that_can_act(
    server: FakeApiServer,
    access: Access,
    code: int,
    error: type[ApiError],
    sentence: str,
) -> None:
    async def fail(_: Request, wire: Wire) -> bool:
        await wire.answer(code, status(code, "Some", "too many"), {"retry-after": "7"})
        return True

    server.faults = [fail]

    async with ApiClient.open(access) as api:
        with pytest.raises(error) as why:
            await api.merge_patch(STATUS, {})

    assert sentence in str(why.value)
    assert why.value.retry_after == (7.0 if error is ServerFailed else None)


async def test_an_endless_answer_is_not_read_to_its_end(
    server: FakeApiServer, access: Access
) -> None:
    async def flood(_: Request, wire: Wire) -> bool:
        await wire.begin()
        while True:
            await wire.piece(b" " * 65_536)

    server.faults = [flood]

    async with ApiClient.open(access) as api:
        with pytest.raises(TooLarge) as why:
            await api.get(DEFAULT)

    assert why.value.most == MOST_BYTES


async def test_the_page_of_a_portal_is_a_bad_answer(
    server: FakeApiServer, access: Access
) -> None:
    async def portal(_: Request, wire: Wire) -> bool:
        await wire.answer(200, b"<html>log in</html>")
        return True

    server.faults = [portal]

    async with ApiClient.open(access) as api:
        with pytest.raises(BadAnswer):
            await api.get(DEFAULT)


async def test_an_unreachable_server_is_named(
    server: FakeApiServer, access: Access
) -> None:
    await server.__aexit__()

    async with ApiClient.open(access) as api:
        with pytest.raises(Unreachable) as why:
            await api.get(DEFAULT)

    assert str(why.value) == (
        f"no answer from the API server {access.server}: Connection refused"
    )


async def test_a_connection_that_is_cut_is_an_error(
    server: FakeApiServer, access: Access
) -> None:
    async def cut(_: Request, wire: Wire) -> bool:
        await wire.begin()
        wire.writer.transport.abort()
        return True

    server.faults = [cut]

    async with ApiClient.open(access) as api:
        with pytest.raises(Unreachable):
            await api.get(DEFAULT)


# Credentials


async def test_a_rotated_token_is_read_at_401(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    server.tokens = {"first"}
    async with ApiClient.open(access) as api:
        await api.list(Target(NODES))
        server.tokens = {"second"}
        (tmp_path / "token").write_text("second\n")

        await api.list(Target(NODES))

    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_token_that_stays_bad_is_tried_twice(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    server.tokens = {"other"}
    async with ApiClient.open(access) as api:
        with pytest.raises(Unauthorized) as why:
            await api.list(Target(NODES))

    assert f"the token of {tmp_path / 'token'} (401)" in str(why.value)
    assert len(server.requests) == 2


async def test_a_rotated_ca_is_read_when_verification_fails(
    authority: Authority, access: Access, server: FakeApiServer, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    async with ApiClient.open(access) as api:
        await api.list(Target(NODES))
        await server.__aexit__()
        server.tls = other.server()
        async with server:
            with pytest.raises(TlsFailed, match=r"check the CA"):
                await api.list(Target(NODES))
            await server.__aexit__()
    async with ApiClient.open(access) as api, server:
        (tmp_path / "ca.crt").write_bytes(other.ca.read_bytes())

        await api.list(Target(NODES))


async def test_a_ca_is_no_longer_trusted_when_it_was_replaced(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    (tmp_path / "ca.crt").write_bytes(other.ca.read_bytes())

    async with ApiClient.open(access) as api:
        with pytest.raises(TlsFailed, match=r"unable to get local issuer"):
            await api.list(Target(NODES))

    assert not server.requests


async def test_an_expired_certificate_names_both_clocks(
    authority: Authority, access: Access, server: FakeApiServer
) -> None:
    await server.__aexit__()
    server.tls = authority.server(days=-1)
    async with server, ApiClient.open(access) as api:
        with pytest.raises(TlsFailed) as why:
            await api.list(Target(NODES))

    assert "certificate has expired; this machine's clock says " in str(why.value)
    assert "GMT, the server's " in str(why.value)
    assert why.value.clocks.endswith("GMT")
    # What is not verified gets no credentials.
    assert all("authorization" not in one.headers for one in server.requests)


async def test_a_server_of_another_name_is_refused(
    authority: Authority, access: Access, server: FakeApiServer
) -> None:
    await server.__aexit__()
    server.tls = authority.server("DNS:kubernetes.default.svc")
    async with server:
        async with ApiClient.open(access) as api:
            with pytest.raises(TlsFailed, match=r"IP address mismatch"):
                await api.list(Target(NODES))
        named = Access(
            access.server,
            access.ca,
            access.token,
            server_name="kubernetes.default.svc",
        )
        async with ApiClient.open(named) as api:
            await api.list(Target(NODES))


async def test_a_client_certificate_is_shown(
    authority: Authority, access: Access, server: FakeApiServer
) -> None:
    await server.__aexit__()
    server.tls = authority.server()
    server.tls.verify_mode = ssl.CERT_REQUIRED
    server.tls.load_verify_locations(authority.ca)
    certificate, key = authority.issue("node-a")
    by_certificate = Access(
        access.server,
        access.ca,
        certificate=Source(text=certificate.read_bytes()),
        key=Source(text=key.read_bytes()),
    )
    async with server:
        async with ApiClient.open(by_certificate) as api:
            await api.list(Target(NODES))
        async with ApiClient.open(access) as api:
            with pytest.raises(ApiError):
                await api.list(Target(NODES))


async def test_addresses_of_ipv6_work(authority: Authority) -> None:
    async with FakeApiServer(authority.server(), host="::1") as server:
        access = Access(server.url, Source(text=authority.ca.read_bytes()))
        async with ApiClient.open(access) as api:
            await api.list(Target(NODES))

    assert server.url.startswith("https://[::1]:")
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


async def test_connections_are_used_again(
    server: FakeApiServer, access: Access
) -> None:
    async with ApiClient.open(access) as api:
        for _ in range(3):
            await api.list(Target(NODES))
        await asyncio.gather(*(api.list(Target(NODES)) for _ in range(3)))

    assert len({one.port for one in server.requests[:3]}) == 1
