"""``nri-resmgr try``: what authors' programs do to manifests, and how they fail."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.command import ROOT, nri_resmgr

pytestmark = pytest.mark.process

_BLOCKS: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

HEAD: Final = """\
import json, os, sys, time
from nri_resmgr.stub import *

class Hello:
"""
TAIL: Final = '\nif __name__ == "__main__":\n    serve(Hello(), index="07")\n'

GREETS: Final = """\
    def create_container(self, pod, container):
        return ContainerAdjustment().set_env("POD", pod.name)
"""


def written(folder: Path, body: str, head: str = HEAD, tail: str = TAIL) -> Path:
    path = folder / "hello.py"
    path.write_text(f"{head}{body}{tail}")
    return path


def pods(folder: Path, *names: str, first: str = "") -> Path:
    """Write a pod for each name, with the container ``app``."""
    path = folder / "pods.yaml"
    setup = f"initContainers: [{{name: {first}}}], " if first else ""
    spec = f"{{{setup}containers: [{{name: app}}]}}"
    path.write_text(
        "---\n".join(
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {spec}}}\n"
            for name in names
        )
    )
    return path


def tried(program: Path, *words: str | Path) -> list[dict[str, Any]]:
    """Try a program that has to work; return what came of each request."""
    done = nri_resmgr("try", program, *words, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)["requests"]
    return found


def block(page: str, kind: str, start: str) -> str:
    """Return the block of a page that starts with a text."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = [one[2] for one in _BLOCKS.finditer(text) if one[1] == kind]
    (found,) = [body for body in blocks if body.startswith(start)]
    return found


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    program, manifest = tmp_path / "hello.py", tmp_path / "pods.yaml"
    program.write_text(block("write-a-plugin.md", "python", "# hello.py"))
    manifest.write_text(block("testing-plugins.md", "yaml", "# pods.yaml"))
    shown = block("testing-plugins.md", "console", "$ nri-resmgr try hello.py")

    done = nri_resmgr("try", program, manifest)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown.partition("\n")[2]


def test_containers_ask_for_what_their_manifests_do(tmp_path: Path) -> None:
    body = """\
    def create_container(self, pod, container):
        seen = [container.cpu.shares, container.cpu.quota, container.memory.limit]
        seen += [*container.args, *container.env, pod.annotations["a"], len(pod.id)]
        return ContainerAdjustment().set_env("SEEN", json.dumps(seen))
"""
    manifest = tmp_path / "pod.yaml"
    limits = "resources: {limits: {cpu: 2, memory: 1Gi}}"
    container = f"{{name: app, command: [run], env: [{{name: A, value: b}}], {limits}}}"
    manifest.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {a: x}}, "
        f"spec: {{containers: [{container}]}}}}"
    )

    (found,) = tried(written(tmp_path, body), manifest)

    (variable,) = found["adjustment"]["env"]
    seen = [2048, 200_000, 1 << 30, "run", "A=b", "x", 64]
    assert json.loads(variable["value"]) == seen


UPDATES = """\
    def __init__(self):
        self.first = None

    def create_container(self, pod, container):
        if self.first is None:
            self.first = container.id
            return None
        return CreateReply(updates=[ContainerUpdate(self.first).set_cpu_shares(2)])

    def stop_container(self, pod, container):
        return ContainerUpdate("gone").set_cpus("0-1")
"""


def test_updates_name_the_containers_that_they_are_of(tmp_path: Path) -> None:
    manifest = pods(tmp_path, "one", "two")
    program = written(tmp_path, UPDATES)

    created: list[dict[str, Any]] = [
        {"request": "CreateContainer", "about": "default/one/app", "updates": []},
        {
            "request": "CreateContainer",
            "about": "default/two/app",
            "updates": [
                {"container": "default/one/app", "changes": {"cpu": {"shares": 2}}}
            ],
        },
    ]
    unknown = [{"container": "gone", "changes": {"cpu": {"cpus": "0-1"}}}]
    stopped: list[dict[str, Any]] = [
        {"request": "StopContainer", "about": f"default/{pod}/app", "updates": unknown}
        for pod in ("one", "two")
    ]
    assert tried(program, manifest) == [{**one, "refused": ""} for one in created]
    assert tried(program, manifest, "--stop") == [
        {**one, "refused": ""} for one in (*created, *stopped)
    ]


def test_init_containers_stop_before_the_next_one_starts(tmp_path: Path) -> None:
    found = tried(written(tmp_path, UPDATES), pods(tmp_path, "web", first="setup"))

    assert [(one["request"], one["about"]) for one in found] == [
        ("CreateContainer", "default/web/setup"),
        ("StopContainer", "default/web/setup"),
        ("CreateContainer", "default/web/app"),
    ]


