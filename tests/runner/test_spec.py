from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError, UsageError
from rocmend.runner.spec import (
    AttemptSpec,
    Command,
    Container,
    Kubernetes,
    Limits,
    Local,
    Mount,
    PythonCall,
    Ssh,
    spec_from_toml,
)

SPECS = [
    AttemptSpec("a", Command(("llama-cli", "-m", "x.gguf"), cwd="/tmp"), env={"A": "1", "B": None}, phases="llama.cpp"),
    AttemptSpec("b", PythonCall("m:f", {"n": [1, 2.5, None]}), Local(), limits=Limits(phase_silence={"load": 3.0})),
    AttemptSpec("c", Command(("x",)), Container("img", devices=("/dev/kfd",), mounts=(Mount("/a", "/b", True),))),
    AttemptSpec("d", Command(("x",)), Ssh("host", user="me", options={"ConnectTimeout": "5"})),
    AttemptSpec("e", Command(("x",)), Kubernetes("img", resources={"amd.com/gpu": "1"})),
]


@pytest.mark.parametrize("spec", SPECS)
def test_json_round_trip_keeps_the_identity(spec: AttemptSpec) -> None:
    again = msgspec.json.decode(msgspec.json.encode(spec), type=AttemptSpec)
    assert again == spec
    assert again.identity() == spec.identity()


def test_the_identity_is_of_everything_but_the_name() -> None:
    spec = SPECS[0]
    assert msgspec.structs.replace(spec, name="other").identity() == spec.identity()
    changes = (
        {"command": Command(("llama-cli", "-m", "y.gguf"), cwd="/tmp")},
        {"env": {"A": "1"}},
        {"env": {"A": "1", "B": ""}},
        {"where": Container("img")},
        {"phases": ""},
        {"limits": Limits(total_s=1)},
        {"allow_slow_first_run": False},
    )
    identities = {msgspec.structs.replace(spec, **change).identity() for change in changes}
    assert len(identities | {spec.identity()}) == len(changes) + 1


def test_a_spec_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "attempt.toml"
    path.write_text(
        'name = "x"\nphases = "llama.cpp"\n[command]\nkind = "command"\nargv = ["echo", "hi"]\n'
        '[where]\nkind = "container"\nimage = "img"\n[limits]\ntotal_s = 60\n'
    )
    spec = spec_from_toml(path)
    assert spec == AttemptSpec(
        "x", Command(("echo", "hi")), Container("img"), phases="llama.cpp", limits=Limits(total_s=60)
    )


@pytest.mark.parametrize("text", ["", "name = 3", 'name = "x"\n[command]\nkind = "nonesuch"', "\x00"])
def test_a_wrong_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "attempt.toml"
    path.write_text(text)
    with pytest.raises(DataError):
        spec_from_toml(path)
    with pytest.raises(DataError, match="cannot be read"):
        spec_from_toml(tmp_path / "absent.toml")


@given(st.sampled_from(["total_s", "silence_s", "max_output_bytes"]), st.integers(max_value=0))
def test_limits_that_end_every_run_are_refused(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=name):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_other_limits_are_checked_too() -> None:
    for wrong in ({"grace_s": -1}, {"memory_bytes": -1}, {"phase_silence": {"a": 0.0}}):
        with pytest.raises(UsageError):
            Limits(**wrong)
