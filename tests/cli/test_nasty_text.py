"""No text of a stranger steers the terminal that it is shown on, or acts on a page that it is put into."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.report import markdown
from rocmend.report.document import Card, Code, Document, Link, Links, Pairs, Section, Text, table
from rocmend.report.visible import as_code, as_markdown, harmless
from rocmend.store.store import Store

NASTY = (
    "\x1b[31mred\x1b]0;title\x07 \x9b2J\x85 over\rwritten \u202egnp.exe\u202c \u2066i\u2069 z\u200bw\ufeff \U000e0041 "
    "<script>alert(1)</script> [x](javascript:alert(1)) ![p](http://e.vil/p.png) | ``` ` ~~~ <b>"
)
EXAMPLES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "machines"
_OURS = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[K")
"""Rich's colours, and our line of progress."""

_STEERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_RUN = """
import json, sys
from rocmend.cli.main import main
for number, arguments in enumerate(json.loads(sys.argv[1])):
    print(f"<<<{number}>>>", flush=True)
    try:
        main(arguments)
    except SystemExit as stop:
        print(f"<<<exit {stop.code}>>>", flush=True)
"""


def toml(text: str) -> str:
    plain = "".join(sign if " " <= sign <= "~" and sign not in '"\\\\' else f"\\U{ord(sign):08x}" for sign in text)
    return f'"{plain}"'


def on_terminal(commands: Sequence[Sequence[str]], home: Path) -> list[str]:
    """Return what each command prints on a terminal, both streams together."""
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "ROCMEND_HOME": str(home)}
    child = subprocess.Popen(
        [sys.executable, "-c", _RUN, json.dumps(commands)],
        stdin=other,
        stdout=other,
        stderr=other,
        env=environment,
        start_new_session=True,
    )
    os.close(other)
    said, end = b"", time.monotonic() + 120
    while time.monotonic() < end:
        if select.select([main], [], [], 0.2)[0]:
            try:
                block = os.read(main, 1 << 16)
            except OSError:  # the child closed the terminal
                break
            said += block
        elif child.poll() is not None:
            break
    child.kill()
    child.wait()
    os.close(main)
    parts = re.split(r"<<<\d+>>>", said.decode("utf-8", "backslashreplace").replace("\r\n", "\n"))[1:]
    assert len(parts) == len(commands), said[-2000:]
    return parts


def steering(text: str) -> list[str]:
    return [
        repr(text[max(0, found.start() - 30) : found.end() + 10]) for found in _STEERS.finditer(_OURS.sub("", text))
    ]


