"""``rocmend bench serve`` against a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bench.answering import serving

from .conftest import Done

Run = Callable[..., Done]


def test_two_servers_are_compared(installed: Run, tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "evidence.sqlite"))
    with serving() as (one, _), serving("garbage") as (other, _):
        urls = ("--url", f"good={one}", "--url", f"bad={other}")
        done = installed("bench", "serve", *urls, "--clients", "1,2", "--generate", "6", "--quick", "--json", *store)
    assert done.code == 1, done.err
    data = json.loads(done.out)["data"]
    assert [setting["id"] for setting in data["settings"]] == ["good", "bad"]
    verdicts = {(row["setting"]["id"], row["verdict"]) for row in data["results"]}
    assert verdicts == {("good", "pass"), ("bad", "wrong-output")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--url"),
        (("--url", "ftp://host"), "http://localhost:8080"),
        (("--url", "http://h", "--clients", "0"), "1,4,16"),
        (("--url", "a=http://h", "--url", "a=http://i"), "two servers are called 'a'"),
    ],
)
def test_what_cannot_be_asked_is_refused(rocmend: Run, words: tuple[str, ...], said: str) -> None:
    done = rocmend("bench", "serve", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
