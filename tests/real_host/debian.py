"""Debian packages of other suites, unpacked into a cache, the system untouched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import attrs

from tests.real_host.apt_sources import NoDebianMirror, debian_mirror
from tests.real_host.cache import cache_root, cached, locked
from tests.real_host.retries import with_retries

KEYRINGS = tuple(
    Path("/usr/share/keyrings") / f"debian-archive-keyring.{suffix}"
    for suffix in ("gpg", "pgp")
)
_RECIPE = "1"  # Raise it when unpacking changes; old folders are then ignored.


class PackageUnavailable(Exception):
    """This machine cannot get the package; the text is a test's skip reason."""


class ProgramFailed(PackageUnavailable):
    """A program of apt or dpkg failed; another try may succeed."""


@attrs.frozen
class Suite:
    """A Debian suite, seen through a private apt that the system never notices.

    Attributes:
        name: Codename: ``trixie``, ``sid``.
        mirror: URL of the archive, as ``debootstrap`` wants it.
        keyring: File with the archive's signing keys.
        components: Parts of the archive that a machine has by default.
        script: A suite that debootstrap installs in the same way; None where it surely
            knows this one.
    """

    name: str
    mirror: str
    keyring: Path
    components: tuple[str, ...] = ("main",)
    script: str | None = None

    @classmethod
    def of(cls, name: str, etc: Path = Path("/etc")) -> Suite:
        """Look up the mirror in the machine's own apt sources.

        Raises:
            PackageUnavailable: No Debian mirror or no keyring on this machine.
        """
        try:
            mirror = debian_mirror(etc)
        except NoDebianMirror as error:
            raise PackageUnavailable(str(error)) from None
        keyring = next((path for path in KEYRINGS if path.exists()), None)
        if keyring is None:
            raise PackageUnavailable("the package debian-archive-keyring is missing")
        return cls(name, mirror, keyring)

    def fetch(self, package: str, *more: str) -> Path:
        """Return a folder with *package* and *more* unpacked (``usr/bin/...``).

        A package is fetched once; remove the cache folder to get a newer one.

        Raises:
            PackageUnavailable: apt could not get it; its last line says why.
        """
        return cached(
            f"debian/{self.name}-{package}",
            (_RECIPE, self.mirror, self.name, package, *more),
            lambda folder: self._unpack((package, *more), folder),
        )

    def fetch_source(self, package: str) -> Path:
        """Return a folder with the archives of a source package, as Debian signed them.

        Raises:
            PackageUnavailable: apt could not get it; its last line says why.
        """
        return cached(
            f"debian/{self.name}-{package}-source",
            (_RECIPE, self.mirror, self.name, package),
            lambda folder: self._download_source(package, folder),
        )

    def dependencies(self, package: str) -> tuple[str, ...]:
        """Names that *package* depends on: how a kernel's meta package is resolved.

        Raises:
            PackageUnavailable: The suite's package lists cannot be had.
        """
        with locked(self._apt_folder()):
            self._update()
            lines = self._apt("apt-cache", "depends", "--important", package)
        return tuple(
            line.split()[-1]
            for line in lines.splitlines()
            if line.split()[:1] in (["Depends:"], ["PreDepends:"])
        )

    def _unpack(self, packages: tuple[str, ...], folder: Path) -> None:
        names = (f"{package}/{self.name}" for package in packages)
        # One apt at a time: two would fight over the lists.
        with locked(self._apt_folder()):
            self._update()
            self._apt("apt-get", "download", *names, cwd=folder)
        for archive in folder.glob("*.deb"):
            _run("dpkg", "-x", str(archive), str(folder))
            archive.unlink()

    def _download_source(self, package: str, folder: Path) -> None:
        with locked(self._apt_folder()):
            # Lists of sources are as long as those of packages: only for this.
            self._update("deb-src")
            self._apt("apt-get", "source", "--download-only", package, cwd=folder)

    def _apt_folder(self) -> Path:
        return cache_root() / "apt" / self.name

    def _update(self, kind: str = "deb") -> None:
        folder = self._apt_folder()
        (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text(
            f"{kind} [signed-by={self.keyring}] {self.mirror} {self.name} "
            f"{' '.join(self.components)}\n"
        )
        # Without Error-Mode an unreachable mirror is a warning and exit 0.
        self._apt("apt-get", "update", "--quiet", "--error-on=any")

    def _apt(self, program: str, *args: str, cwd: Path | None = None) -> str:
        folder = self._apt_folder()
        options = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": folder,
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            # The _apt user may not enter a cache folder below a 0700 home.
            "APT::Sandbox::User": "root",
            # We only need the names: no translations, no desktop metadata.
            "Acquire::Languages": "none",
            "Acquire::http::Timeout": 30,
            "Acquire::Retries": 2,
        }
        settings = [f"-o{key}={value}" for key, value in options.items()]
        return with_retries(
            lambda: _run(program, *settings, *args, cwd=cwd), ProgramFailed
        )


def _run(*argv: str, cwd: Path | None = None) -> str:
    try:
        return subprocess.run(
            argv,
            cwd=cwd,
            env=os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    except FileNotFoundError:
        raise PackageUnavailable(f"{argv[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip() or "it said nothing").splitlines()[-1]
        raise ProgramFailed(f"{argv[0]} failed: {reason}") from error