def acts(text: str) -> list[str]:
    """What a page made of Markdown by the most trusting renderer would do."""
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return re.findall(r"<script|<b>|<img[^>]*>|href=\"javascript[^\"]*", page)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a capture, a store, a project, a wheel and knowledge, each with the string in every field."""
    folder = tmp_path_factory.mktemp("planted")
    capture = folder / "capture"
    shutil.copytree(EXAMPLES / "strix-halo", capture)
    texts = {"product_name", "sys_vendor", "bios_version", "osrelease", "cmdline", "version", "os-release", "modules"}
    for path in (capture / "root").rglob("*"):
        if path.is_file() and path.name in texts:
            path.write_text(path.read_text().rstrip("\n") + " " + NASTY + "\n")
    for path in [path for path in (capture / "root/sys/module").rglob("*") if path.is_file()]:
        path.write_text(NASTY)
    environ = json.loads((capture / "environ.json").read_text())
    (capture / "environ.json").write_text(
        json.dumps({**environ, "PYTORCH_ALLOC_CONF": NASTY, "HIP_VISIBLE_DEVICES": NASTY})
    )
    project = folder / "project"
    project.mkdir()
    name = NASTY.replace("/", ":")[:200]
    (project / f"{name}.cu").write_text(
        f"#include <cuda_runtime.h>\n// {NASTY}\n__global__ void k() {{ __syncwarp(); }}\n"
    )
    (project / f"{name}.py").write_text(f"import torch\nx = '{name}'\ntorch.backends.cuda.matmul.allow_tf32 = True\n")
    (folder / f"{name}.hsaco").write_bytes(b"\x7fELF\x02\x01\x01\x40" + bytes(200))
    kb = folder / "kb"
    kb.mkdir()
    (kb / "bad.md").write_text(f"+++\ntitle = {json.dumps(NASTY)}\nwrong = 1\n+++\n{NASTY}\n")
    shell = "printf '%s\\n' " + shlex.quote(NASTY)
    (folder / "own.toml").write_text(
        f"[experiment]\nid = 'own'\ntitle = {toml(NASTY)}\nquestion = {toml(NASTY)}\n"
        f"background = {toml(NASTY)}\ncommand = ['sh', '-c', {toml(shell)}]\n"
        "[where]\nkind = 'local'\n"
        "[[factor]]\nname = 'f'\nkind = 'env'\nvariable = 'F'\nvalues = ['unset', '0']\nbaseline = 'unset'\n"
        f"[[strategy]]\nid = 's'\nhypothesis = {toml(NASTY)}\nsets = {{ f = '0' }}\n"
        "[oracle]\nkind = 'output-matches'\npattern = 'no such'\nabsent = 'red'\n"
    )
    with Store.open(folder / "store") as store:
        evidence = Evidence(
            kind="probe",
            subject=NASTY,
            identity="f00d",
            verdict=Verdict.WRONG_OUTPUT,
            reason=NASTY,
            started_at="2026-03-01T10:20:30.456Z",
            time_ms=1.0,
            gfx_target=NASTY,
            settings={NASTY: NASTY},
            detail={NASTY: NASTY},
            group=NASTY,
        )
        store.add(evidence, artifacts={"output.log": (NASTY + "\n").encode()})
    return folder


def oldest(store: Store) -> str:
    """Return the record that was planted: ids sort by time, and the commands that are tried add others."""
    return min(one.id for one in store.query())


def commands(planted: Path) -> list[list[str]]:
    capture, store = str(planted / "capture"), ["--store", str(planted / "store")]
    hsaco = str(next(planted.glob("*.hsaco")))
    project, experiment = str(planted / "project"), str(planted / "own.toml")
    with Store.open(planted / "store") as opened:
        record = oldest(opened)
    both: list[list[str]] = [
        ["doctor", "--machine", capture],
        ["machine", "show", "--machine", capture],
        ["wheel", "inspect", hsaco, "--target", "gfx1100"],
        ["store", "ls", *store],
        ["store", "ls", "--groups", *store],
        ["store", "show", record, *store],
        ["port", "run", project],
        ["lab", "plan", experiment],
        ["kb", "lint", "--entries", str(planted / "kb")],
    ]
    single = [
        ["doctor", "--machine", capture, "--format", "sarif"],
        ["doctor", "--machine", capture, "--json"],
        ["port", "run", project, "--format", "sarif"],
        ["port", "run", project, "--diff"],
        ["env", "--for", "pytorch", "--machine", capture],
        ["store", "show", record, "--artifact", "output.log", *store],
        ["store", "show", record, "--json", *store],
        ["lab", "run", experiment, *store],
        ["lab", "report", experiment, *store],
        ["lab", "report", experiment, "--format", "md", *store],
        ["lab", "report", experiment, "--format", "html", *store],
        ["wheel", "inspect", NASTY],
        ["targets", NASTY],
        ["store", "show", NASTY, *store],
        [NASTY],
        ["doctor", f"--{NASTY}"],
    ]
    return [*both, *([*one, "--format", "md"] for one in both), *single]


@pytest.mark.slow
def test_no_command_lets_a_stranger_steer_the_terminal(planted: Path) -> None:
    given = commands(planted)
    said = on_terminal(given, planted / "home")
    for arguments, text in zip(given, said, strict=True):
        shown = " ".join(arguments[:3])
        assert "Traceback" not in text, (shown, text[-1500:])
        assert steering(text) == [], (shown, steering(text)[:3])
        if "md" in arguments:
            page = re.sub(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)", "", text)  # without the line of progress
            assert acts(page) == [], (shown, acts(page))
        if "html" in arguments:
            assert "<script>alert" not in text
            assert "javascript:alert" not in re.sub(r">[^<]*", ">", text)
    reached = [arguments for arguments, text in zip(given, said, strict=True) if "2J" in text or "script" in text]
    assert len(reached) > len(given) * 0.6, "the string is in what most commands show"


def test_an_artifact_is_as_it_is_in_a_pipe_and_on_request(planted: Path) -> None:
    store = ["--store", str(planted / "store")]
    with Store.open(planted / "store") as opened:
        record = oldest(opened)
    command = ["store", "show", record, "--artifact", "output.log", *store]
    piped = subprocess.run([sys.executable, "-m", "rocmend", *command], capture_output=True, check=True)
    assert piped.stdout == (NASTY + "\n").encode()
    shown, raw = on_terminal([command, [*command, "--raw"]], planted / "home")
    assert r"\x1b[31mred" in shown
    assert "\x1b[31mred\x1b]0;title\x07" in raw


@pytest.mark.parametrize("where", ["title", "text", "code", "pairs", "table", "links", "card", "section", "footer"])
def test_markdown_acts_on_nothing_in_any_block(where: str) -> None:
    made: dict[str, Callable[[], Document]] = {
        "title": lambda: Document(NASTY, NASTY),
        "text": lambda: Document("t", blocks=(Text(NASTY), Text(as_markdown(NASTY)), Text(f"see {as_code(NASTY)}"))),
        "code": lambda: Document("t", blocks=(Code(NASTY), Code(f"```\n{NASTY}"))),
        "pairs": lambda: Document("t", blocks=(Pairs(((NASTY, NASTY, NASTY),)),)),
        "table": lambda: Document("t", blocks=(table([NASTY], [[NASTY]], NASTY),)),
        "links": lambda: Document("t", blocks=(Links(NASTY, (Link(NASTY, "javascript:alert(1)"), Link("", NASTY))),)),
        "card": lambda: Document("t", blocks=(Card(NASTY, label=NASTY, ref=NASTY, blocks=(Text(NASTY),)),)),
        "section": lambda: Document("t", blocks=(Section(NASTY, (Text(NASTY),)),)),
        "footer": lambda: Document("t", footer=NASTY),
    }
    text = markdown.render(made[where]())
    assert acts(text) == []
    assert not _STEERS.search(text)


def test_harmless_leaves_our_own_markdown() -> None:
    own = "See [docs](https://example.org), `a <b>`, <https://example.org> and\n\n```\n<script>\n```\n\n- **x**: y"
    assert harmless(own) == own
