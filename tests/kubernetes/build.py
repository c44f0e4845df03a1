"""kube-apiserver and kubelet, built from Debian's source package.

Debian has no package of either. Its source package ``kubernetes`` of bookworm is
complete but for one generated file, and needs a newer release of one library than its
own copy.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.real_host.cache import cached
from tests.real_host.debian import PackageUnavailable, Suite
from tests.real_host.go import Go

PROGRAMS: Final = ("kube-apiserver", "kubelet")
_SUITE: Final = "bookworm"  # The only one with a whole Kubernetes.
_RECIPE: Final = "1"  # Raise it when the way of building changes.
_ROOT: Final = "k8s.io/kubernetes"
_OPENAPI: Final = f"{_ROOT}/pkg/generated/openapi"
# With its own copy, 1.0.1, the server crashes at the first list of objects with a map
# when it is built by Go 1.18 or newer.
_REFLECT: Final = "github.com/modern-go/reflect2"
_REFLECT_PACKAGE: Final = "golang-github-modern-go-reflect2-dev"
_EXAMPLES: Final = ("code-generator", "sample-apiserver")
_DESCRIBED: Final = b"+k8s:openapi-gen="
# Halves the time of compiling; the programs are fast enough.
_UNOPTIMIZED: Final = f"-gcflags={_ROOT}/...=-N -l -dwarf=false"
# No clients of clouds, no client of Docker's runtime.
_TAGS: Final = "providerless,dockerless"


def built_programs() -> Path:
    """Return a folder with `PROGRAMS`, built if the cache has none.

    Takes about five minutes of CPU time, and 1.5 GiB of the cache's disk meanwhile.

    Raises:
        PackageUnavailable: This machine cannot build them; the text says why.
        GoFailed: The recipe does not fit the packages.
    """
    suite = Suite.of(_SUITE)
    inputs = (_RECIPE, suite.mirror, suite.name, *PROGRAMS)
    return cached("kubernetes", inputs, lambda folder: _build(suite, folder))


def _build(suite: Suite, folder: Path) -> None:
    go = Go.of(suite)
    archive = _archive(suite.fetch_source("kubernetes"))
    path, work = folder / "go", folder / "work"
    source = path / "src" / _ROOT
    for made in (source, work):
        made.mkdir(parents=True)
    subprocess.run(
        ["tar", "-xf", archive, "-C", source, "--strip-components=1"], check=True
    )
    _replace_reflect(source, suite.fetch(_REFLECT_PACKAGE))
    _generate_openapi(go, path, work)
    version = f"{_ROOT}/vendor/k8s.io/component-base/version.gitVersion"
    go.run(
        *("build", "-o", folder, "-tags", _TAGS, _UNOPTIMIZED),
        *("-ldflags", f"-s -w -X {version}={_version(archive)}"),
        *(f"{_ROOT}/cmd/{program}" for program in PROGRAMS),
        path=path,
        work=work,
    )
    shutil.rmtree(path)
    shutil.rmtree(work)


def _archive(folder: Path) -> Path:
    """The upstream archive; Debian's patches are about messages of kubectl only."""
    [archive] = folder.glob("kubernetes_*.orig.tar.*")
    return archive


def _version(archive: Path) -> str:
    """Kubernetes' own version, of a name such as ``1.20.5+really1.20.2``."""
    found = re.search(r"(?:_|really)(\d+\.\d+\.\d+)\.orig\.", archive.name)
    if found is None:
        raise PackageUnavailable(f"{archive.name} has no version")
    return f"v{found[1]}"


def _replace_reflect(source: Path, package: Path) -> None:
    folder = source / "vendor" / _REFLECT
    shutil.rmtree(folder)
    shutil.copytree(package / "usr" / "share" / "gocode" / "src" / _REFLECT, folder)


def _generate_openapi(go: Go, path: Path, work: Path) -> None:
    """Write the API's description, which Debian's archive lacks.

    Source:
        Kubernetes, build/root/Makefile.generated_files, "Open-api generation".
    """
    vendor = f"{_ROOT}/vendor/k8s.io"
    program = "openapi-gen"
    go.run(
        *("build", "-o", work / program, f"{vendor}/kube-openapi/cmd/{program}"),
        path=path,
        work=work,
    )
    source = path / "src" / _ROOT
    go.call(
        *(work / program, "-O", "zz_generated.openapi", "-r", work / "violations"),
        *("-h", source / "vendor/k8s.io/code-generator/hack/boilerplate.go.txt"),
        *("-i", ",".join(_described(source)), "-p", _OPENAPI),
        *("--output-base", path / "src"),
        path=path,
        work=source,
    )


def _described(source: Path) -> Iterator[str]:
    """Packages with types that are in the API's description."""
    for top, name in ((source / "pkg", f"{_ROOT}/pkg"), *_staged(source)):
        files = (file for file in top.rglob("*.go") if _DESCRIBED in file.read_bytes())
        for folder in sorted({file.parent for file in files}):
            yield f"{name}/{folder.relative_to(top)}"


def _staged(source: Path) -> Iterator[tuple[Path, str]]:
    for top in sorted((source / "staging/src/k8s.io").iterdir()):
        if top.name not in _EXAMPLES:
            yield top, f"{_ROOT}/vendor/k8s.io/{top.name}"
