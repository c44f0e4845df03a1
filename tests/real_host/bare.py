"""``python -m tests.real_host.bare SUITE [COMMAND ...]``: try a bare machine.

It is a root directory that debootstrap makes, with Python, make and git. It has mounts
and processes of its own, an empty environment, and a clone of this checkout's HEAD, in
which the commands run. It shares the kernel, the network and cgroups with this machine.
At the end its processes are killed and its folder is removed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.real_host.binaries import SEARCH_PATH
from tests.real_host.bootstrap import bootstrap
from tests.real_host.cache import cache_root, cached
from tests.real_host.debian import PackageUnavailable, Suite

_CHECKOUT: Final = Path(__file__).parents[2]
_RUN: Final = Path(__file__).with_name("run-bare.sh")
_RECIPE: Final = "1"  # Raise it when the way of building changes.

# What a user needs to fetch the project and to call make; ca-certificates serve pip.
_PACKAGES: Final = ("ca-certificates", "git", "make", "python3")

_UBUNTU_KEYRING: Final = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
_README_COMMANDS: Final = ("make run", "make test")
_HOME: Final = "root"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# How clients reach the network from here; all else is what a new machine has.
_CA_BUNDLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy")
_PIP_SETTINGS: Final = (
    "cert",
    "default-timeout",
    "index-url",
    "proxy",
    "retries",
    "timeout",
)
_APT_SETTINGS: Final = r"Acquire::(http|https|Check-Date|Check-Valid-Until|Retries)\b"
_NETWORK_FILES: Final = ("etc/hosts", "etc/resolv.conf")
_CA_BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"


def main() -> int:
    """Make the machine, run the commands until one fails, remove the machine."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real_host.bare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", help="such as bookworm, trixie or noble")
    parser.add_argument(
        "commands",
        nargs="*",
        metavar="COMMAND",
        default=_README_COMMANDS,
        help="of a shell, in the clone; those of the README by default",
    )
    parser.add_argument(
        "--share-cache",
        action="store_true",
        help="share this machine's cache folder; by default all is fetched and built",
    )
    parser.add_argument(
        "--ubuntu",
        metavar="URL",
        help="an Ubuntu archive that has the suite; otherwise it is one of Debian's",
    )
    options = parser.parse_args()
    # The folder is removed before the end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        base = _base(_suite(options.suite, options.ubuntu))
    except PackageUnavailable as reason:
        sys.exit(f"bare: no bare machine: {reason}")
    # On a disk, which /tmp may not be: an environment and a cache have 3 GB.
    with tempfile.TemporaryDirectory(prefix="nri-bare-", dir="/var/tmp") as name:
        root = Path(name) / "root"
        _call("cp", "-a", base, root)
        environment = _connect(root)
        _call("git", "clone", "--quiet", _CHECKOUT, root / _HOME / "nri-resmgr")
        cache = cache_root() if options.share_cache else None
        return _run(root, environment, " && ".join(options.commands), cache)


def _suite(name: str, ubuntu: str | None) -> Suite:
    if ubuntu is None:
        return Suite.of(name)
    # Debian has the keys of Ubuntu's archive in a package from Debian 13 on.
    keys = Suite.of("trixie").fetch("ubuntu-keyring") / _UBUNTU_KEYRING
    # All of its releases are installed as the first that debootstrap could install.
    return Suite(name, ubuntu, keys, ("main", "universe"), script="gutsy")


def _base(suite: Suite) -> Path:
    """Return a root directory of *suite* as debootstrap makes it.

    Raises:
        PackageUnavailable: It cannot be made here.
    """

    def build(folder: Path) -> None:
        print(f"bare: debootstrap {suite.name} {suite.mirror}", file=sys.stderr)
        bootstrap(suite, _PACKAGES, folder)

    inputs = (_RECIPE, suite.mirror, suite.name, *suite.components, *_PACKAGES)
    return cached(f"bare/{suite.name}", inputs, build)


def _connect(root: Path) -> dict[str, str]:
    """Let clients in *root* reach the network as those here; return the environment."""
    for name in _NETWORK_FILES:
        shutil.copy(Path("/", name), root / name)
    (root / "etc/apt/apt.conf.d/network").write_text("".join(_apt_settings()))
    environment = {"HOME": f"/{_HOME}", "PATH": _PATH, "LANG": "C.UTF-8"}
    environment |= dict(_pip_settings())
    for name in (*_PROXIES, *map(str.upper, _PROXIES), *_CA_BUNDLES):
        if name in os.environ:
            environment[name] = os.environ[name]
    bundles = {
        environment[name] for name in ("PIP_CERT", *_CA_BUNDLES) if name in environment
    }
    for bundle in {_CA_BUNDLE, *bundles}:
        if Path(bundle).is_file():
            copy = root / bundle.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(bundle, copy)
    return environment


def _apt_settings() -> Iterator[str]:
    """Yield lines of apt.conf(5) about the network."""
    for line in _call("apt-config", "dump").splitlines():
        if re.match(_APT_SETTINGS, line):
            yield f"{line}\n"


def _pip_settings() -> Iterator[tuple[str, str]]:
    """Yield settings of pip about the network, as variables of the environment.

    What its files and its variables say: the last of both lists wins, as in pip.
    """
    for line in _call(sys.executable, "-m", "pip", "config", "list").splitlines():
        key, _, value = line.partition("=")
        setting = key.rpartition(".")[2]
        if setting in _PIP_SETTINGS:
            yield f"PIP_{setting.upper().replace('-', '_')}", value.strip("'\"")


def _run(
    root: Path, environment: dict[str, str], command: str, cache: Path | None
) -> int:
    """Run *command* in *root*; return its status. No process or mount outlives it."""
    argv = [
        # Where this one is killed, too: all processes and mounts end with the first.
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--mount", "--pid", "--kill-child"),
        *("sh", _RUN, root, command, cache or ""),
    ]
    return subprocess.run(argv, check=False, env=environment).returncode


def _call(*argv: str | Path) -> str:
    done = subprocess.run(
        argv,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PATH": SEARCH_PATH, "LC_ALL": "C.UTF-8"},
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
