"""A server is measured as its replies come; what it does wrong is said."""

from __future__ import annotations

import pytest
from tests.bench.answering import EACH_S, FIRST_S, TOKENS, serving

from rocmend.bench.measure import Effort
from rocmend.bench.run import run_suite
from rocmend.bench.serving import Prompts, Server, load, wrong_text
from rocmend.bench.suites.serve import Requests, Serve
from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict

EFFORT = Effort(block_s=0.0, least_blocks=3, most_blocks=3)


def test_figures_follow_from_when_tokens_come() -> None:
    with serving() as (url, asked):
        suite = Serve({"one": Server(url)}, Requests(prompt=40, generate=TOKENS), (1, 3))
        run = run_suite(suite, effort=EFFORT)
    by = {result.case.id.split("/", 2)[2]: result for result in run.results}
    assert run.clean
    assert (by["clients-1/first"].figure or 0) >= FIRST_S * 1e3
    assert (by["clients-1/each"].figure or 0) <= 1 / EACH_S
    # three clients at once are answered at once here, so together they get more
    assert (by["clients-3/all"].figure or 0) > 1.5 * (by["clients-1/all"].figure or 0)
    assert by["clients-3/first"].prepared.detail["prompt_tokens"] == 40
    assert asked[0]["model"] == "some-model"
    texts = [one["messages"][0]["content"] for one in asked]
    assert len(set(texts)) == len(texts)
    # all figures of a number of clients are of the same requests: three blocks of two rounds, and a look at a reply
    assert len(asked) == 3 * 2 * (1 + 3) + 6


def test_completions_and_a_server_that_does_not_count() -> None:
    with serving("no-usage") as (url, asked):
        found = load(Server(f"{url}/v1/", chat=False), {"model": "m"}, Prompts(40), clients=2, rounds=1)
    assert {(reply.tokens, reply.counted) for reply in found.replies} == {(TOKENS, False)}
    assert all("prompt" in one for one in asked)


@pytest.mark.parametrize(
    ("how", "verdict", "said"),
    [
        ("refuses", Verdict.INFRA, "answered 503: the model is loading"),
        ("no-json", Verdict.INFRA, "no JSON"),
        ("breaks", Verdict.INFRA, "broke off in the middle of a reply"),
        ("garbage", Verdict.WRONG_OUTPUT, "'@' 48 times"),
    ],
)
def test_what_a_server_does_wrong_is_said(how: str, verdict: Verdict, said: str) -> None:
    with serving(how) as (url, _):
        run = run_suite(Serve({"one": Server(url)}, Requests(prompt=40), (1,)), effort=EFFORT)
    assert {result.verdict for result in run.results} == {verdict}
    assert said in run.results[0].reason
    assert all(result.figure is None for result in run.results)


def test_a_reply_may_end_with_its_reason_alone() -> None:
    with serving("no-done") as (url, _):
        found = load(Server(url), {"model": "m"}, Prompts(40), clients=1, rounds=1)
    assert found.tokens == TOKENS


def test_a_reply_that_breaks_off_under_load_leaves_no_figure() -> None:
    with serving("breaks-later") as (url, _):
        run = run_suite(Serve({"one": Server(url)}, Requests(prompt=40), (1,)), effort=EFFORT)
    assert {result.verdict for result in run.results} == {Verdict.INFRA}
    assert all(result.figure is None for result in run.results)
    assert not run.clean


def test_nobody_there_is_said() -> None:
    with serving() as (url, _):
        gone = url
    run = run_suite(Serve({"one": Server(gone)}, Requests(), (1,)), effort=EFFORT)
    assert "can't be reached" in run.results[0].reason


@pytest.mark.parametrize("url", ["", "ftp://host", "http://", "http://host:port", "file:///etc/passwd"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        Server(url)


def test_addresses_may_leave_things_out() -> None:
    assert (Server("localhost:8080").path, Server("http://h/api").path) == ("/v1", "/api/v1")


def test_text_is_garbage_or_not() -> None:
    assert wrong_text("!" * 40)
    assert wrong_text("the " * 40)
    assert not wrong_text("the the end")
    assert not wrong_text("12 3")
