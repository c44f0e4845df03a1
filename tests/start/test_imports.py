"""What the start of a plugin leaves alone, and that it is there when it is wanted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nri_resmgr.lazy import UNTOUCHED, import_when_touched

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.process


def printed(code: str) -> list[str]:
    """Run *code* in a Python of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


LEFT_OUT = """
import sys, {module}
from nri_resmgr.lazy import UNTOUCHED
print(*({left_out!r} & sys.modules.keys()))
print(*(name for name in UNTOUCHED if "__getattr__" not in vars(sys.modules[name])))
"""


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        pytest.param(
            "nri_resmgr.stub",
            {"structlog", "yaml", "json", "pathlib", "random", "argparse", "cattrs"},
            id="a plugin on the stub imports neither logging nor files",
        ),
        pytest.param(
            "nri_resmgr.daemon.run",
            {
                *("structlog", "yaml", "random", "cattrs", "difflib", "tarfile"),
                *("nri_resmgr.config", "nri_resmgr.policy", "nri_resmgr.app.engine"),
            },
            id="the daemon imports neither logging nor what decides",
        ),
    ],
)
def test_a_start_imports_little(module: str, left_out: set[str]) -> None:
    assert printed(LEFT_OUT.format(module=module, left_out=left_out)) == []


RUN_READ = """
import sys
from nri_resmgr.cli.main import build_parser
build_parser({}, only_run=True).parse_args(["run"])
print(*({"shutil", "bz2", "lzma", "zlib"} & sys.modules.keys()))
"""


def test_flags_are_read_without_looking_at_the_terminal() -> None:
    assert printed(RUN_READ) == []


CONNECTED = """
import sys
sys.modules["rich"] = None  # structlog uses it where it is, and it looks at much
from nri_resmgr.lazy import UNTOUCHED
from nri_resmgr.stub import Stub
import asyncio, os, socket
listener = socket.socket(socket.AF_UNIX)
listener.bind({path!r})
listener.listen()

class Plugin:
    def create_container(self, pod, container):
        pass

async def start():
    stub = Stub.from_environment(Plugin(), name="x", index="10", socket={path!r})
    running = asyncio.create_task(stub.run())
    connected, _ = await asyncio.to_thread(listener.accept)
    told = await asyncio.to_thread(connected.recv, 4096)
    print(b"RegisterPlugin" in told)
    print(*(name for name in UNTOUCHED if "__getattr__" not in vars(sys.modules[name])))
    sys.stdout.flush()
    os._exit(0)

asyncio.run(start())
"""


def test_a_session_touches_no_more(tmp_path: Path) -> None:
    assert printed(CONNECTED.format(path=str(tmp_path / "s"))) == ["True"]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "import ssl; print(ssl.create_default_context().check_hostname)",
            id="a context can be made",
        ),
        pytest.param(
            "from ssl import CERT_REQUIRED; print(CERT_REQUIRED == 2)",
            id="a name can be imported",
        ),
        pytest.param(
            "import asyncio.sslproto as p; print(issubclass(p.SSLProtocol, object))",
            id="asyncio has its transports",
        ),
        pytest.param(
            "import asyncio, ssl; print(asyncio.sslproto.ssl is ssl)",
            id="asyncio uses the same module",
        ),
    ],
)
def test_an_author_may_use_tls(code: str) -> None:
    assert printed(f"import nri_resmgr.stub\n{code}") == ["True"]


THREADS = """
import sys
from threading import Barrier, Thread
import nri_resmgr, ssl
barrier, found = Barrier(8), []

def look():
    barrier.wait()
    found.append(ssl.SSLContext)

threads = [Thread(target=look) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), len(set(found)))
"""


def test_threads_may_touch_a_module_at_the_same_time() -> None:
    assert printed(THREADS) == ["8", "1"]


def test_every_module_of_the_list_is_found() -> None:
    code = "import sys, nri_resmgr; print(*sys.modules)"

    assert set(UNTOUCHED) <= set(printed(code))


def test_a_module_that_nobody_has_is_left_to_fail_where_it_is_imported() -> None:
    import_when_touched(["nri_resmgr_no.such_module", "such_module_is_not"])

    with pytest.raises(ModuleNotFoundError):
        __import__("such_module_is_not")


TWICE = """
import sys
sys.path.insert(0, {folder!r})
from nri_resmgr.lazy import import_when_touched
import_when_touched(["told"])
import told
import told
print("before")
print(told.WORD, hasattr(told, "OTHER"), "told" in sys.modules, told.WORD)
"""


def test_a_module_runs_once_when_its_first_name_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text('print("runs")\nWORD = "hello"\n')

    lines = printed(TWICE.format(folder=str(tmp_path)))

    assert lines == ["before", "runs", "hello", "False", "True", "hello"]
