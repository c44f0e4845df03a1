"""A real headless Chromium, out of Debian's packages, driven by WebDriver over HTTP."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from tests.real_host.absent import give_up
from tests.real_host.binaries import SEARCH_PATH
from tests.real_host.bootstrap import bootstrap
from tests.real_host.cache import cached
from tests.real_host.debian import PackageUnavailable, Suite
from tests.real_host.patience import patience, wait_until

_SUITE: Final = "trixie"
_PACKAGES: Final = ("chromium-headless-shell", "fonts-dejavu-core")
_BINARY: Final = "/usr/bin/chromium-headless-shell"
# It depends on a Chromium for a desktop, which debootstrap cannot configure.
_DRIVER: Final = "chromium-driver"
_RECIPE: Final = "1"  # Raise it when the way of building changes.

# In mounts of its own: all runs share the root, and Chromium writes to /tmp only.
_ENTER: Final = """\
set -e
for name in proc sys dev; do mount --rbind "/$name" "$1/$name"; done
mount -t tmpfs tmpfs "$1/tmp"
exec chroot "$1" chromedriver --port=0
"""
# Paths of this machine's environment are not there.
_ENVIRONMENT: Final = {"PATH": SEARCH_PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108 - as above
_STARTED: Final = re.compile(r"started successfully on port (\d+)")
_ARGUMENTS: Final = (
    "--remote-debugging-pipe",  # the root has no /etc/hosts for localhost
    "--no-sandbox",  # it is root in a root directory of its own
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--window-size=1400,1000",
)
_ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"  # the key that WebDriver fixes
_SECONDS: Final = 30.0  # for one command of WebDriver


@attrs.frozen(eq=False)
class Browser:
    """A window of Chromium.

    Source: W3C, WebDriver; the log is ChromeDriver's own.
    """

    session: str

    def open(self, url: str) -> None:
        """Open a page, and wait until its files are there."""
        self._ask("url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """Run the body of a function in the page; return what it returns."""
        return self._ask("execute/sync", {"script": script, "args": [*arguments]})

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements of the page, as they are shown."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)"
        )
        found: list[str] = self.run(script, selector)
        return found

    def type(self, selector: str, text: str) -> None:
        """Have a user replace the text of an input."""
        script = (
            "const input = document.querySelector(arguments[0]);"
            "input.value = arguments[1];"
            "input.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        self.run(script, selector, text)

    def complaints(self) -> list[str]:
        """Return errors, and refused sources, that Chromium has logged since."""
        found = self._ask("se/log", {"type": "browser"})
        return [
            one["message"] for one in found if one["level"] in ("SEVERE", "WARNING")
        ]

    def screenshot(self, selector: str = "") -> bytes:
        """Return a picture of the window, or of an element, as PNG."""
        if not selector:
            return base64.b64decode(self._ask("screenshot"))
        query = {"using": "css selector", "value": selector}
        element = self._ask("element", query)[_ELEMENT]
        return base64.b64decode(self._ask(f"element/{element}/screenshot"))

    def close(self) -> None:
        """Close the window."""
        _ask(self.session, None, "DELETE")

    def _ask(self, path: str, data: object = None) -> Any:
        return _ask(f"{self.session}/{path}", data)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium, or skip the test with the reason."""
    root = _root()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            driver = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", _ENTER, "sh", root],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_ENVIRONMENT,
                start_new_session=True,
            )
        try:
            yield from _window(_port_in(log, driver))
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()


def _window(port: int) -> Iterator[Browser]:
    options = {
        "browserName": "chrome",
        "goog:chromeOptions": {"binary": _BINARY, "args": _ARGUMENTS},
        "goog:loggingPrefs": {"browser": "ALL"},
    }
    sessions = f"http://127.0.0.1:{port}/session"
    made = _ask(sessions, {"capabilities": {"alwaysMatch": options}})
    found = Browser(f"{sessions}/{made['sessionId']}")
    try:
        yield found
    finally:
        found.close()


def _port_in(log: Path, driver: subprocess.Popen[bytes]) -> int:
    def found() -> re.Match[str] | None:
        assert driver.poll() is None, log.read_text()
        return _STARTED.search(log.read_text())

    wait_until(lambda: found() is not None, "chromedriver has not started")
    match = found()
    assert match is not None
    return int(match[1])


def _root() -> Path:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        give_up("chromium: its root directory needs root and unshare")
    try:
        suite = Suite.of(_SUITE)
        return cached(
            f"chromium/{_SUITE}",
            (_RECIPE, suite.mirror, *_PACKAGES, _DRIVER),
            lambda folder: _build(suite, folder),
        )
    except PackageUnavailable as reason:
        give_up(f"chromium: {reason}")


def _build(suite: Suite, folder: Path) -> None:
    program = suite.fetch(_DRIVER) / "usr" / "bin" / "chromedriver"
    bootstrap(suite, _PACKAGES, folder)
    shutil.copy2(program, folder / "usr" / "bin")


def _ask(url: str, data: object = None, method: str = "") -> Any:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, method=method or None)  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=patience(_SECONDS)) as answer:  # noqa: S310 - as above
            return json.loads(answer.read())["value"]
    except urllib.error.HTTPError as error:
        why = json.loads(error.read())["value"]["message"]
        raise AssertionError(why) from None