OWN_UPDATES = """
plugin = Hello()
stub = Stub.from_environment(plugin, socket=sys.argv[sys.argv.index("--socket") + 1])
plugin.stub = stub
import asyncio
asyncio.run(run_until_signal(stub))
"""


def test_updates_that_it_sends_by_itself_are_the_last_ones(tmp_path: Path) -> None:
    body = """\
    def start_container(self, pod, container):
        self.stub.schedule_updates([ContainerUpdate(container.id).set_cpus("1")])
"""
    program = written(tmp_path, body, tail=OWN_UPDATES)

    words = (program, pods(tmp_path, "web"), "--wait", "2", "-o", "json")
    done = nri_resmgr("try", *words)  # this program has its log at level info

    found = json.loads(done.stdout)["requests"]
    update = {"container": "default/web/app", "changes": {"cpu": {"cpus": "1"}}}
    assert [(one["request"], one["updates"]) for one in found] == [
        ("CreateContainer", []),
        ("UpdateContainers", [update]),
    ]


def test_an_older_runtime_does_not_read_newer_fields(tmp_path: Path) -> None:
    body = """\
    def create_container(self, pod, container):
        return ContainerAdjustment().set_rdt_clos_id("gold")
"""
    program, manifest = written(tmp_path, body), pods(tmp_path, "web")

    new = nri_resmgr("try", program, manifest, "--level", "0.11")
    old = nri_resmgr("try", program, manifest, "--level", "0.10")

    assert (new.returncode, new.stderr) == (0, "")
    assert "linux.rdt.clos_id  gold" in new.stdout
    assert (old.returncode, "clos_id" in old.stdout) == (0, False)
    assert "adjustment.too-new" in old.stderr
    assert "needs=0.11.0 runtime=0.10.0" in old.stderr


def test_a_configuration_is_passed_on(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("greeting: good day")
    program = ROOT / "plugins" / "template"

    (found,) = tried(program, pods(tmp_path, "web"), "--config", config)

    greeting = {"key": "GREETING", "value": "good day default/web"}
    assert found["adjustment"]["env"] == [greeting]


def test_a_program_imports_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text('GREETING = "good day"\n')
    body = """\
    def create_container(self, pod, container):
        import words
        return ContainerAdjustment().set_env("GREETING", words.GREETING)
"""

    (found,) = tried(written(tmp_path, body), pods(tmp_path, "web"))

    assert found["adjustment"]["env"] == [{"key": "GREETING", "value": "good day"}]


def test_a_store_is_not_that_of_an_installed_plugin(tmp_path: Path) -> None:
    body = """\
    def create_container(self, pod, container):
        from nri_resmgr.sdk.store import Store, state_folder
        Store(int, state_folder("hello")).save(7)
        return ContainerAdjustment().set_env("STATE", state_folder("hello"))
"""

    (found,) = tried(written(tmp_path, body), pods(tmp_path, "web"))

    (variable,) = found["adjustment"]["env"]
    folder = Path(variable["value"])
    assert (folder.name, folder.exists()) == ("state", False)


def test_a_refusal_leaves_the_other_pods(tmp_path: Path) -> None:
    body = f"""\
    def run_pod_sandbox(self, pod):
        if pod.name == "one":
            raise RequestRejected("no such pod")

    def start_container(self, pod, container):
        if pod.name == "two":
            raise RequestRejected("not today")

{GREETS}"""

    done = nri_resmgr(
        "try", written(tmp_path, body), pods(tmp_path, "one", "two", "three")
    )

    table, refused = done.stdout.split("\n\n")
    assert done.returncode == 1
    assert [line.split()[1] for line in table.splitlines()[1:]] == [
        "default/two/app",
        "default/three/app",
    ]
    assert refused.splitlines() == [
        "refused",
        "  RunPodSandbox default/one: no such pod",
        "  StartContainer default/two/app: not today",
    ]


def line_of(program: Path, mark: str) -> int:
    lines = program.read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if mark in line)


