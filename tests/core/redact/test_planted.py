"""Nothing of the table of planted strings is left, wherever they stand; everything of the other table is."""

from __future__ import annotations

import html as escapes
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rocmend.core.redact import Redactor
from rocmend.core.verdict import Verdict
from rocmend.report import html, junit, markdown, redacted
from rocmend.report.document import Card, Code, Document, Pairs, Section, Text, table

from .conftest import HOSTS, USERS, Planted, contexts, kept, left, planted

PLANTED = planted()
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "redaction.md"


def fresh() -> Redactor:
    return Redactor(hosts=HOSTS, users=USERS)


def test_the_tables_are_as_large_as_the_documentation_says() -> None:
    assert sum(len(row.secrets) for row in PLANTED) >= 280
    assert len(kept()) >= 150


def test_each_kind_is_in_the_documentation_and_no_other() -> None:
    told = [
        line.split("|")[1].strip() for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    assert set(told) - {"redacted", "kept"} == {row.kind for row in PLANTED} | {
        "versions and builds",
        "the GPU",
        "the log",
    }


@pytest.mark.parametrize("row", PLANTED, ids=lambda row: row.text[:40])
def test_gone_wherever_it_stands(row: Planted) -> None:
    for name, text in contexts(row.text).items():
        made = fresh().text(text)
        assert not left(row, made), name
        assert fresh().text(made) == made, name
        if name.startswith("json"):
            json.loads(made)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("rd.luks.uuid", "luks-9a9a9a9a-1212-3434-5656-787878787878", "9a9a9a9a"),
        ("root", "/dev/mapper/vg_home-root", "vg_home"),
        ("ip", "10.20.30.40::10.20.30.1:255.255.255.0:zbigbox:eth0", "zbigbox"),
        ("resume", "UUID=9a9a9a9a-1212-3434-5656-787878787878", "9a9a9a9a"),
        ("rd.md.uuid", "3a3a3a3a:4b4b4b4b:5c5c5c5c:6d6d6d6d", "4b4b4b4b"),
        ("nfsroot", "10.20.30.1:/srv/zbig,v3", "zbig"),
        ("cryptdevice", "UUID=9a9a9a9a-1212-3434-5656-787878787878:root", "9a9a9a9a"),
        ("BOOT_IMAGE", "/boot/0123456789abcdef0123456789abcdef/6.8.0/linux", "89abcdef"),
    ],
)
def test_a_parameter_of_the_kernel_is_gone_from_an_object(name: str, value: str, secret: str) -> None:
    """As ``kernel.params`` holds it: its name is a key, so that only the value's form speaks for it."""
    made = fresh().json({"kernel.params": {name: value, "quiet": None}})
    assert secret not in json.dumps(made)
    assert fresh().json(made) == made


@pytest.mark.parametrize("text", kept())
def test_kept_wherever_it_stands(text: str) -> None:
    for name, placed in contexts(text).items():
        assert fresh().text(placed) == placed, name


def whole() -> Document:
    """Return a document that holds every planted string, in each kind of block."""
    texts = [row.text for row in PLANTED]
    plain = tuple(Code(text) for text in texts)
    told = tuple(Text(text) for text in texts)
    pairs = Pairs(tuple((f"note {number}", text, text) for number, text in enumerate(texts)))
    grid = table(["fact", "why", "x"], [[str(number), text, text] for number, text in enumerate(texts)])
    cards = tuple(Card(text, blocks=(Code(text),), details=(Code(text),)) for text in texts)
    return Document("Title", "Summary", blocks=(Section("All", (*plain, *told, pairs, grid, *cards)),), footer="End.")


@pytest.mark.parametrize("render", [html.render, markdown.render])
def test_gone_from_a_document(render: Callable[[Document], str]) -> None:
    made = escapes.unescape(render(redacted.redacted(whole(), fresh())))
    assert [secret for row in PLANTED for secret in left(row, made)] == []
    assert "Redacted: " in made
    assert "secrets" in made
    open_ = escapes.unescape(render(redacted.redacted(whole(), None)))
    assert "Not redacted" in open_
    assert "hunter2" in open_


def test_gone_from_other_formats() -> None:
    rows = [row for row in PLANTED if row.kind != "networks, devices and clusters by name"]
    sarif = {"version": "2.1.0", "runs": [{"results": [{"message": {"text": row.text}} for row in rows]}]}
    logs = redacted.sarif(json.dumps(sarif), fresh())
    lines = redacted.json_lines("".join(json.dumps({"line": row.text}) + "\n" for row in rows), fresh())
    cases = [junit.Case("x", "y", 1.0, Verdict.CRASH, row.text, row.text) for row in rows]
    tests = redacted.junit(junit.Suite(tuple(cases), "rocmend probe"), fresh())
    for made in (logs, lines, escapes.unescape(tests)):
        assert [secret for row in rows for secret in left(row, made)] == []
    assert json.loads(logs)["runs"][0]["properties"]["redaction"].startswith("Redacted: ")
    assert "Redacted: " in tests
    assert "Not redacted" in redacted.junit(junit.Suite(tuple(cases), "x"), None)


