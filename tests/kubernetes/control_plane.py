"""An etcd and a kube-apiserver on the loopback device, that leave nothing behind."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from tests.kubernetes.certificates import Certificates, trusting
from tests.kubernetes.kubectl import Kubectl
from tests.kubernetes.programs import Programs
from tests.real_host.patience import wait_until

_HOST: Final = "127.0.0.1"
# If the tests are killed, so are the servers (setpriv(1)).
_DIE_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")
# The data are in memory, and gone when etcd is.
_ON_TMPFS: Final = 'mount -t tmpfs etcd "$1"; shift; exec "$@"'
# Requests of service accounts are logged as they arrive: what tests of these ask for.
_AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted", "ResponseComplete"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
# Ports of outgoing connections begin here (ip_local_port_range): another test's
# connection must not get the port of a server that is down for a while.
_FIRST_EPHEMERAL: Final = 32768
_SECONDS: Final = 600.0  # A start takes 3 on an idle machine, minutes on a busy one.


class NotStarted(Exception):
    """A server ended instead of serving; the text is the end of its log."""


@attrs.frozen
class Answer:
    """What the API server answered.

    Attributes:
        status: HTTP's.
        body: The object, or the text where it is no JSON.
    """

    status: int
    body: Any


@attrs.frozen
class Request:
    """What a service account asked for.

    Attributes:
        verb: Kubernetes': ``get``, ``list``, ``watch``, ``patch``, ...
        path: With its query.
    """

    verb: str
    path: str


class ControlPlane:
    """One API server, which may be killed and started again, and its etcd.

    Users are ``admin``, who may do everything, and service accounts.

    Attributes:
        release: Major and minor number.
        url: Of the API server; the same after a restart.
        certificates: Where clients find the authority.
        kubeconfig: The administrator's.
        kubectl: The same.
    """

    def __init__(self, programs: Programs, folder: Path) -> None:
        self.release = programs.release
        self.certificates = Certificates(folder / "certificates")
        self.kubeconfig = folder / "admin.yaml"
        self.kubectl = Kubectl(programs.kubectl, self.kubeconfig)
        self._programs = programs
        self._folder = folder
        self._admin = secrets.token_hex(16)
        self._etcd: subprocess.Popen[bytes] | None = None
        self._api_server: subprocess.Popen[bytes] | None = None
        self._etcd_port, self._peer_port, self._port = free_ports(3)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://{_HOST}:{self._port}"

    @property
    def port(self) -> int:
        """Where the API server listens, at 127.0.0.1."""
        return self._port

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes, by the names of their programs."""
        started = {"etcd": self._etcd, "kube-apiserver": self._api_server}
        return {name: one.pid for name, one in started.items() if one is not None}

    @property
    def audit_log(self) -> Path:
        """A line of JSON for each request of a service account."""
        return self._folder / "audit.log"

    def create(self) -> None:
        """Write all files, and start both.

        Raises:
            NotStarted: One of them ended; the end of the log is quoted.
            SSLCertVerificationError: The API server shows a certificate of another
                authority.
            TooSlow: One of them neither served nor ended.
        """
        self.certificates.create()
        self.write_kubeconfig(self.kubeconfig, self._admin)
        (self._folder / "tokens").write_text(
            f"{self._admin},admin,admin,system:masters\n"
        )
        (self._folder / "audit.yaml").write_text(yaml.safe_dump(_AUDIT))
        self._etcd = self._started("etcd", self._etcd_command())
        self.start()

    def start(self) -> None:
        """Start the API server with the data of its last run.

        Raises:
            NotStarted: It ended again; the end of the log is quoted.
            SSLCertVerificationError: It shows a certificate of another authority.
            TooSlow: It neither served nor ended.
        """
        self._api_server = self._started("kube-apiserver", self._api_server_command())
        wait_until(self._is_ready, f"the API server (see {self._folder})", _SECONDS)

    def kill(self) -> None:
        """End the API server at once; its data and its address stay."""
        _end(self._api_server)

    def pause(self) -> None:
        """Stop the API server from answering; its connections stay."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        self._signal(signal.SIGCONT)

    def is_up(self) -> bool:
        """Whether the API server was started and has not ended."""
        return self._api_server is not None and self._api_server.poll() is None

    def close(self) -> None:
        """End both."""
        _end(self._api_server)
        _end(self._etcd)

    def write_kubeconfig(self, path: Path, token: str, namespace: str = "") -> None:
        """Write a file for a client with a bearer's token."""
        self._write_kubeconfig(path, {"token": token}, namespace)

    def write_certified(self, path: Path, subject: str) -> None:
        """Write a file for a client with a certificate, and both beside it.

        Args:
            path: Of the file.
            subject: Such as ``/O=system:nodes/CN=system:node:NAME``.
        """
        certificate, key = path.with_suffix(".crt"), path.with_suffix(".key")
        self.certificates.issue(certificate, key, subject)
        files = {"client-certificate": str(certificate), "client-key": str(key)}
        self._write_kubeconfig(path, files)

    def _write_kubeconfig(
        self, path: Path, user: Mapping[str, str], namespace: str = ""
    ) -> None:
        context = {"cluster": "test", "user": "test", "namespace": namespace}
        named = {
            "clusters": {
                "server": self.url,
                "certificate-authority": str(self.certificates.authority),
            },
            "users": dict(user),
            "contexts": context,
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            **{key: [{"name": "test", key[:-1]: of}] for key, of in named.items()},
        }
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str = "",
        kind: str = "application/json",
    ) -> Answer:
        """Send one request; a status of failure is an answer, too.

        Args:
            method: HTTP's.
            path: With its query.
            body: The object to be sent, if any.
            token: The bearer's; the administrator's by default.
            kind: What *body* is, such as ``application/merge-patch+json``.
        """
        request = urllib.request.Request(  # noqa: S310 - our own URL
            f"{self.url}{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {token or self._admin}",
                "Content-Type": kind,
                "Accept": "application/json",
            },
            method=method,
        )
        trust = trusting(self.certificates.authority)
        try:
            with urllib.request.urlopen(request, timeout=60, context=trust) as answer:  # noqa: S310
                return _answer(answer.status, answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return _answer(refused.code, refused.read())

    def requests(self, user: str) -> list[Request]:
        """What a service account has asked for so far, in order.

        Args:
            user: Such as ``system:serviceaccount:NAMESPACE:NAME``.
        """
        log = self.audit_log
        lines = log.read_text().splitlines() if log.exists() else []
        return [
            Request(one["verb"], one["requestURI"])
            for one in map(json.loads, lines)
            if one["user"]["username"] == user
        ]

    def _etcd_command(self) -> list[str | Path]:
        client = f"http://{_HOST}:{self._etcd_port}"
        peer = f"http://{_HOST}:{self._peer_port}"
        data = self._folder / "etcd"
        data.mkdir()
        command: list[str | Path] = [
            *(self._programs.etcd, "--data-dir", data / "data"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        ]
        if os.geteuid() != 0:
            return command
        return ["unshare", "--mount", "sh", "-ec", _ON_TMPFS, "sh", data, *command]

    def _api_server_command(self) -> list[str | Path]:
        files = self.certificates
        options: Mapping[str, object] = {
            "etcd-servers": f"http://{_HOST}:{self._etcd_port}",
            "bind-address": _HOST,
            "advertise-address": _HOST,
            "secure-port": self._port,
            # It would write the address of a service, which may not be a loopback's.
            "endpoint-reconciler-type": "none",
            "service-cluster-ip-range": "10.0.0.0/24",
            "allow-privileged": "true",
            "cert-dir": self._folder / "certificates",
            "tls-cert-file": files.server,
            "tls-private-key-file": files.server_key,
            "client-ca-file": files.authority,
            "token-auth-file": self._folder / "tokens",
            "authorization-mode": "Node,RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-signing-key-file": files.account_key,
            "service-account-key-file": files.account_key,
            # No controller makes the accounts of pods.
            "disable-admission-plugins": "ServiceAccount",
            "audit-policy-file": self._folder / "audit.yaml",
            "audit-log-path": self.audit_log,
            "profiling": "false",
        }
        named = (f"--{name}={value}" for name, value in options.items())
        return [self._programs.api_server, *named]

    def _started(self, name: str, command: list[str | Path]) -> subprocess.Popen[bytes]:
        with self._log(name).open("ab") as log:
            return subprocess.Popen(
                [*_DIE_WITH_US, *command],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _is_ready(self) -> bool:
        for name, process in (
            ("etcd", self._etcd),
            ("kube-apiserver", self._api_server),
        ):
            if process is None or process.poll() is not None:
                log = self._log(name).read_text(errors="replace")
                end = "\n".join(log.splitlines()[-5:])
                raise NotStarted(f"{name} ended at once:\n{end}")
        try:
            return self.ask("GET", "/readyz").status == 200
        except urllib.error.URLError as error:
            # Waiting does not change the certificate that it shows.
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise error.reason from None
            return False
        except OSError:
            return False

    def _signal(self, number: signal.Signals) -> None:
        if self._api_server is not None:
            self._api_server.send_signal(number)


def free_ports(count: int) -> list[int]:
    """Return ports that nothing has, below those of outgoing connections."""
    ports: set[int] = set()
    while len(ports) < count:
        port = random.randrange(20_000, _FIRST_EPHEMERAL)  # noqa: S311
        with socket.socket() as tried:
            try:
                tried.bind((_HOST, port))
            except OSError:
                continue
            ports.add(port)
    return sorted(ports)


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        process.kill()
        process.wait()


def _answer(status: int, text: bytes) -> Answer:
    try:
        return Answer(status, json.loads(text))
    except ValueError:
        return Answer(status, text.decode(errors="replace"))
