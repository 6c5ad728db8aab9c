"""What a run is denied and given back, and that a secret stands nowhere: with a made-up engine and client."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.verdict import Verdict
from rocmend.runner.executor import NotStartedError
from rocmend.runner.journal import Journal
from rocmend.runner.remote.confine import Effect, rules_of
from rocmend.runner.remote.container import run_arguments
from rocmend.runner.remote.container_rules import OPTIONS, EngineFacts, container_rules, shortcomings
from rocmend.runner.remote.engine import Image
from rocmend.runner.remote.ssh import settings_of, ssh_argv
from rocmend.runner.remote.ssh_rules import warnings_of
from rocmend.runner.run import run_attempt
from rocmend.runner.secret import Scrubber, is_hidden, with_secrets, without_secret
from rocmend.runner.spec import AttemptSpec, Command, Container, Limits, Mount, PythonCall, Ssh

SECRET = "hf_notARealTokenButAsLongAsOne42"  # noqa: S105  made up
IMAGE = Image("sha256:abc", "sha256:def")


def arguments(where: Container, engine: EngineFacts | None = None, **changes: Any) -> list[str]:
    spec = msgspec.structs.replace(AttemptSpec("run", Command(("prog",)), where=where), **changes)
    return run_arguments(spec, where, IMAGE, {}, "name", engine=engine)


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


class TestContainers:
    def test_a_run_is_denied_all_that_computing_does_not_need(self) -> None:
        line = " ".join(arguments(Container("image")))
        for part in (
            "--cap-drop all",
            "--security-opt no-new-privileges",
            "--pids-limit 16384",
            "--network none",
            "--ipc private --shm-size 8589934592",
            "--read-only --tmpfs /tmp:rw,exec,nosuid,nodev,size=8589934592,mode=1777",
        ):
            assert part in line
        for part in ("seccomp", "--cap-add", "--privileged", "host"):
            assert part not in line

    def test_only_a_folder_of_the_runs_own_gets_an_selinux_label(self) -> None:
        mounts = (Mount("/a", "/a"), Mount("/b", "/b", read_only=True), Mount("/own", "/own", relabel=True))
        line = arguments(Container("image", mounts=mounts))
        volumes = [line[at + 1] for at, word in enumerate(line) if word == "--volume"]
        assert volumes == ["/a:/a", "/b:/b:ro", "/own:/own:Z"]

    def test_the_plan_shows_what_runs(self) -> None:
        where = Container(
            "image",
            devices=("/dev/kfd", "/dev/fuse"),
            mounts=(Mount("/a", "/b"),),
            network="bridge",
            user="7:7",
            options=("ptrace",),
            extra_args=("--hostname", "x"),
        )
        line = " ".join(arguments(where))
        rules = rules_of(where)
        assert all(rule.text in line and rule.reason for rule in rules)
        asked = {rule.what for rule in rules if rule.effect is Effect.ASKED}
        assert asked == {"network", "device", "mount", "user", "ptrace", "extra_args"}

    @pytest.mark.parametrize("name", OPTIONS)
    def test_what_is_asked_for_by_name_is_given_and_no_more(self, name: str) -> None:
        plain, given = arguments(Container("image")), arguments(Container("image", options=(name,)))
        assert " ".join(OPTIONS[name].arguments) in " ".join(given)
        assert set(given) - set(plain) <= set(OPTIONS[name].arguments)
        taken = set(plain) - set(given)
        assert bool(taken) is bool(OPTIONS[name].instead_of)
        assert "--cap-drop" in given

    def test_an_option_that_there_is_none_is_refused(self) -> None:
        with pytest.raises(NotStartedError, match=r"ptrace, .* got 'root'"):
            rules_of(Container("image", options=("root",)))

    def test_of_flags_that_exclude_each_other_the_experiment_s_own_stands(self) -> None:
        line = arguments(Container("image", extra_args=("--ipc=host", "--read-only=false", "--network", "host")))
        assert [part for part in line if part.startswith(("--ipc", "--shm", "--read-only", "--network"))] == [
            "--ipc=host",
            "--read-only=false",
            "--network",
        ]

    def test_a_gpu_is_given_by_its_render_nodes_and_their_owners(self, tmp_path: Path) -> None:
        """A second GPU of another maker, and the node of the display, stay outside."""
        (tmp_path / "dev/dri").mkdir(parents=True)
        gid = 4242 if os.geteuid() == 0 else os.getegid()
        for name, vendor in (
            ("kfd", ""),
            ("dri/renderD128", "0x1002"),
            ("dri/renderD129", "0x8086"),
            ("dri/card0", ""),
        ):
            node = tmp_path / "dev" / name
            node.touch()
            os.chown(node, -1, gid)
            node.chmod(0o660)
            if vendor:
                (tmp_path / f"sys/class/drm/{node.name}/device").mkdir(parents=True)
                (tmp_path / f"sys/class/drm/{node.name}/device/vendor").write_text(vendor + "\n")
        where = Container("image", devices=("/dev/kfd", "/dev/dri"))

        def given(engine: EngineFacts) -> list[tuple[str, ...]]:
            rules = container_rules(where, engine, root=tmp_path)
            return [rule.arguments for rule in rules if rule.effect is Effect.GIVEN]

        devices = [("--device", "/dev/kfd"), ("--device", "/dev/dri/renderD128")]
        assert given(EngineFacts()) == [*devices, ("--group-add", str(gid))]
        assert given(EngineFacts(rootless_podman=True, runtime="crun")) == [*devices, ("--group-add", "keep-groups")]
        runc = EngineFacts(rootless_podman=True, runtime="runc")
        assert given(runc) == devices
        assert "crun can" in shortcomings(where, runc)[0]
        assert given(EngineFacts(here=False)) == [devices[0], ("--device", "/dev/dri")]

    def test_a_limit_that_the_engine_cannot_set_is_left_out_and_said(self) -> None:
        engine = EngineFacts(pids=False)
        assert "--pids-limit" not in arguments(Container("image"), engine)
        assert "processes is not limited" in shortcomings(Container("image"), engine)[0]
        assert not shortcomings(Container("image"), EngineFacts(pids=True))


TOKENS = (
    *("gsk_" + "a1" * 20, "AIza" + "b2" * 18, "glrt-" + "c3" * 12, "nvapi-" + "d4" * 16, "dapi" + "0a" * 16),
    "eyJhbGciOiJIUzI1NiJ9eyJ.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
)


class TestSecrets:
    @pytest.mark.parametrize(
        ("name", "value", "hidden"),
        [
            ("HF_TOKEN", SECRET, True),
            ("AWS_SECRET_ACCESS_KEY", "abc", True),
            ("DATABASE", "postgres://me:word@host/db", True),
            ("ANY", SECRET, True),
            *(("ROCM_NOTE", token, True) for token in TOKENS),
            ("GITHUB_PAT", "abc", True),
            ("ROCM_NOTE", "sk-learn 1.2", False),
            ("TOKENIZERS_PARALLELISM", "false", False),
            ("MAX_TOKENS", "4096", False),
            ("HSA_ENABLE_SDMA", "0", False),
            ("URL", "https://host/path", False),
        ],
    )
    def test_names_and_values_that_are_secrets(self, name: str, value: str, hidden: bool) -> None:
        assert is_hidden(name, value) is hidden
        spec = AttemptSpec("run", Command(("env", f"{name}={value}")), env={name: value}, where=Container("image"))
        assert (value not in msgspec.json.encode(spec.definition()).decode()) is hidden
        assert (f"{name}={value}" not in arguments(Container("image"), env={name: value})) is hidden
        assert (without_secret(f"--env={name}={value}") == f"--env={name}=***") is hidden or name == "DATABASE"

    @given(st.binary(max_size=80), st.lists(st.integers(0), max_size=8))
    def test_wherever_output_is_cut_no_secret_comes_through(self, noise: bytes, cuts: list[int]) -> None:
        stream = noise + b"first-secret" + noise + b"first-secret-longer" + noise
        scrubber = Scrubber(("first-secret", "first-secret-longer"))
        edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
        out = b"".join(scrubber.feed(stream[a:b]) for a, b in itertools.pairwise(edges)) + scrubber.rest()
        assert b"first-secret" not in out
        assert out.replace(b"***-longer", b"***") == noise + b"***" + noise + b"***" + noise or b"***" in noise

    def test_one_that_was_not_kept_is_asked_for(self) -> None:
        assert with_secrets({"HF_TOKEN": "***", "A": "1"}, {"HF_TOKEN": SECRET}) == {"HF_TOKEN": SECRET, "A": "1"}
        with pytest.raises(NotStartedError, match="HF_TOKEN in the environment") as caught:
            with_secrets({"HF_TOKEN": "***"}, {})
        assert "export HF_TOKEN" in caught.value.next_step

    @pytest.mark.parametrize("engine", ["podman", "docker"])
    def test_a_secret_reaches_the_container_and_nothing_else(
        self, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All command lines of the machine while it runs, and all files that rocmend leaves, are without it."""
        path = script(tmp_path / "bin", engine, ENGINE.format(seen=tmp_path / "seen"))
        spec = AttemptSpec(
            "run",
            Command(("prog", "x")),
            where=Container("image", runtime=str(path)),
            env={"HF_TOKEN": "***", "PLAIN": "1"},
        )
        with Journal(tmp_path / "kept" / "journal") as journal:
            assert "HF_TOKEN" in run_attempt(spec, journal=journal).reason
            monkeypatch.setenv("HF_TOKEN", SECRET)
            result = run_attempt(spec, journal=journal)
            stated = msgspec.structs.replace(spec, env={"HF_TOKEN": SECRET, "PLAIN": "1"})
            assert run_attempt(stated, journal=journal, attempt_id="b").identity == result.identity
        assert result.verdict is Verdict.PASS, result
        assert result.output.head == "got *** by name\n", "the program printed it"
        seen = (tmp_path / "seen").read_text()
        assert "--env\nHF_TOKEN\n--env\nPLAIN=1\n" in seen
        assert SECRET not in seen
        kept = [file for file in (tmp_path / "kept").rglob("*") if file.is_file()]
        assert len(kept) >= 2
        assert not any(SECRET.encode() in file.read_bytes() for file in kept)
        assert SECRET not in msgspec.json.encode(result).decode()


