"""A start of the control plane that can never succeed ends with its reason."""

from __future__ import annotations

import ssl
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.certificates import Certificates
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.programs import Programs

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

_ETCD: Final = "#!/bin/sh\nexec sleep 600\n"
_API_SERVER: Final = """\
#!{python}
import http.server, ssl, sys
flags = dict(one.split("=", 1) for one in sys.argv[1:])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain({certificate!r}, {key!r})
where = ("127.0.0.1", int(flags["--secure-port"]))
server = http.server.HTTPServer(where, http.server.BaseHTTPRequestHandler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def test_a_certificate_of_another_authority_ends_the_wait(tmp_path: Path) -> None:
    other = Certificates(tmp_path / "other")
    other.create()
    api_server = program(
        tmp_path / "kube-apiserver",
        _API_SERVER.format(
            python=sys.executable,
            certificate=str(other.server),
            key=str(other.server_key),
        ),
    )
    etcd = program(tmp_path / "etcd-program", _ETCD)
    programs = Programs(api_server, etcd, kubectl=etcd, release=(1, 0))

    with closing(ControlPlane(programs, tmp_path)) as control_plane:
        with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local"):
            control_plane.create()
        is_up = control_plane.is_up()

    assert is_up


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path
