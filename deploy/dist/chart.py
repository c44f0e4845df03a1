"""Packs the chart as ``helm package`` does, byte for byte the same each time.

Usage: chart.py FOLDER. It writes ``nri-resmgr-VERSION.tgz`` to *FOLDER*; all files have
the time ``SOURCE_DATE_EPOCH``. Helm is in no package of Debian, and makes another
archive each time, as it writes the present time into it.

Source: pkg/chartutil/save.go of Helm 3: regular files below the chart's name, with mode
0644, in this order: Chart.yaml, values.yaml, values.schema.json, templates, all others.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import yaml

_ROOT: Final = Path(__file__).parents[2]
_CHART: Final = _ROOT / "deploy" / "helm"
_FIRST: Final = ("Chart.yaml", "values.yaml", "values.schema.json", "templates/")


def main(folder: Path) -> None:
    """Write the archive to *folder*."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = project["project"]["version"]
    chart = yaml.safe_load((_CHART / "Chart.yaml").read_text(encoding="utf-8"))
    if (chart["version"], chart["appVersion"]) != (version, version):
        sys.exit(
            f"deploy/helm/Chart.yaml: version and appVersion have to be {version}, "
            "as in pyproject.toml"
        )
    folder.mkdir(parents=True, exist_ok=True)
    archive = _packed(chart["name"], int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    (folder / f"{chart['name']}-{version}.tgz").write_bytes(archive)


def _packed(name: str, time: int) -> bytes:
    written = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=written, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in sorted(_files(), key=_place):
            data = (_CHART / path).read_bytes()
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size, member.mtime = len(data), time
            archive.addfile(member, io.BytesIO(data))
    return written.getvalue()


def _files() -> Iterator[str]:
    """Yield the files of the chart but for those of ``.helmignore``.

    Links to folders are followed: the definitions of custom resources are elsewhere.
    """
    lines = (_CHART / ".helmignore").read_text(encoding="utf-8").splitlines()
    ignored = [line for line in lines if line and not line.startswith("#")]
    for folder, _, names in os.walk(_CHART, followlinks=True):
        for name in names:
            path = (Path(folder) / name).relative_to(_CHART).as_posix()
            if not any(fnmatch(path, pattern) for pattern in ignored):
                yield path


def _place(path: str) -> tuple[int, str]:
    first = [path.startswith(start) for start in _FIRST]
    return (first.index(True) if any(first) else len(first)), path


if __name__ == "__main__":
    main(Path(sys.argv[1]))