# The line with the mistake has the comment.
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param(
            "    def create_container(self, pod, container):\n"
            '        return {}["x"]  # here\n',
            "KeyError: 'x'",
            id="in a handler",
        ),
        pytest.param(
            "    def create_container(self, pod, container):\n"
            '        return json.loads("{")  # here\n',
            "JSONDecodeError: Expecting property name",
            id="in a library that it calls",
        ),
        pytest.param(
            "    def create_container(self, pod, container):\n"
            '        return ContainerAdjustment().set_env("A", 7)  # here\n',
            "env: expected str, got int: 7",
            id="a wrong type",
        ),
        pytest.param(
            "    def stop_container(self, pod, container):\n        1 / 0  # here\n",
            "ZeroDivisionError: division by zero",
            id="in a handler whose errors a runtime only logs",
        ),
    ],
)
def test_a_mistake_in_a_handler_has_its_line(
    body: str, sentence: str, tmp_path: Path
) -> None:
    program = written(tmp_path, body)

    done = nri_resmgr("try", program, pods(tmp_path, "web"), "--stop")

    assert done.returncode == 1
    assert f"at={program}:{line_of(program, '# here')} " in done.stderr
    assert sentence in done.stdout.partition("refused\n")[2]
    assert "nri_resmgr/" not in done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("def f(:  # here\n", "SyntaxError: invalid syntax", id="syntax"),
        pytest.param("\nnothing  # here\n", "NameError: name 'nothing'", id="a name"),
        pytest.param(
            f'{HEAD}    def configure(self, _):\n        {{}}["x"]  # here\n'
            f"{GREETS}{TAIL}",
            "KeyError: 'x'",
            id="configure",
        ),
        pytest.param(
            f"{HEAD}    def create_container(self, pod): pass  # here\n{TAIL}",
            "create_container(pod) is called with (pod, container)",
            id="arguments",
        ),
        pytest.param(
            "from nri_resmgr.stub import Plugin\nplugin = Plugin()\n"
            "@plugin.handler  # here\ndef creat_container(pod, container): ...\n",
            "did you mean create_container?",
            id="a name of a handler",
        ),
    ],
)
def test_a_mistake_before_the_first_request_has_its_line(
    text: str, sentence: str, tmp_path: Path
) -> None:
    program = tmp_path / "hello.py"
    program.write_text(text)

    done = nri_resmgr("try", program, pods(tmp_path, "web"))

    number = line_of(program, "# here")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(rf'{program}(", line |:){number}\b', done.stderr)
    assert sentence in done.stderr
    assert "nri_resmgr/" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(
        f"nri-resmgr: {program} has ended with status [12] before it registered", last
    )


def test_a_program_without_serve_is_reported(tmp_path: Path) -> None:
    program = written(tmp_path, GREETS, tail="")

    done = nri_resmgr("try", program, pods(tmp_path, "web"))

    sentence = "has ended without registering: does it call serve()?"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"nri-resmgr: {program} {sentence}\n"


@pytest.mark.parametrize("hang", ["time.sleep(600)", "while True: pass"])
def test_a_handler_that_hangs_has_its_line(hang: str, tmp_path: Path) -> None:
    body = f"""\
    def create_container(self, pod, container):
        if pod.name == "two":
            {hang}  # here
        return ContainerAdjustment().set_env("POD", pod.name)
"""
    program = written(tmp_path, body)

    done = nri_resmgr("try", program, pods(tmp_path, "one", "two", "three"))

    assert done.returncode == 1
    assert f'"{program}", line {line_of(program, "# here")}, in' in done.stderr
    assert "nri_resmgr/" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"nri-resmgr: CreateContainer of default/two/app: {program} did not answer "
        "within 2 s; runtimes disconnect such a plugin"
    )
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == [
        "default/one/app"
    ]


def test_a_plugin_that_ends_is_reported(tmp_path: Path) -> None:
    body = "    def create_container(self, pod, container): os._exit(3)\n"
    program = written(tmp_path, body)

    done = nri_resmgr("try", program, pods(tmp_path, "web"))

    assert done.returncode == 1
    assert done.stderr == (
        f"nri-resmgr: CreateContainer of default/web/app: {program} "
        "ended with status 3\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("none.py", "PODS"), "no plugin 'none.py'", id="no program"),
        pytest.param(
            ("template", "none.yaml"), "none.yaml: no such file", id="no pods"
        ),
        pytest.param(("template", "STORY"), "a scenario is for", id="a scenario"),
        pytest.param(
            ("template", "PODS", "--config", "none.yaml"),
            "none.yaml: no such file",
            id="no configuration",
        ),
        pytest.param(
            ("template", "PODS", "--level", "0.2"),
            "'0.2': expected a release of NRI from 0.3 to 0.13",
            id="a level",
        ),
        pytest.param(
            ("template", "PODS", "--wait", "long"), "'long': expected 0", id="a time"
        ),
        pytest.param(
            ("resource-policy", "PODS"), "`nri-resmgr simulate` shows", id="the policy"
        ),
        pytest.param(
            ("template", "TWICE"), "default/web: two pods have this name", id="a name"
        ),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    story = tmp_path / "story.yaml"
    story.write_text("{machine: 1s2c, story: [{create: a, best-effort: 0}]}")
    twice = tmp_path / "twice.yaml"
    twice.write_text(pods(tmp_path, "web", "web").read_text())
    known = {"PODS": pods(tmp_path, "web"), "STORY": story, "TWICE": twice}

    done = nri_resmgr("try", *(known.get(word, word) for word in words))

    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in line
