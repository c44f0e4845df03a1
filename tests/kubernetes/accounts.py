"""Service accounts with rights of their own, as an agent has one."""

from __future__ import annotations

import json
import subprocess
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from tests.kubernetes.control_plane import ControlPlane, Request
from tests.kubernetes.kubectl import Kubectl

_GROUP: Final = "rbac.authorization.k8s.io"


@attrs.frozen(eq=False)
class Account:
    """A service account.

    Attributes:
        control_plane: Of its cluster.
        namespace: Where it is.
        name: Its name there.
    """

    control_plane: ControlPlane
    namespace: str
    name: str

    @property
    def user(self) -> str:
        """What the API server calls it."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def requests(self) -> list[Request]:
        """What it has asked for so far."""
        return self.control_plane.requests(self.user)

    def token(self, seconds: int = 3600, pod: Mapping[str, Any] | None = None) -> str:
        """Issue a token, as a kubelet has one issued for a pod.

        Args:
            seconds: How long it is valid; the API server refuses less than 600.
            pod: An existing one that the token is bound to.
        """
        spec: dict[str, Any] = {"expirationSeconds": seconds}
        if pod is not None:
            metadata = pod["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.name}/token"
        answer = self.control_plane.ask("POST", path, {"spec": spec})
        assert answer.status == 201, answer.body
        token: str = answer.body["status"]["token"]
        return token

    def token_until(self, moment: float) -> str:
        """Return a token that is valid until a moment in the past or in the future.

        Args:
            moment: Seconds since the epoch. The API server issues none of less than ten
                minutes, and accepts one for a minute longer.
        """
        head, body, _ = self.token().split(".")
        claims = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        claims |= {"exp": int(moment), "iat": int(moment) - 3600}
        claims["nbf"] = claims["iat"]
        signed = f"{head}.{_base64(json.dumps(claims).encode())}"
        signature = subprocess.run(
            [
                *("openssl", "dgst", "-sha256", "-sign"),
                self.control_plane.certificates.account_key,
            ],
            input=signed.encode(),
            capture_output=True,
            check=True,
        ).stdout
        return f"{signed}.{_base64(signature)}"

    def kubeconfig(self, path: Path) -> Path:
        """Write a file with a new token."""
        self.control_plane.write_kubeconfig(path, self.token(), self.namespace)
        return path

    def mounted_kubeconfig(self, folder: Path, url: str = "") -> Path:
        """Write a file that names those of `mount` in the same folder.

        Args:
            folder: Where all of them are.
            url: Of a way to the API server; its own by default.
        """
        path = self.kubeconfig(self.mount(folder) / "kubeconfig.yaml")
        config = yaml.safe_load(path.read_text())
        cluster = config["clusters"][0]["cluster"]
        cluster["certificate-authority"] = str(folder / "ca.crt")
        cluster["server"] = url or cluster["server"]
        config["users"][0]["user"] = {"tokenFile": str(folder / "token")}
        path.write_text(yaml.safe_dump(config))
        return path

    def kubectl(self, path: Path) -> Kubectl:
        """Its own client, with a file at *path*."""
        program = self.control_plane.kubectl.program
        return Kubectl(program, self.kubeconfig(path), self.namespace)

    def mount(self, folder: Path) -> Path:
        """Write what a pod has at /var/run/secrets/kubernetes.io/serviceaccount."""
        folder.mkdir(parents=True, exist_ok=True)
        authority = self.control_plane.certificates.authority
        (folder / "token").write_text(self.token())
        (folder / "ca.crt").write_text(authority.read_text())
        (folder / "namespace").write_text(self.namespace)
        return folder

    def allow(self, *rules: Mapping[str, Sequence[str]], cluster: bool = False) -> None:
        """Give it these rights, in place of those that it got here before.

        Args:
            rules: As in a Role: ``apiGroups``, ``resources``, ``verbs``, ...
            cluster: Whether in all namespaces, and for what is in none.
        """
        prefix = "Cluster" if cluster else ""
        name = f"{self.namespace}-{self.name}" if cluster else self.name
        self.control_plane.kubectl.within(self.namespace).apply(
            {
                "apiVersion": f"{_GROUP}/v1",
                "kind": f"{prefix}Role",
                "metadata": {"name": name},
                "rules": [dict(rule) for rule in rules],
            },
            {
                "apiVersion": f"{_GROUP}/v1",
                "kind": f"{prefix}RoleBinding",
                "metadata": {"name": name},
                "roleRef": {
                    "apiGroup": _GROUP,
                    "kind": f"{prefix}Role",
                    "name": name,
                },
                "subjects": [
                    {
                        "kind": "ServiceAccount",
                        "name": self.name,
                        "namespace": self.namespace,
                    }
                ],
            },
        )


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def make_account(
    control_plane: ControlPlane, namespace: str, name: str = "agent"
) -> Account:
    """Make an account without rights."""
    control_plane.kubectl.within(namespace)("create", "serviceaccount", name)
    return Account(control_plane, namespace, name)
