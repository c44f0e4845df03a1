"""Queries a running daemon over its control socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from nri_resmgr.host.bounded import ANSWER, read_line, read_whole, reason
from nri_resmgr.values import HostError, InputError
from nri_resmgr.values.documents import JsonObject

_TIMEOUT: Final = 10.0  # seconds for an answer
# The daemon drops the connections that idle longest when too many clients come. On a
# busy machine that can be ours, before our request is there or is read.
_ATTEMPTS: Final = 3
_OK: Final = 200


@dataclass(eq=False)
class NoDaemon(HostError):
    """No daemon answers at the control socket."""

    path: str

    def __str__(self) -> str:
        return (
            f"no daemon listens on {self.path}; is nri-resmgr running with this "
            "--control-socket?"
        )


@dataclass(eq=False)
class AccessDenied(HostError):
    """This user has no access to the control socket."""

    path: str

    def __str__(self) -> str:
        return f"permission denied on {self.path}: only root has access"


@dataclass(eq=False)
class AnswerLost(HostError):
    """The daemon closed the connection, or its answer is malformed."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@dataclass(eq=False)
class QueryRefused(InputError):
    """The daemon refused a query."""

    status: int
    why: str

    def __str__(self) -> str:
        return self.why


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """Sends one query per connection to the control socket at a path.

    Args:
        path: Of the socket.
        timeout: For each part of an answer, seconds.
    """

    def __init__(self, path: str, timeout: float = _TIMEOUT) -> None:
        self._path, self._timeout = path, timeout

    def get(self, path: str, **query: str) -> JsonObject:
        """Get the document at a path.

        Raises:
            NoDaemon: No daemon listens.
            AccessDenied: This user has no access.
            QueryRefused: The daemon refused the query.
            AnswerLost: The answer is incomplete or malformed.
        """
        return self._query("GET", _target(path, query))

    def put(self, path: str, document: Mapping[str, object]) -> JsonObject:
        """Change the document at a path; raises what `get` does."""
        return self._query("PUT", path, json.dumps(document))

    def post(self, path: str, **query: str) -> JsonObject:
        """Request an action; raises what `get` does."""
        return self._query("POST", _target(path, query))

    def lines(self, path: str, **query: str) -> Iterator[JsonObject]:
        """Yield the lines of an answer as they arrive, without a timeout.

        Raises what `get` does.
        """
        with self._answer("GET", _target(path, query), timeout=None) as answer:
            while line := read_line(answer, ANSWER):
                yield json.loads(line)

    def _query(self, method: str, target: str, body: str | None = None) -> JsonObject:
        with self._answer(method, target, self._timeout, body) as answer:
            found: JsonObject = json.loads(read_whole(answer.read, ANSWER))
            return found

    @contextlib.contextmanager
    def _answer(
        self,
        method: str,
        target: str,
        timeout: float | None,
        body: str | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = _UnixConnection(self._path, timeout)
        try:
            with _ask(connection, method, target, body) as answer:
                if answer.status != _OK:
                    raise QueryRefused(answer.status, _why(answer))
                yield answer
        # Refused: a socket that a killed daemon has left.
        except (FileNotFoundError, ConnectionRefusedError):
            raise NoDaemon(self._path) from None
        except PermissionError:
            raise AccessDenied(self._path) from None
        except TimeoutError:
            raise AnswerLost(self._path, "no answer in time") from None
        except OSError as error:
            why = reason(error) or "connection closed"
            raise AnswerLost(self._path, why) from None
        except (http.client.HTTPException, ValueError) as error:
            raise AnswerLost(self._path, str(error) or "connection closed") from None
        finally:
            connection.close()


def _ask(
    connection: http.client.HTTPConnection, method: str, target: str, body: str | None
) -> http.client.HTTPResponse:
    """Return the answer to a request, with its head read.

    A dropped request is sent again on a new connection, if it changes nothing or cannot
    have arrived whole.
    """
    further = _ATTEMPTS
    while True:
        further -= 1
        is_sent = False
        try:
            connection.request(method, target, body)
            is_sent = True
            return connection.getresponse()
        except (BrokenPipeError, ConnectionResetError):
            connection.close()
            if not further or (is_sent and method != "GET"):
                raise


def _target(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _why(answer: http.client.HTTPResponse) -> str:
    try:
        return str(json.loads(read_whole(answer.read, ANSWER))["why"])
    except (ValueError, KeyError, TypeError):
        return f"the daemon answered {answer.status} {answer.reason}"
