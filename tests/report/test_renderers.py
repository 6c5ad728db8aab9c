from __future__ import annotations

import base64
import hashlib
import io
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import UsageError
from rocmend.core.records import Fact, Finding, Remedy, Severity, Source
from rocmend.report import envelope, html, markdown, sarif, terminal
from rocmend.report.columns import fold
from rocmend.report.document import (
    Card,
    Cell,
    Code,
    Document,
    Link,
    Links,
    Pairs,
    Section,
    Text,
    Tile,
    Tiles,
    Tone,
    table,
)
from rocmend.report.visible import as_markdown


def _printed(document: Document, width: int = 80, *, details: bool = False) -> str:
    stream = io.StringIO()
    terminal.render(document, stream, width=width, details=details)
    return stream.getvalue()


def test_terminal_fits_the_width(document: Document) -> None:
    for width in (50, 80, 110):
        lines = _printed(document, width, details=True).splitlines()
        assert max(map(len, lines)) <= width
        assert any("ERROR The save area is too small" in line for line in lines)


def test_terminal_keeps_details_for_those_who_ask(document: Document) -> None:
    assert "Issue 5724" not in _printed(document)
    assert "Issue 5724" in _printed(document, details=True)


def test_terminal_never_breaks_a_command_or_an_address() -> None:
    command = "pip install " + "x" * 120
    url = "https://example.org/" + "y" * 120
    text = _printed(Document("t", blocks=(Code(command), Links("Source", (Link("l", url),)))), 60)
    assert command in text
    assert url in text


def test_terminal_prints_square_brackets_as_they_are() -> None:
    text = _printed(Document("a [bold]b[/bold]", blocks=(Text("pip install rocmend[torch]"),)))
    assert "a [bold]b[/bold]" in text
    assert "rocmend[torch]" in text


def test_terminal_shows_long_keys_whole() -> None:
    key = 'modprobe.options["amdgpu.cwsr_enable"]'
    text = _printed(Document("t", blocks=(Section("s", (Pairs(((key, "not set", "/etc/modprobe.d"),)),)),)))
    assert text.splitlines()[3] == key
    assert text.splitlines()[4].split() == ["not", "set", "/etc/modprobe.d"]


_IDS = ("install-override-crosses-classes", "correctness-miopen-10-0-solvers-fail")


@pytest.mark.parametrize("width", [40, 60, 80, 110])
def test_terminal_never_breaks_a_word(width: int) -> None:
    sentence = "a sentence that takes more room than there is in a column of a table"
    rows = [["warning", sentence, name, "float32 bfloat16"] for name in _IDS]
    blocks = (
        table(["severity", "finding", "id", "dtypes"], rows),
        table(["id", "finding"], [[name, sentence] for name in _IDS]),
        Pairs(tuple((name, sentence, name) for name in _IDS)),
        Pairs(tuple((sentence, name, sentence) for name in _IDS)),
        Tiles(tuple(Tile(name, "Warning", f"{sentence} {name}") for name in _IDS)),
        Card(f"{sentence} {_IDS[0]}", Tone.WARNING, blocks=(Text(f"{sentence} {_IDS[1]}"),), ref=_IDS[0]),
    )
    for block in blocks:
        lines = _printed(Document("t", blocks=(block,)), width).splitlines()
        assert max(map(len, lines)) <= width
        words = " ".join(lines).split()
        assert all(any(name in word for word in words) for name in _IDS)
        assert {"sentence", "column"} <= set(words)


def test_terminal_shows_a_row_as_two_lines_or_as_a_block_where_it_does_not_fit() -> None:
    wide = table(["id", "what", "dtypes"], [["x" * 50, "cross-entropy", "float32 bfloat16"]])
    two = _printed(Document("t", blocks=(wide,)), 60).splitlines()
    assert two[5] == "x" * 50
    assert two[6].split() == ["cross-entropy", "float32", "bfloat16"]
    block = _printed(Document("t", blocks=(table(list("abcdefgh"), [["12345678"] * 8]),)), 40).splitlines()
    assert block[2:5] == ["a: 12345678", "  b: 12345678", "  c: 12345678"]
    figures = table(
        ["", "default", "hipblaslt", "another"],
        [["a product", "29.45 ±0.11", Cell("31.43 ±0.21", note="1.07x faster"), Cell("crash", Tone.ERROR)]],
    )
    assert _printed(Document("t", blocks=(figures,)), 50).splitlines()[2:] == [
        "a product",
        "  default:    29.45 ±0.11",
        "  hipblaslt:  31.43 ±0.21  1.07x faster",
        "  another:    crash",
    ]
    assert len(_printed(Document("t", blocks=(figures,)), 80).splitlines()) == 5  # a table, where it fits unbroken