class TestWhatANameSays:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("password", "hunter2"), ("api_key", "abc123"), ("HF_TOKEN", "whatever"), ("env.DB_PASS", "x y z")),
            *(("hostname", "workhorse9"), ("nodeName", "worker-3"), ("user", "carol"), ("serial", "PF3K9XZ2")),
            *(("OLLAMA_HOST", "10.1.2.3:11434"), ("dns", "1.1.1.1"), ("DISPLAY", "workhorse9:0")),
        ],
    )
    def test_hides_the_value(self, name: str, value: str) -> None:
        for made in (fresh().field(name, value), fresh().json({name: value})[name]):
            assert value not in made
            assert fresh().field(name, made) == made

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("version", "10.1.2.3"), ("driver_version", "10.0.0.104"), ("nvidia-cublas-cu12", "12.8.4.1")),
            *(
                ("cudnn", "10.3.1.4"),
                ("eos_token", "</s>"),
                ("max_token", "512"),
                ("PWD", "/opt/rocm"),
                ("user", "root"),
            ),
            *(("HSA_OVERRIDE_GFX_VERSION", "10.3.0.1"), ("host.kind", "container"), ("hostname", "localhost")),
        ],
    )
    def test_keeps_the_value(self, name: str, value: str) -> None:
        assert fresh().field(name, value) == value
        assert fresh().json({name: value}) == {name: value}

    def test_words_of_a_command_line(self) -> None:
        words = ["tool", "--password", "hunter2", "--max-tokens", "512", "--api-key", "abc", "-v"]
        expected = ["tool", "--password", "redacted", "--max-tokens", "512", "--api-key", "redacted", "-v"]
        assert fresh().json(words) == expected

    def test_pairs_of_name_and_value(self) -> None:
        made = fresh().json(
            [{"name": "DB_PASSWORD", "value": "hunter2"}, {"key": "torch.version", "value": "10.1.2.3"}]
        )
        assert made == [{"name": "DB_PASSWORD", "value": "redacted"}, {"key": "torch.version", "value": "10.1.2.3"}]


class TestFiles:
    @pytest.mark.parametrize(
        ("path", "data"),
        [
            ("/sys/class/dmi/id/product_serial", b"PF3K9XZ2\n"),
            ("/sys/class/dmi/id/board_asset_tag", b"ACME00417\n"),
            ("/sys/class/drm/card0/device/unique_id", b"3d4595974090853c\n"),
            ("/etc/machine-id", b"0123456789abcdef0123456789abcdef\n"),
            ("/etc/hostname", b"workhorse9\n"),
        ],
    )
    def test_that_hold_nothing_else(self, path: str, data: bytes) -> None:
        made = fresh().file(path, data)
        assert data.strip() not in made
        assert fresh().file(path, made) == made

    def test_a_monitors_edid_keeps_its_header_only(self) -> None:
        header = b"\x00\xff\xff\xff\xff\xff\xff\x00"
        made = fresh().file("/sys/class/drm/card0-DP-1/edid", header + b"\x10\xac\x55\x42" * 30)
        assert made == header + bytes(120)


secrets = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=24, max_size=40).map(
    "Zq{}".format
)
forms = st.sampled_from(
    [
        *(
            "--password {}",
            "--api-key={}",
            "DB_PASSWORD={}",
            "'token': '{}x1'",
            '"secret": "{}"',
            "Authorization: Bearer {}",
        ),
        *(
            "https://u:{}@example.com/",
            "https://example.com/?sig={}",
            "hf_{}",
            "ghp_{}",
            "sk-ant-{}",
            "xoxb-{}",
            "glpat-{}",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
            "/home/{}/x",
            "hostname: {}",
            "ssid={}",
            "npm_{}",
        ),
    ]
)
around = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(secrets, forms, around, around)
@example("a" * 24, "--password {}", "", "")
def test_a_planted_secret_never_survives_in_any_text(secret: str, form: str, before: str, after: str) -> None:
    assume(secret not in before + after)
    made = fresh().text(f"{before}\n{form.format(secret)} \n{after}")
    assert secret not in made


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | around,
        lambda inner: st.lists(inner) | st.dictionaries(around, inner),
        max_leaves=12,
    )
)
def test_any_json_value_is_redacted_to_json_and_stays(value: object) -> None:
    redactor = fresh()
    once = redactor.json(value)
    assert redactor.json(once) == once
    msgspec.json.decode(msgspec.json.encode(once))


@pytest.mark.slow
@given(
    st.from_regex(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", fullmatch=True),
    st.uuids(),
    st.ip_addresses(v=4),
    st.from_regex(r"(0x)?[0-9a-f]{16}", fullmatch=True),
)
def test_what_parses_still_does(mac: str, uuid: object, address: object, number: str) -> None:
    import ipaddress
    import re
    import uuid as uuids

    made = fresh().text(f"mac {mac}\nid {uuid}\naddress {address}\nunique_id {number}").splitlines()
    assert re.fullmatch(r"mac [0-9a-f]{2}(:[0-9a-f]{2}){5}", made[0])
    assert uuids.UUID(made[1].split()[1])
    assert ipaddress.ip_address(made[2].split()[1])
    assert int(made[3].split()[1], 16) >= 0
