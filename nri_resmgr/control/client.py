"""Asks a running daemon over its control socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from nri_resmgr.values import InputError, ResmgrError

_PATIENCE: Final = 10.0  # seconds for an answer
_OK: Final = 200


@dataclass(eq=False)
class NoDaemon(ResmgrError):
    """Nobody answers at the control socket."""

    path: str

    def __str__(self) -> str:
        return (
            f"no daemon listens on {self.path}; is nri-resmgr running, and with this "
            "--control-socket?"
        )


@dataclass(eq=False)
class NotForUs(ResmgrError):
    """The system does not let us to the control socket."""

    path: str

    def __str__(self) -> str:
        return f"permission denied on {self.path}: only root may ask the daemon"


@dataclass(eq=False)
class AnswerLost(ResmgrError):
    """The daemon hung up, or said what no daemon of ours says."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@dataclass(eq=False)
class Refused(InputError):
    """The daemon does not answer this question."""

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
    """Asks one question per connection.

    Args:
        path: The control socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """Ask for what is at a path.

        Raises:
            NoDaemon: Nobody is there.
            NotForUs: We may not ask.
            Refused: The question was wrong.
            AnswerLost: It was not answered to the end.
        """
        return self._ask("GET", _target(path, query))

    def put(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Change what is at a path; raises what `get` does."""
        return self._ask("PUT", path, json.dumps(document))

    def post(self, path: str) -> dict[str, Any]:
        """Have something done; raises what `get` does."""
        return self._ask("POST", path)

    def lines(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield the lines of an answer as they come, for as long as it takes.

        Raises what `get` does.
        """
        target = _target(path, query)
        with self._answer("GET", target, patience=None) as answer:
            while line := answer.readline():
                yield json.loads(line)

    def _ask(self, method: str, target: str, body: str | None = None) -> dict[str, Any]:
        with self._answer(method, target, body) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    @contextlib.contextmanager
    def _answer(
        self,
        method: str,
        target: str,
        body: str | None = None,
        patience: float | None = _PATIENCE,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = _UnixConnection(self._path, patience)
        try:
            connection.request(method, target, body)
            answer = connection.getresponse()
            if answer.status != _OK:
                raise Refused(answer.status, _why(answer))
            yield answer
        except (FileNotFoundError, ConnectionRefusedError):
            raise NoDaemon(self._path) from None
        except PermissionError:
            raise NotForUs(self._path) from None
        except TimeoutError:
            raise AnswerLost(self._path, "no answer in time") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise AnswerLost(self._path, str(error) or "it hung up") from None
        finally:
            connection.close()


def _target(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _why(answer: http.client.HTTPResponse) -> str:
    try:
        return str(json.loads(answer.read())["why"])
    except (ValueError, KeyError, TypeError):
        return f"the daemon answered {answer.status} {answer.reason}"