def test_terminal_keeps_a_number_and_its_per_cent_sign_on_a_line() -> None:
    text = _printed(Document("t", "slower by 95 % on it", blocks=(Text("- slower by 95 % on it"),)), 40).splitlines()
    assert text[1] == "slower by 95 % on it"
    narrow = fold("slower by 95 % on it", 12)
    assert narrow == ["slower by", "95 % on it"]


def test_terminal_leaves_details_out_unless_asked() -> None:
    document = Document(
        "t", blocks=(Section("Figures", (Text("seen"),)), Section("Times", (Text("more"),), detail=True))
    )
    assert "Times" not in _printed(document)
    assert "more" in _printed(document, details=True)
    assert "more" in markdown.render(document)


def test_terminal_shows_the_lines_of_a_footer_as_lines() -> None:
    footer = "Kept; with times:\n`rocmend report x -o x.html`"
    assert _printed(Document("t", footer=footer)).splitlines()[-2:] == [
        "Kept; with times:",
        "rocmend report x -o x.html",
    ]


@pytest.mark.parametrize("width", [60, 74, 80])
def test_a_table_that_is_too_wide_begins_each_row_with_its_key(width: int) -> None:
    rows = [["error", "GPU hangs", "x" * 55], ["advice", "a sentence of the longest column " * 3, "y" * 10]]
    by_problem = _printed(Document("t", blocks=(table(["severity", "problem", "id"], rows, key=1),)), width)
    lines = by_problem.splitlines()
    assert lines[2] in {"problem", "problem: GPU hangs"}
    assert by_problem.index("GPU hangs") < by_problem.index("error") < by_problem.index("xxx")
    by_first = _printed(Document("t", blocks=(table(["id", "old", "new"], [["key", "b", "c" * 80]]),)), width)
    assert by_first.splitlines()[2] == "id: key"


def test_terminal_has_no_escapes_where_it_is_no_terminal(document: Document) -> None:
    assert "\x1b" not in _printed(document)


def test_markdown_escapes_pipes_in_cells(document: Document) -> None:
    text = markdown.render(document)
    assert "| gfx1010 | none \\| at all |" in text
    assert text.startswith("# Strix Halo\n")
    assert text.endswith("\n")


def test_markdown_fence_is_longer_than_any_inside() -> None:
    text = markdown.render(Document("t", blocks=(Code("```\ncode\n```"),)))
    assert "````\n```\ncode\n```\n````" in text


