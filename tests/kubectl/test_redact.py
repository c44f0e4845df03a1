"""Secrets do not get into a support bundle, and what is none stays as it is."""

from __future__ import annotations

import io
import json
import string
import tarfile
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nri_resmgr.host.machine.dump import load_dump, load_files, write_dump
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.kubectl.redact import (
    REDACTED,
    redact_archive,
    redact_data,
    redact_text,
)
from nri_resmgr.topology.synthetic import parse_spec

ROOT: Final = Path(__file__).parents[2]
# A text that occurs by no chance; longer than the shortest that has a form of its own.
SECRETS: Final = st.text(string.ascii_letters + string.digits, min_size=12, max_size=40)
NAMES: Final = st.sampled_from(
    (
        *("password", "DB_PASSWORD", "passwd", "clientSecret", "token", "api-key"),
        *("AWS_SECRET_ACCESS_KEY", "private_key", "authorization", "sessionCookie"),
        "registry.credentials",
    )
)
JWT_HEAD: Final = urlsafe_b64encode(b'{"alg":"RS256","kid":""}').decode().rstrip("=")
PLACES: Final = (
    "{name}={secret}",
    "{name}: {secret}",
    "{name}: {secret} and {secret}",
    "  - {name}: '{secret} {secret}'",
    '{name}="{secret} {secret}" cpus=0-3',
    '{{"{name}": "{secret}\\"{secret}", "cpus": "0-3"}}',
    '{{"message": "{{\\"{name}\\":\\"{secret} {secret}\\"}}"}}',
    "run --{name} {secret} --cpus 3",
    "run --{name}={secret}",
    "{name}: |\n  {secret}\n\n  {secret}\nnext: 1",
    "- {name}: >-\n    {secret}\n  next: 1",
    "- name: {name}\n  value: {secret} {secret}\n",
    "- name: COLOUR\n  value: {secret}\n- name: {name}\n  value: |\n    {secret}\n",
    "{name}: [{secret}, {secret}]",
    "GET /v1?{name}={secret}&cpus=3",
    "rejected: https://user:{secret}@example.com/v1",
    "rejected: redis://:{secret}@{secret}@example.com",
    "header Authorization: Basic {secret}",
    "sent Bearer {secret}.",
    "found " + JWT_HEAD + ".{secret}.{secret} in it",
    "-----BEGIN RSA PRIVATE KEY-----\n{secret}\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\\n{secret}",
)


@pytest.mark.parametrize("place", PLACES)
@given(NAMES, SECRETS, st.text(max_size=20))
def test_a_planted_secret_is_taken_out_of_a_text(
    place: str, name: str, secret: str, around: str
) -> None:
    assume(secret not in around)
    text = f"{around}\n{place.format(name=name, secret=secret)}\n{around}"

    redacted = redact_text(text)

    assert secret in text
    assert secret not in redacted
    assert REDACTED in redacted
    assert redact_text(redacted) == redacted


@given(st.text())
@example("token: |\n\n")
@example('token="')
@example("name: x\n  value: |")
def test_any_text_is_read_and_a_second_time_changes_nothing(text: str) -> None:
    redacted = redact_text(text)

    assert redact_text(redacted) == redacted


def objects(secret: str) -> dict[str, Any]:
    """Return an object of Kubernetes with a secret in each place where one may be."""
    return {
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "env": [
                        {"name": "COLOUR", "value": secret},
                        {"name": "NRI_RESMGR_API_TOKEN", "value": secret},
                        {"name": "NRI_RESMGR_LOG_LEVEL", "value": "debug"},
                        {"name": "POD_IP", "valueFrom": {"fieldRef": {"x": "y"}}},
                    ],
                    "args": ["--token", secret, "--cpus", "3", f"--password={secret}"],
                }
            ],
            "volumes": [{"name": "keys", "secret": {"secretName": "keys"}}],
            "auth": {"password": secret, "tokens": [secret, {"of": secret}]},
            "pin": {"accessKey": 123456789012},
        },
        "data": {"config.yaml": f"cpus: 3\npassword: {secret}\n", "token": secret},
    }


