from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.kb.general import plain, plain_code
from rocmend.kb.template import fill, placeholders
from rocmend.machine.facts import Machine

Build = Callable[..., Machine]

FACTS = {
    "gpu.0.name": None,
    "gpu.0.gfx_target": "gfx1151",
    "gpu.0.vram_total_bytes": 512 << 20,
    "gpu.0.peak_fp16_tflops": 59.392,
    "gpu.0.is_apu": True,
    "packages": {"torch": "2.9.0"},
    "torch.gfx_targets": ["gfx1100", "gfx942"],
    "rocm.version": None,
    "kernel.release": "6.14.0",
    "vulkan.drivers": [],
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{gpu.name}: {gpu.vram_total_bytes}", "gfx1151: 512 MiB"),
        ("{gpu.vram_total_bytes} bytes", "536,870,912 bytes"),
        ("{gpu.peak_fp16_tflops} TFLOPS, an APU: {gpu.is_apu}", "59.39 TFLOPS, an APU: yes"),
        ('torch {packages["torch"]}, jax {packages["jax"]}', "torch 2.9.0, jax not set"),
        ("{torch.gfx_targets}, {vulkan.drivers}", "gfx1100, gfx942, none"),
        ("ROCm {rocm.version}, dkms {amdgpu.dkms_version}", "ROCm not set, dkms unknown"),
        ("{packages.torch}", "2.9.0"),
        ("keep {gfx}, ${kernel.release}, {}, {a b}, {{x}}, awk '{print $1}'",) * 2,
        ('keep {gpu.x["y}', 'keep {gpu.x["y}'),
    ],
)
def test_placeholders_are_filled_in(text: str, filled: str, machine_of: Build) -> None:
    assert fill(text, machine_of(FACTS), 0) == filled


def test_placeholders_are_listed_once() -> None:
    assert placeholders('{gpu.name} {packages["a"]} {gpu.name} {gfx}') == ("gpu.name", 'packages["a"]')
    assert plain("{gpu.name} on {kernel.release}") == "The GPU on"
    assert plain("amdgpu failed (lines in the log: {dmesg.mes_hang})") == "amdgpu failed"
    assert plain("X={env.X} on PyTorch {torch.version}: {a.b} bytes (f(x)) {gfx} ${HOME}") == (
        "X on PyTorch (f(x)) {gfx} ${HOME}"
    )


def test_a_command_without_a_machine_has_words_to_replace() -> None:
    command = 'a {ttm.suggested_pages_limit} {packages["x"]} {env.X} [{gfx}] {family} ${HOME}'
    assert plain_code(command) == "a TTM_SUGGESTED_PAGES_LIMIT VERSION OLD_VALUE [GFX_TARGET] GFX_FAMILY ${HOME}"


@given(st.text(alphabet='{}.gpuname["]$x \\', max_size=60))
def test_any_text_can_be_filled(machine_of: Build, text: str) -> None:
    assert isinstance(fill(text, machine_of(FACTS), 0), str)


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        ({"python.executable": "/home/me/my env/bin/python3"}, "'/home/me/my env/bin/python3' -m pip"),
        ({"python.executable": "/opt/x$(id)/python"}, "'/opt/x$(id)/python' -m pip"),
        ({"python.executable": "/v/bin/python3", "python.externally_managed": False}, "/v/bin/python3 -m pip"),
        ({"python.executable": "/bin/python3", "python.externally_managed": True}, "~/rocm-venv/bin/python -m pip"),
        ({"python.executable": "/opt/a\nb"}, "python3 -m pip"),
        ({"python.executable": ""}, "python3 -m pip"),
        ({}, "python3 -m pip"),
    ],
)  # fmt: skip
def test_commands_are_for_the_python_that_was_examined(
    machine_of: Build, facts: dict[str, object], command: str
) -> None:
    assert fill("{python.executable} -m pip", machine_of(facts), for_shell=True) == command


def test_a_value_cannot_act_in_a_shell(machine_of: Build) -> None:
    machine = machine_of({"env.X": "1; rm -rf ~ $(id) `id` 'a' \"b\"\n|&<>", "kernel.release": "6.17.0-5+x,y:z=1/@%"})
    filled = fill("export X={env.X} Y={kernel.release}", machine, for_shell=True)
    value, _, rest = filled.removeprefix("export X=").partition(" Y=")
    assert not set(value) & set(";$()`'\"\n|&<>~")
    assert rest == "6.17.0-5+x,y:z=1/@%"
    assert fill("export X='{env.X}'", machine, for_shell=True) == "export X='OLD_VALUE'"
    nested = fill("echo \"'{env.X}'\" 'a'{env.X}'b'", machine, for_shell=True)
    assert not set(nested.replace('"', "").replace("'", "")) & set(";$()`\n|&<>~")


@pytest.mark.parametrize("value", ["radeon_icd*", 'it\'s; $(id) "x" ~ |&<>', "a\\b é", ""])
def test_a_value_in_quotes_is_restored_as_it_was(machine_of: Build, value: str) -> None:
    line = fill("export X='{env.X}'", machine_of({"env.X": value}), for_shell=True)
    done = subprocess.run(["sh", "-c", f'{line}; printf %s "$X"'], capture_output=True, text=True, check=True)
    assert done.stdout == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", "plain"),
        ("X", "hf_0123456789abcdefghij"),
        ("X", "http://anna:hunter2@proxy:3128"),
        ("X", "a\nb"),
        ("X", "`id`"),
    ],
)
def test_a_secret_and_what_a_line_cannot_hold_are_not_written(machine_of: Build, name: str, value: str) -> None:
    line = fill(f"export X='{{env.{name}}}'", machine_of({f"env.{name}": value}), for_shell=True)
    assert line == "export X='OLD_VALUE'"