ENGINE = """#!/bin/sh
case "$1 $2" in
info*) echo '{{"host": {{"cgroupControllers": ["pids"]}}, "PidsLimit": true}}';;
"image inspect") echo '[{{"Id": "sha256:abc"}}]';;
"container inspect") echo '[{{"State": {{"StartedAt": "2026", "ExitCode": 0}}}}]';;
run*) cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' > "{seen}"
  [ "$HF_TOKEN" ] && printf 'got %s' "$HF_TOKEN" && sleep 0.1 && echo ' by name';;
esac
"""


EVIL = """Host *
  ForwardAgent yes
  ForwardX11 yes
  ForwardX11Trusted yes
  GSSAPIDelegateCredentials yes
  PermitLocalCommand yes
  LocalCommand touch {mark}
  SendEnv SENT_* LANG
  SetEnv GIVEN=1
  Tunnel yes
  LocalForward 127.0.0.1:{port} 127.0.0.1:1
  RemoteForward 127.0.0.1:{port} 127.0.0.1:1
  RemoteCommand /bin/false
  ControlMaster auto
  ControlPath {mark}.socket
  UpdateHostKeys yes
  ProxyCommand nc %h %p
"""


class TestSsh:
    @pytest.fixture
    def evil(self, tmp_path: Path) -> Ssh:
        if shutil.which("ssh") is None:
            pytest.skip("ssh is not installed")
        (tmp_path / "config").write_text(EVIL.format(mark=tmp_path / "mark", port=9))
        return Ssh("host", config_file=str(tmp_path / "config"))

    def test_the_user_s_configuration_opens_nothing(self, evil: Ssh) -> None:
        found = settings_of(evil)
        effective = {name: values[0] for name, values in found.items()}
        assert {name: effective.get(name, "") for name in WANTED} == WANTED
        assert found["setenv"] == ["ROCMEND=1"]
        assert effective["proxycommand"] == "nc %h %p", "it is how the user reaches the host"

    def test_an_experiment_that_asks_for_more_is_shown(self, evil: Ssh) -> None:
        where = msgspec.structs.replace(evil, options={"forwardagent": "yes"})
        assert settings_of(where)["forwardagent"] == ["yes"]
        shown = [rule for rule in rules_of(where) if rule.effect is Effect.ASKED]
        assert [rule.text for rule in shown] == ["-o forwardagent=yes"]
        assert "log in elsewhere with your keys" in shown[0].reason

    @pytest.mark.parametrize(
        ("strict", "known", "warns"),
        [
            ("no", "", True),
            ("off", "", True),
            ("accept-new", "/dev/null", True),
            ("accept-new", "", False),
            ("ask", "", False),
        ],
    )
    def test_a_key_that_is_not_checked_is_warned_of(self, evil: Ssh, strict: str, known: str, warns: bool) -> None:
        config = Path(evil.config_file)
        config.write_text(f"StrictHostKeyChecking {strict}\n" + (f"UserKnownHostsFile {known}\n" if known else ""))
        assert bool(warnings_of(settings_of(evil))) is warns

    @pytest.mark.parametrize(
        "where",
        [
            Ssh("-oProxyCommand=x"),
            Ssh(""),
            Ssh("a b"),
            Ssh("$(id)"),
            Ssh("a;b"),
            Ssh("a\n"),
            Ssh("host", user="-x"),
            Ssh("host", user="`id`"),
            Ssh("host", options={"ForwardAgent yes": ""}),
            Ssh("host", options={"ForwardAgent": "no\nProxyCommand x"}),
            Ssh("host", options={"SetEnv": "A=1"}),
        ],
    )
    def test_what_would_be_read_as_something_else_is_refused(self, where: Ssh) -> None:
        with pytest.raises(NotStartedError):
            ssh_argv(where, "/log", "true")