@given(SECRETS)
def test_a_planted_secret_is_taken_out_of_an_object(secret: str) -> None:
    redacted = redact_data(objects(secret))

    text = json.dumps(redacted)
    assert secret not in text
    assert "123456789012" not in text
    assert redact_data(redacted) == redacted
    [container] = redacted["spec"]["containers"]
    assert container["args"] == [
        "--token",
        REDACTED,
        "--cpus",
        "3",
        "--password=REDACTED",
    ]
    assert container["env"][2:] == objects(secret)["spec"]["containers"][0]["env"][2:]
    assert redacted["data"]["config.yaml"] == "cpus: 3\npassword: REDACTED\n"


def ours() -> list[Path]:
    """Return configurations and manifests of ours, none of which has a secret."""
    samples = [path for path in (ROOT / "conf.d").rglob("*") if path.is_file()]
    return samples + sorted((ROOT / "deploy" / "kubernetes").rglob("*.yaml"))


@pytest.mark.parametrize(
    "path", [pytest.param(one, id=str(one.relative_to(ROOT))) for one in ours()]
)
def test_what_has_no_secret_stays(path: Path) -> None:
    text = path.read_text()
    # The name of a Secret, in a flag whose name does not say so.
    expected = text.replace("--secret=nri-resmgr-webhook", f"--secret={REDACTED}")

    assert redact_text(text) == expected
    for document in yaml.safe_load_all(text):
        # References to these are hidden as well.
        if not any(word in text.lower() for word in ("secret", "token")):
            assert redact_data(document) == document


@pytest.mark.parametrize(
    "text",
    [
        "tokenPath: /var/run/token",
        "--password-file=/etc/password --secret-name keys",
        '{"secretName": "keys", "expirationSeconds": 3607}',
        "authorization.mode=RBAC",
    ],
)
def test_a_name_that_says_where_a_secret_is_keeps_its_value(text: str) -> None:
    assert redact_text(text) == text


def test_lines_of_the_log_stay() -> None:
    lines = (
        "2026-11-21T09:14:02Z [info     ] container.placed  container=3f2a cpus=2,6 "
        "mems=0 pool='NUMA node #0' rule=whole-cpus title=shop/db/pg updates=2\n"
        '{"event": "session.failed", "why": "no runtime: /var/run/nri/nri.sock"}\n'
        "2026-11-21T09:14:02Z [warning  ] agent.refused  path=/api/v1/nodes token=\n"
    )

    assert redact_text(lines) == lines


def test_a_dump_of_a_machine_loads_again_without_its_secrets(tmp_path: Path) -> None:
    files = sysfs_files(parse_spec("1s2n4c1t"))
    path = tmp_path / "dump.tgz"
    machine = write_dump(files, path)
    with tarfile.open(path) as archive:
        names = archive.getnames()
    mounts = b"//server/share /mnt cifs rw,username=me,password=hunter2 0 0\n"
    with (
        tarfile.open(tmp_path / "with.tgz", "w:gz") as planted,
        tarfile.open(path) as of,
    ):
        for member in of:
            planted.addfile(member, of.extractfile(member))
        member = tarfile.TarInfo("host/proc/1/mounts")
        member.size = len(mounts)
        planted.addfile(member, io.BytesIO(mounts))

    path.write_bytes(redact_archive((tmp_path / "with.tgz").read_bytes()))

    assert load_dump(path) == machine
    found = load_files(path)
    assert isinstance(found, RecordedTree)
    assert found.read("/proc/1/mounts") == (
        f"//server/share /mnt cifs rw,username=me,password={REDACTED} 0 0"
    )
    with tarfile.open(path) as archive:
        assert archive.getnames() == [*names, "host/proc/1/mounts"]
