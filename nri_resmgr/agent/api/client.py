"""`ApiClient`: the calls that the agent makes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final, Self

import msgspec

from nri_resmgr.agent.api.answers import CREATED, OK, Asked, error_of
from nri_resmgr.agent.api.credentials import Access, Credentials
from nri_resmgr.agent.api.errors import (
    ApiError,
    BadAnswer,
    KindMissing,
    ObjectRejected,
    ServerFailed,
    Unauthorized,
)
from nri_resmgr.agent.api.kinds import MissingKinds
from nri_resmgr.agent.api.news import News, Target
from nri_resmgr.agent.api.objects import (
    MOST_BYTES,
    ApiObject,
    Malformed,
    read_object,
    read_page,
)
from nri_resmgr.agent.api.queries import ask_page
from nri_resmgr.agent.api.resources import Ref
from nri_resmgr.agent.api.transport import Call, Transport
from nri_resmgr.agent.api.undeclared import UndeclaredFields
from nri_resmgr.agent.api.watch import MOST_BYTES_OF_A_PAGE
from nri_resmgr.agent.api.watcher import Watcher
from nri_resmgr.values.documents import JsonObject

FIELD_MANAGER: Final = "nri-resmgr"
_PAGE: Final = 250
_JSON: Final = "application/json"
_APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
_MERGE: Final = "application/merge-patch+json"


class ApiClient:
    """Calls of the API server; an asynchronous context manager.

    Every method but `watch` is one request with a deadline of 30 s, and raises an
    `ApiError`. A 401 leads to one more attempt with credentials that are read again,
    and `apply` may leave fields out; nothing else is repeated. `ApiError.retry_after`
    has what the server asked for.

    Args:
        transport: Sends the requests; `open` makes one.
        kinds: Notices kinds that the server did not have.

    Attributes:
        watches: Those that run.
        writes: Number of writes by resource, and whether the server took them.
    """

    def __init__(self, transport: Transport, kinds: MissingKinds | None = None) -> None:
        self._transport = transport
        self._kinds = kinds or MissingKinds(transport)
        self.watches: list[Watcher] = []
        self.writes: Counter[tuple[str, bool]] = Counter()
        self._undeclared: defaultdict[str, UndeclaredFields] = defaultdict(
            UndeclaredFields
        )

    @classmethod
    def open(cls, access: Access) -> Self:
        """Make a client; the first request connects.

        Raises:
            InputError: Credentials cannot be read.
        """
        return cls(Transport(access, Credentials(access)))

    @property
    def silent_seconds(self) -> float | None:
        """Seconds since the API server sent anything; None if it never did."""
        heard = self._transport.heard
        return None if heard is None else monotonic() - heard

    @property
    def requests(self) -> Mapping[tuple[str, str], int]:
        """Number of requests by verb and status, or `NO_ANSWER`."""
        return self._transport.requests

    @property
    def left_out(self) -> str:
        """The fields that `apply` leaves out now, by resource; empty for none."""
        return "; ".join(
            f"{plural} {', '.join(sorted(found.paths))}"
            for plural, found in sorted(self._undeclared.items())
            if found.paths
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    async def get(self, ref: Ref) -> ApiObject:
        """Return an object; raises `ObjectMissing` where there is none."""
        return self._object(await self._send("get", ref, Call(ref.path)), ref)

    async def list(self, target: Target) -> tuple[ApiObject, ...]:
        """Return all objects of a target."""
        ref = Ref(target.resource, target.name, target.namespace)
        found: list[ApiObject] = []
        rest = ""
        while True:
            ask = ask_page(target, _PAGE, rest)
            call = Call(
                ask.path,
                ask.query,
                headers={"accept": ask.accept},
                most=MOST_BYTES_OF_A_PAGE,
            )
            body = await self._send("list", ref, call)
            try:
                page = read_page(body)
                found += [
                    read_object(json, target.resource, with_body=True)
                    for json in page.items
                ]
            except Malformed as error:
                raise BadAnswer(self._transport.server, str(error)) from None
            if not page.rest:
                return tuple(found)
            rest = page.rest

    async def watch(self, target: Target, receive: Callable[[News], None]) -> None:
        """Report all there is, and changes for ever; ends by cancellation only.

        Args:
            target: What to watch.
            receive: Called in the event loop for each report, in order. It must not
                block: put the report into a queue, or overwrite the one before.
        """
        watcher = self.watcher(target, receive)
        self.watches.append(watcher)
        try:
            await watcher.run()
        finally:
            self.watches.remove(watcher)

    def watcher(self, target: Target, receive: Callable[[News], None]) -> Watcher:
        """Return a watch that does not run yet."""
        return Watcher(self._transport, target, receive, self._kinds)

    async def pause(self, error: ApiError, seconds: float) -> None:
        """Wait before the next attempt after an error.

        Args:
            error: The error; where a kind is missing, the pause is until it is served.
            seconds: The seconds to wait otherwise.
        """
        if isinstance(error, KindMissing):
            await self._kinds.wait(error.resource, seconds)
        else:
            await asyncio.sleep(seconds)

    async def apply(
        self, ref: Ref, body: JsonObject, *, force: bool = True
    ) -> ApiObject:
        """Create or update by server-side apply, as field manager ``nri-resmgr``.

        Args:
            ref: The object, or a subresource of one that exists.
            body: The fields to own; ``apiVersion``, ``kind``, the name and the
                namespace are added.
            force: Take fields that other managers own; otherwise `Conflict` is raised.

        Fields that the server's definition of the kind lacks are left out: it may be of
        another version.
        """
        query = {"force": "true"} if force else {}
        whole = _whole(ref, body)
        undeclared = self._undeclared[ref.resource.plural]
        while True:
            known = undeclared.without(whole, monotonic())
            try:
                return await self._write("patch", ref, known, _APPLY, query)
            except (ObjectRejected, ServerFailed) as error:
                if not undeclared.note(error.why, monotonic()):
                    raise

    async def merge_patch(self, ref: Ref, body: JsonObject) -> ApiObject:
        """Change the fields of *body* in an object that exists; ``None`` removes."""
        return await self._write("patch", ref, body, _MERGE)

    async def delete(self, ref: Ref, found: ApiObject) -> None:
        """Delete an object as it was *found*; otherwise `Conflict` is raised."""
        same = {"uid": found.uid, "resourceVersion": found.version}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": same}
        call = Call(
            path=ref.path,
            method="DELETE",
            headers={"content-type": _JSON},
            body=msgspec.json.encode(options),
        )
        await self._counted(ref.resource.plural, "delete", ref, call)

    async def create(self, ref: Ref, body: JsonObject) -> ApiObject:
        """Create an object; without a name, *body* has ``generateName``."""
        return await self._write("create", ref, _whole(ref, body), _JSON)

    async def _write(
        self,
        verb: str,
        ref: Ref,
        body: JsonObject,
        content_type: str,
        query: Mapping[str, str] | None = None,
    ) -> ApiObject:
        is_new = verb == "create"
        call = Call(
            path=ref.resource.path(ref.namespace) if is_new else ref.path,
            query={"fieldManager": FIELD_MANAGER} | dict(query or {}),
            method="POST" if is_new else "PATCH",
            headers={"content-type": content_type},
            body=msgspec.json.encode(body),
        )
        part = f"/{ref.subresource}" if ref.subresource else ""
        what = f"{ref.resource.plural}{part}"
        return self._object(await self._counted(what, verb, ref, call), ref)

    async def _counted(self, what: str, verb: str, ref: Ref, call: Call) -> bytes:
        try:
            answer = await self._send(verb, ref, call)
        except ApiError:
            self.writes[what, False] += 1
            raise
        self.writes[what, True] += 1
        return answer

    async def _send(self, verb: str, ref: Ref, call: Call) -> bytes:
        """Return the content of the answer to a call."""
        most = max(call.most, MOST_BYTES)
        call = msgspec.structs.replace(call, verb=verb, most=most)
        credentials = self._transport.credentials
        asked = Asked(verb, ref, self._transport.server, credentials.described)
        answer = await self._transport.send(call)
        if answer.status not in (OK, CREATED):
            error = error_of(answer, asked)
            if not isinstance(error, Unauthorized):
                raise error
            credentials.renew()
            answer = await self._transport.send(call)
            if answer.status not in (OK, CREATED):
                raise error_of(answer, asked)
        return answer.body

    def _object(self, json: bytes, ref: Ref) -> ApiObject:
        try:
            return read_object(json, ref.resource, with_body=True)
        except Malformed as error:
            raise BadAnswer(self._transport.server, str(error)) from None


def _whole(ref: Ref, body: JsonObject) -> JsonObject:
    """Add to the fields of an object what says which object it is."""
    metadata = dict(body.get("metadata", {}))
    if ref.name:
        metadata["name"] = ref.name
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    return {
        "apiVersion": ref.resource.api_version,
        "kind": ref.resource.kind,
        **body,
        "metadata": metadata,
    }