WANTED = {
    "forwardagent": "no",
    "forwardx11": "no",
    "forwardx11trusted": "no",
    "gssapidelegatecredentials": "no",
    "permitlocalcommand": "no",
    "tunnel": "false",
    "clearallforwardings": "yes",
    "updatehostkeys": "false",
    "controlmaster": "false",
    "controlpath": "",
    "remotecommand": "",
}


CLIENT = """#!{python}
import re, sys, time
if "-G" in sys.argv:
    sys.exit()
script = sys.stdin.buffer.read(int(re.search(r"count=([0-9]+)", sys.argv[-1])[1])).decode()
word = re.search(r"^M=(\\w+)", script, re.M)
if word is None:  # the second connection, which is to end what is left
    while True:
        sys.stdout.write("left " + "9" * 99999)
def say(text):
    sys.stderr.write("\\x1e" + word[1] + " " + text + "\\n")
sys.stdout.write("\\x1e" + word[1] + " begin\\n")
say("begin")
{lies}
sys.stdout.flush(); sys.stderr.flush()
"""

BIG = "9" * 5000
LIES = {
    "a status that is none": (f"say('pid 5'); say('exit 0'); say('exit 256'); say('exit {BIG}')", Verdict.PASS),
    "a host that is none": (f"say('pid 5'); say('host {BIG} {BIG}'); say('host 1 1'); say('exit 0')", Verdict.PASS),
    "samples that are none": (
        f"say('pid 5'); [say(f'sample {{i}} 5:R:{{i}}{BIG[:400]}:1:1:1:x') for i in (1, 2)]; say('exit 0')",
        Verdict.PASS,
    ),
    "commands for the terminal": ("say('missing \\x1b]0;x\\x07'); say('exit 0')", Verdict.PASS),
    "survivors that are none": ("say('pid 5'); say('left \\x1b[31m reboot'); say('exit 0')", Verdict.PASS),
    "messages that cannot be kept": (
        r"""say("pid 5");m = "\n\x1erocmend "; print(m + '{"note": "\\ud800"}' + m + '{"result": 1}'); say("exit 0")""",
        Verdict.PASS,
    ),
    "a lost connection, and a flood in the second": ("say('pid 5')", Verdict.INFRA),
}


@pytest.mark.parametrize("name", LIES)
def test_a_far_host_that_lies_is_believed_within_bounds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lies, verdict = LIES[name]
    path = script(tmp_path / "bin", "ssh", CLIENT.format(python=sys.executable, lies=lies))
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    before = set(tmp_path.rglob("*"))
    begin = time.monotonic()
    call = PythonCall("m:f") if "kept" in name else Command(("prog",))
    spec = AttemptSpec("../../run", call, where=Ssh("host"), limits=Limits(total_s=30))
    with Journal(tmp_path / "kept" / "journal") as journal:
        result = run_attempt(spec, journal=journal)
    assert result.verdict is verdict, result
    assert not result.quarantine
    assert "\x1b" not in msgspec.json.encode(result).decode().replace("\\u001b", "\x1b")
    assert time.monotonic() - begin < 12
    made = set(tmp_path.rglob("*")) - before
    assert all(file.is_relative_to(tmp_path / "kept") for file in made)
