"""The parts that need no container, host or cluster: what cuts, joins, parses and judges."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.runner.executor import Exit, NotStartedError
from rocmend.runner.remote.container import exit_of, kernel_says_oom, run_arguments
from rocmend.runner.remote.engine import Image, State, parse_image, parse_state, repository
from rocmend.runner.remote.far_side import loader, run_script
from rocmend.runner.remote.far_words import FarSampler, Marks, parse_sample
from rocmend.runner.remote.owner import Owner, is_gone, ourselves, parse_owner
from rocmend.runner.remote.pod import job_failure, view_of
from rocmend.runner.remote.podlog import PodLog
from rocmend.runner.remote.program import slug
from rocmend.runner.remote.ssh import cause_of, ssh_argv
from rocmend.runner.spec import AttemptSpec, Command, Container, Limits, Mount, Ssh

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("State", "Id", "RepoDigests", "Config", "Env", "metadata", "status", "conditions", "containerStatuses")
            )
            | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


class TestMarks:
    def feed(self, stream: bytes, cuts: list[int]) -> tuple[bytes, list[str]]:
        said: list[str] = []
        marks = Marks("word", said.append)
        edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
        out = b"".join(marks(stream[a:b]) for a, b in itertools.pairwise(edges) if b > a)
        return out + marks(b""), said

    @given(st.lists(st.binary() | st.just(b"\x1ewor"), min_size=1, max_size=6), st.lists(st.integers(0), max_size=8))
    def test_wherever_it_is_cut_the_command_s_bytes_come_through(self, parts: list[bytes], cuts: list[int]) -> None:
        parts = [part.replace(b"\x1eword ", b"") for part in parts]
        stream = b"greeting\x1eword begin\n" + b"\x1eword sample 1\n".join(parts)
        out, said = self.feed(stream, cuts)
        joined = b"".join(parts)
        if b"\x1eword " not in joined:
            assert out == joined
            assert said == ["begin", *["sample 1"] * (len(parts) - 1)]

    def test_what_is_held_is_bounded(self) -> None:
        marks = Marks("word", lambda _: None)
        marks(b"\x1eword begin\n\x1eword ")
        for _ in range(64):
            marks(b"x" * 10_000)
        assert len(marks._held) < 100_000


class TestPodLog:
    @given(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from([b"", b"a", b"b\r"])), max_size=40),
        st.lists(st.integers(0, 400), max_size=5),
    )
    def test_cuts_neither_lose_nor_double(self, entries: list[tuple[int, int, bytes]], cuts: list[int]) -> None:
        entries = sorted(entries, key=lambda entry: entry[:2])
        lines = [(f"2026-01-01T00:00:{s:02d}.{n:09d}Z", text + b"\n") for s, n, text in entries]
        log, out = PodLog(), b""
        for cut in [*cuts, None]:
            since = log.begin().rstrip("Z")
            stream = b"".join(stamp.encode() + b" " + text for stamp, text in lines if stamp[:19] >= since)
            out += log.feed(stream[:cut])
        assert out + log.end() == b"".join(text for _, text in lines)

    def test_times_with_an_offset_are_asked_for_in_utc(self) -> None:
        log = PodLog()
        assert log.feed(b"2026-01-01T01:00:00.5+02:00 a\n2025-12-31T23:00:00.5Z a\n") == b"a\na\n"
        assert log.begin() == "2025-12-31T23:00:00Z"

    @given(st.lists(st.binary(max_size=60), max_size=8))
    def test_any_bytes_are_taken(self, parts: list[bytes]) -> None:
        log = PodLog()
        for part in parts:
            log.feed(part)
            log.begin()
        log.end()

    def test_memory_is_bounded(self) -> None:
        log = PodLog()
        for second in range(3600):
            log.feed(f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z x\n".encode())
        assert len(log._recent) <= 3
        log.feed(b"y" * 5_000_000)
        assert len(log._held) <= 1 << 20


@given(JSON)
def test_odd_answers_are_refused_and_crash_nothing(value: Any) -> None:
    for candidate in (value, [value]):
        parse_state(candidate)
        parse_image(candidate, "name")
    if isinstance(value, dict):
        view_of(value, "attempt")
        job_failure(value)


@given(st.text())
def test_odd_samples_and_owners_crash_nothing(text: str) -> None:
    parse_sample(text)
    parse_owner(text)
    FarSampler().sample(text)


def test_a_far_sample_names_the_process_that_works() -> None:
    sampler = FarSampler()
    sampler.host("100 4096")
    first = sampler.sample("10.00 5:S:100:10:1:0:do_wait 6:R:50:20:4:9000000000:0")
    assert first is not None
    assert first.cpu_rate is None
    second = sampler.sample("12.00 5:S:100:10:1:0:do_wait 6:D:250:20:4:10000000000:amdgpu_fence_wait")
    assert second is not None
    assert (second.cpu_rate, second.state, second.wchan) == (1.0, "D", "amdgpu_fence_wait")
    assert second.cpu_wait_rate == 0.5
    assert (second.rss_bytes, second.threads, second.processes) == (30 * 4096, 5, 2)


@pytest.mark.parametrize(
    ("state", "code", "said", "expected"),
    [
        (State(False, True, 0, 3, False), 3, "", Exit(code=3)),
        (State(False, True, 0, 137, True), 137, "", Exit(code=137, oom_killed=True)),
        (State(False, True, 0, 127, False), 127, "", Exit(code=127)),
    ],
)
def test_what_a_container_s_end_means(state: State, code: int, said: str, expected: Exit) -> None:
    assert exit_of(state, "prog", code, said) == expected


@pytest.mark.parametrize(
    ("state", "code", "said", "words"),
    [
        (None, 125, "Error: bad flag", "did not start the container: Error: bad flag"),
        (State(False, False, 0, 0, False), 127, "", "no program 'prog'"),
        (State(False, False, 0, 0, False, "denied"), 126, "", "cannot be executed: denied"),
        (State(True, True, 7, 0, False), -9, "", "client exited while"),
        (State(False, True, 0, 1, False), 1, "ERROR (catatonit:6): failed to exec pid1: No such file", "no program"),
        (State(False, True, 0, 1, False), 1, "[FATAL tini (7)] exec prog failed: No such file", "no program"),
        (State(False, True, 0, 1, False), 1, "[FATAL tini (7)] exec prog failed: Permission denied", "cannot be exec"),
    ],
)
def test_what_never_ran_is_infra(state: State | None, code: int, said: str, words: str) -> None:
    assert words in exit_of(state, "prog", code, said).infra


def test_what_a_pod_writes_about_its_end_is_short_and_commands_no_terminal() -> None:
    ended = {"reason": "StartError", "exitCode": 128, "message": "\x1b]0;x\x07" + "y" * 5000}
    status = {"phase": "Failed", "containerStatuses": [{"name": "attempt", "state": {"terminated": ended}}]}
    end = view_of({"status": status}, "attempt").exit
    assert end is not None
    assert "did not run: StartError (\\x1b]0;x\\x07yyy" in end.infra
    assert len(end.infra) < 1100


def test_arguments_for_an_amd_gpu() -> None:
    where = Container(
        "rocm",
        devices=("/dev/kfd", "/dev/dri"),
        mounts=(Mount("/models", "/models", read_only=True), Mount("/out", "/out")),
        groups=("keep-groups",),
        network="none",
        user="1000:1000",
        extra_args=("--ipc", "host"),
    )
    spec = AttemptSpec(
        "run",
        Command(("prog", "-x"), cwd="/out"),
        env={"A": "1", "B": None, "C": None},
        limits=Limits(memory_bytes=1000),
    )
    image = Image("sha256:abc", "sha256:def", frozenset({"B"}))
    arguments = run_arguments(spec, where, image, {"rocmend.attempt": "id"}, "name")
    line = " ".join(arguments)
    for part in (
        "run --name name --pull never --log-driver none --entrypoint prog --label rocmend.attempt=id",
        "--device /dev/kfd --device /dev/dri",
        "--volume /models:/models:ro --volume /out:/out",
        "--group-add keep-groups",
        "--memory 1000 --memory-swap 1000",
        "--user 1000:1000",
        "--env A=1 --unsetenv=B",
        "--workdir /out",
    ):
        assert part in line
    assert "C" not in arguments
    assert arguments[-4:] == ["--ipc", "host", "sha256:abc", "-x"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "a"),
        ("host:5000/a/b:tag", "host:5000/a/b"),
        ("host:5000/a@sha256:12", "host:5000/a"),
        ("a/b:tag@sha256:12", "a/b"),
    ],
)
def test_an_image_s_name_without_tag(name: str, expected: str) -> None:
    assert repository(name) == expected


def test_the_digest_is_that_of_the_repository_asked_for() -> None:
    value = [{"Id": "sha256:1", "RepoDigests": ["other/a@sha256:2", "docker.io/library/b@sha256:3"]}]
    image = parse_image(value, "b:latest")
    assert image is not None
    assert image.digest == "sha256:3"
    built_here = parse_image([{"Id": "1", "RepoDigests": None}], "b")
    assert built_here is not None
    assert built_here.digest == built_here.id == "sha256:1"


def test_an_owner_is_gone_only_where_that_can_be_known() -> None:
    here = ourselves()
    assert parse_owner(here.text()) == here
    assert not is_gone(here, here)
    changed = msgspec.structs.replace
    assert is_gone(changed(here, began=here.began + 1), here)
    assert is_gone(changed(here, boot="other"), here)
    assert not is_gone(changed(here, host="other", boot="other"), here)
    assert not is_gone(changed(here, namespace=1, pid=1 << 30), here)
    assert parse_owner("h/b/1/x/3") is None
    assert isinstance(here, Owner)


def test_the_kernel_log_names_a_container(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text("6,1,1,-;oom-kill:constraint=MEMCG,task_memcg=/libpod-abc123,task=sh\n")
    assert kernel_says_oom("abc123", log) is True
    assert kernel_says_oom("def456", log) is False
    assert kernel_says_oom("abc123", tmp_path / "none") is None


class TestSsh:
    def test_defaults_can_be_changed(self) -> None:
        argv = ssh_argv(Ssh("host", port=22, user="me", options={"ConnectTimeout": "3"}), "/log", "true")
        assert "ConnectTimeout=3" in argv
        assert "BatchMode=yes" in argv
        assert argv[-3:] == ["--", "host", "true"]

    def test_a_host_that_looks_like_an_option_is_refused(self) -> None:
        with pytest.raises(NotStartedError, match="expected a host"):
            ssh_argv(Ssh("-oProxyCommand=x"), "/log", "true")

    @pytest.mark.parametrize("name", ["A B", "1A", "A;id", "A=B", "$(id)"])
    def test_variables_that_a_shell_cannot_set_are_refused(self, name: str) -> None:
        with pytest.raises(NotStartedError):
            run_script(argv=("true",), env={name: "1"}, cwd="", stdin=b"", attempt="a", word="w")

    def test_the_loader_means_the_same_to_every_shell(self) -> None:
        assert loader(b"12345").count("'") == 2
        assert not set(loader(b"x")) & set("!`\n\\")

    def test_an_unknown_message_is_handed_on(self) -> None:
        assert cause_of("ssh: something new") == "the client said: ssh: something new"
        assert cause_of("") == "the client said nothing"


def test_slugs_are_names_of_hosts() -> None:
    assert slug("Load it! (2)") == "load-it-2"
    assert slug("…") == "attempt"
    assert len(slug("x" * 99)) == 30
    assert os.fspath(slug("a-" * 30))[-1] != "-"
