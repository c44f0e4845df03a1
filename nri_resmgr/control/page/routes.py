"""The paths of the page of the node."""

from __future__ import annotations

import socket
from functools import partial
from ipaddress import ip_address
from operator import is_
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from nri_resmgr.app.background.threads import OneCall
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.http import HttpReply, HttpRequest, RequestRefused, Routes
from nri_resmgr.control.node_picture import picture_of_state
from nri_resmgr.control.routes import routes_of
from nri_resmgr.control.state import state_of
from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.topology import Machine
from nri_resmgr.values.documents import JsonObject

_FOLDER: Final = Path(__file__).parent

_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_SVG: Final = "image/svg+xml"

_READ: Final = ("/v1/state", "/v1/events")
"""Paths of the control socket that the page reads."""

# Pictures have their styles inside.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; "
    "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("Referrer-Policy", "no-referrer"),
)

# A picture of 256 CPUs and 400 containers takes a tenth of a second.
_PATIENCE: Final = 5.0  # seconds


def page_routes(daemon: DaemonView) -> Routes:
    """Return the handlers of the page, and of what it reads."""
    answers = routes_of(daemon)
    return {
        **{("GET", path): partial(_file, *file) for path, file in _FILES.items()},
        **{("GET", path): answers["GET", path] for path in _READ},
        ("GET", "/picture.svg"): NodePicture(daemon).reply,
    }


def permit_page(accepted: socket.socket, request: HttpRequest) -> str:
    """Return why a request is refused; empty to answer it.

    A site in the user's browser can resolve a name of its own to a local address, and
    would then read the page as a part of itself (DNS rebinding). So a local endpoint
    with the page answers to addresses and to ``localhost`` only.
    """
    if not ip_address(accepted.getsockname()[0]).is_loopback:
        return ""  # whoever reaches it may read it
    name = _host_name(request.host)
    if name in ("", "localhost") or _is_address(name):
        return ""
    return f"the host is {name}, not localhost"


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _file(name: str, content_type: str, _: HttpRequest) -> HttpReply:
    contents = (_FOLDER / name).read_bytes()
    return HttpReply(contents, content_type, headers=_HEADERS)


class _Drawn(msgspec.Struct, frozen=True):
    """A picture, and the values that it was drawn from."""

    of: tuple[Any, ...]
    svg: bytes


class NodePicture:
    """The picture of the node, drawn once for each state in which it is requested.

    In a thread: drawing takes longer than many requests of the runtime.
    """

    def __init__(self, daemon: DaemonView) -> None:
        self._daemon = daemon
        self._drawing = OneCall[_Drawn](_PATIENCE)
        self._last: _Drawn | None = None

    async def reply(self, _: HttpRequest) -> HttpReply:
        """Return the present picture.

        Raises:
            RequestRefused: It takes too long.
        """
        policy = self._daemon.policy
        of = (policy.state, policy.policy, policy.machine)
        if self._last is None or not all(map(is_, of, self._last.of)):
            draw = partial(_drawn, of, state_of(self._daemon), policy.machine)
            try:
                self._last = await self._drawing.result(draw)
            except TimeoutError:
                why = f"the picture takes more than {_PATIENCE:g} s"
                raise RequestRefused(503, why) from None
        return HttpReply(self._last.svg, _SVG, headers=_HEADERS)


def _drawn(of: tuple[Any, ...], state: JsonObject, machine: Machine) -> _Drawn:
    return _Drawn(of, picture_svg(picture_of_state(state, machine)).encode())