def test_html_is_self_contained_and_names_its_parts(document: Document) -> None:
    page = html.render(document)
    assert not re.search(r"<(img|iframe|object|embed)\b|<(script|link)\b[^>]*\s(src|href)=(?!\"data:,)", page)
    assert not re.search(r"\sstyle=|\son\w+=|unsafe-inline", page)
    for kind, text in re.findall(r"<(style|script)>(.*?)</\1>", page, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page
    assert 'id="cwsr-too-small"' in page
    assert '<a href="#findings">Findings</a>' in page
    assert "color-scheme: light dark" in page
    assert 'name="viewport"' in page


def test_ids_are_given_once_and_links_lead_somewhere() -> None:
    twice = (Card("a", ref="main"), Card("b", ref="same"), Section("Same", (Card("c", ref="same"),)))
    page = html.render(
        Document("t", blocks=(Tiles((Tile("l", "w", "t", ref="same"), Tile("l", "w", "t", ref="no"))), *twice))
    )
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {"main", "main-2", "same", "same-2", "same-3"} <= set(ids)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


@given(st.text())
def test_html_escapes_whatever_a_machine_says(hostile: str) -> None:
    marked = f"<img src=x onerror=alert(1)>{hostile}"
    blocks = (Text(marked), Code(marked), table([marked], [[marked]]), Section(marked), Card(marked, ref="r"))
    page = html.render(Document(marked, marked, blocks=blocks, footer=marked))
    assert "<img" not in page


def test_html_links_only_to_the_web() -> None:
    page = html.render(Document("t", blocks=(Links("Source", (Link("bad", "javascript:alert(1)"),)),)))
    assert "javascript:" not in page
    assert "bad" in page


def test_sarif_has_a_rule_for_each_entry_and_a_result_for_each_finding() -> None:
    fact = Fact("kernel.release", "6.14.0", "/proc/sys/kernel/osrelease")
    findings = [
        Finding(
            "entry-b",
            "B",
            Severity.WARNING,
            subject,
            "why",
            (fact,),
            (Remedy("do"),),
            (Source("s", "https://example.org"),),
        )
        for subject in ("gpu.0", "gpu.1")
    ] + [Finding("entry-a", "A", Severity.INFO)]
    log = msgspec.json.decode(sarif.render(findings, machine="box"))
    run = log["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["entry-a", "entry-b"]
    assert [(result["ruleId"], result["ruleIndex"], result["level"]) for result in run["results"]] == [
        ("entry-b", 1, "warning"),
        ("entry-b", 1, "warning"),
        ("entry-a", 0, "note"),
    ]
    assert len({result["partialFingerprints"]["rocmend/v1"] for result in run["results"]}) == 3
    assert "kernel.release = '6.14.0'" in run["results"][0]["message"]["text"]


@pytest.mark.parametrize(("code", "status"), [(0, "clean"), (1, "findings"), (2, "error")])
def test_envelope_has_exactly_the_promised_fields(code: int, status: str) -> None:
    decoded = msgspec.json.decode(envelope.to_json(envelope.Outcome("doctor", {"a": 1}, code)))
    assert decoded == {
        "schema_version": 1,
        "command": "doctor",
        "status": status,
        "exit_code": code,
        "redacted": False,
        "data": {"a": 1},
        "errors": [],
    }


def test_envelope_of_an_error_is_coded() -> None:
    error = UsageError("targets", "no such target", why="w", next_step="n")
    decoded = msgspec.json.decode(envelope.to_json(envelope.error_outcome("targets", error)))
    assert decoded["exit_code"] == 2
    assert decoded["errors"] == [
        {"code": "usage", "subject": "targets", "message": "no such target", "why": "w", "next_step": "n"}
    ]


def test_markdown_keeps_what_looks_like_a_tag() -> None:
    document = Document("needs <gpu.size> bytes", blocks=(table(["a"], [["<b> | c"]]),))
    text = markdown.render(document)
    assert text.startswith("# needs \\<gpu.size> bytes\n")
    assert "\\<b> \\| c" in text


@given(text=st.text(alphabet="ab_*[]()<>!\\|~ #&;1.-", max_size=40))
def test_plain_text_is_shown_as_it_is_by_markdown(text: str) -> None:
    from markdown_it import MarkdownIt

    inline = MarkdownIt("commonmark", {"html": False}).parseInline(as_markdown(f"x{text}x"))[0].children or []
    assert "".join(one.content for one in inline) == f"x{text}x"
    assert {one.type for one in inline} <= {"text", "text_special"}


def test_marks_in_findings_are_no_marks() -> None:
    assert as_markdown("`a__b` __CUDA_ARCH__ is 2 * 3") == r"`a__b` \_\_CUDA_ARCH\_\_ is 2 \* 3"
    shown = Document("t", blocks=(Text(as_markdown("__CUDA_ARCH__ and *p in `x`")),))
    out = io.StringIO()
    terminal.render(shown, out, width=80)
    assert "__CUDA_ARCH__ and *p in x" in out.getvalue()
    assert "__CUDA_ARCH__ and *p in <code>x</code>" in html.render(shown)


def test_control_characters_do_not_reach_the_terminal() -> None:
    hostile = "a\x1b[31mb\x9b2J\u202ec\td\r\ne"
    out = io.StringIO()
    terminal.render(Document(hostile, blocks=(Code(hostile), table(["x"], [[hostile]]))), out, width=80, details=True)
    assert not set("\x1b\x9b\u202e\r") & set(out.getvalue())
    assert "a\\x1b[31mb\\x9b2J\\u202ec" in out.getvalue()
