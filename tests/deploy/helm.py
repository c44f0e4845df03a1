"""What ``helm template`` makes of the chart."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from tests.real_host.absent import give_up
from tests.real_host.cache import cached
from tests.real_host.debian import PackageUnavailable, Suite
from tests.real_host.go import Go

CHART: Final = Path(__file__).parents[2] / "deploy" / "helm"

_SOURCE: Final = Path(__file__).parent / "render" / "main.go"
_SUITE: Final = "bookworm"  # Of the compiler, too.
# Sprig and YAML with all that they import.
_LIBRARIES: Final = (
    "golang-github-masterminds-sprig-dev",
    "golang-k8s-sigs-yaml-dev",
    "golang-github-google-uuid-dev",
    "golang-github-huandu-xstrings-dev",
    "golang-github-imdario-mergo-dev",
    "golang-github-masterminds-goutils-dev",
    "golang-github-masterminds-semver-dev",
    "golang-github-mitchellh-copystructure-dev",
    "golang-github-mitchellh-reflectwalk-dev",
    "golang-github-shopspring-decimal-dev",
    "golang-github-spf13-cast-dev",
    "golang-golang-x-crypto-dev",
    "golang-gopkg-yaml.v2-dev",
    "golang-gopkg-yaml.v3-dev",
)


class NotRendered(Exception):
    """The chart refuses the values; the text says why."""


@attrs.frozen(kw_only=True)
class Release:
    """What is installed, and where.

    Attributes:
        chart: Folder of the chart.
        name: Of the release.
        namespace: Of the release.
        version: Of the cluster.
        kinds: That the cluster has, as ``.Capabilities.APIVersions`` has them.
        objects: That it has, by ``apiVersion/kind/namespace/name``. Helm itself looks
            at none when it only renders.
    """

    chart: Path = CHART
    name: str = "nri-resmgr"
    namespace: str = "kube-system"
    version: str = "v1.36.0"
    kinds: tuple[str, ...] = ()
    objects: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)

    def render(self, **values: object) -> tuple[dict[str, Any], ...]:
        """Return the objects of the chart, by kind and name.

        Args:
            values: Of the user.

        Raises:
            NotRendered: A template failed.
        """
        objects = [
            one
            for file, text in self.texts(**values).items()
            if file.endswith(".yaml")
            for one in yaml.safe_load_all(text)
            if one
        ]
        return tuple(sorted(objects, key=lambda o: (o["kind"], o["metadata"]["name"])))

    def texts(self, **values: object) -> dict[str, str]:
        """Return the text of each template, by its file's name.

        Raises:
            NotRendered: A template failed.
        """
        if (helm := shutil.which("helm")) is not None and not self.objects:
            return {"all.yaml": self._by_helm(helm, values)}
        return self._by_renderer(values)

    def notes(self, **values: object) -> str:
        """Return what is printed after an installation; Helm prints it only then.

        Raises:
            NotRendered: A template failed.
        """
        return self._by_renderer(values)["templates/NOTES.txt"]

    def _by_renderer(self, values: Mapping[str, object]) -> dict[str, str]:
        request = {
            "Chart": str(self.chart),
            "Name": self.name,
            "Namespace": self.namespace,
            "Values": values,
            "KubeVersion": self.version,
            "APIVersions": self.kinds,
            "Objects": self.objects,
        }
        done = subprocess.run(
            [_renderer()],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotRendered(done.stderr.strip())
        texts: dict[str, str] = json.loads(done.stdout)
        return texts

    def _by_helm(self, helm: str, values: Mapping[str, object]) -> str:
        done = subprocess.run(
            [
                *(helm, "template", self.name, self.chart, "--values", "-"),
                *("--namespace", self.namespace, "--kube-version", self.version),
                *(flag for kind in self.kinds for flag in ("--api-versions", kind)),
            ],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotRendered(done.stderr.strip())
        return done.stdout


@cache
def _renderer() -> Path:
    """Build what renders where there is no Helm, unless the cache has it."""
    try:
        suite = Suite.of(_SUITE)
        inputs = (suite.mirror, suite.name, _SOURCE.read_text(), *_LIBRARIES)
        folder = cached("render-chart", inputs, lambda to: _build(suite, to))
    except PackageUnavailable as reason:
        give_up(f"neither helm nor what it takes to render a chart: {reason}")
    return folder / "render"


def _build(suite: Suite, folder: Path) -> None:
    libraries = suite.fetch(*_LIBRARIES) / "usr" / "share" / "gocode"
    work = folder / "work"
    work.mkdir()
    Go.of(suite).run(
        *("build", "-o", folder / "render", "-ldflags", "-s -w", _SOURCE),
        path=libraries,
        work=work,
    )
    shutil.rmtree(work)
