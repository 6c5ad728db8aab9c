"""Every option and argument that takes a GPU takes the names that people use."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from rocmend.cli.gpu_names import GpuName
from rocmend.cli.main import command_modules

Run = Callable[..., Any]


@pytest.mark.parametrize(
    "arguments",
    [
        ("targets", "steam deck"),
        ("doctor", "--target", "Steam Deck"),
        ("env", "--for", "pytorch", "--target", "steam-deck"),
        ("wheel", "choose", "--target", "steamdeck"),
        ("machine", "show", "--target", "Van Gogh"),
        ("kb", "matrix", "release", "--target", "steam_deck"),
        ("store", "ls", "--gfx", "steam deck"),
        ("kernels", "explain", "rms_norm", "dtype=float16", "rows=1", "columns=64", "--target", "steam deck"),
    ],
)
def test_a_product_stands_for_its_target(rocmend: Run, arguments: tuple[str, ...]) -> None:
    done = rocmend(*arguments)
    assert done.code in {0, 1}, done.err
    assert " is gfx1033" in done.err.splitlines()[0]


@pytest.mark.slow
def test_a_product_that_is_named_is_the_one_that_is_answered_for(installed: Run, tmp_path: Path) -> None:
    asked = ("--machine", "no-amd-gpu", "--target")
    shown = " ".join(installed("doctor", *asked, "RX 7900 XTX").out.split())
    assert "AMD Radeon RX 7900 XTX: gfx1100, 96 CU, wave32, 24 GiB usable, 123 FP16 TFLOPS at boost, 960 GB/s" in shown
    assert "AMD Radeon RX 7900 XTX, gfx1100 (not in no-amd-gpu)" in shown
    data = json.loads(installed("doctor", *asked, "RX 7900 XTX", "--model-size", "30GB", "--json").out)["data"]
    assert [one["entry_id"] for one in data["findings"]] == ["memory-model-does-not-fit"]
    for chip in ("gfx1100", "strix halo"):
        assert "AMD GPU: gfx1" in installed("doctor", *asked, chip).out
    installed("check", *asked, "RX 7900 XTX", cwd=tmp_path)
    assert [path.name for path in tmp_path.glob("*.html")] == ["rocmend-report-no-amd-gpu-Radeon-RX-7900-XTX.html"]


def test_known_problems_that_need_two_lines_each_are_set_apart(installed: Run) -> None:
    lines = installed("doctor", "--target", "gfx1100", "--machine", "no-amd-gpu").out.splitlines()
    ids = [number for number, line in enumerate(lines) if line.startswith("  ") and line.endswith(("6-18", "-switch"))]
    assert len(ids) == 2
    assert "" in lines[ids[0] + 1 : ids[1]]


def test_no_option_for_a_gpu_is_left_out() -> None:
    for path, module in command_modules().items():
        command: click.Command = importlib.import_module(module).command
        for parameter in command.params:
            if parameter.name in {"target", "targets", "gfx_target"}:
                assert isinstance(parameter.type, GpuName), f"{path} {parameter.opts}"


def test_an_ambiguous_name_lists_the_candidates_and_is_a_usage_error(rocmend: Run) -> None:
    done = rocmend("wheel", "choose", "--target", "strix")
    assert done.code == 2
    assert "Radeon 8060S" in done.err
    assert "Radeon 890M" in done.err
    assert done.out == ""


def test_several_targets_are_split_and_names_with_spaces_are_not(rocmend: Run) -> None:
    for targets in ("gfx1151,RX 7900 GTX", "gfx1151 gfx1199"):
        done = rocmend("kernels", "compile", "rms_norm", "--targets", targets)
        assert done.code == 2
        assert "RX 7900 GTX" in done.err or "gfx1199" in done.err


def test_a_shell_completes_names() -> None:
    asked = {"_ROCMEND_COMPLETE": "bash_complete", "COMP_WORDS": "rocmend targets rx-79", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", "from rocmend.cli.main import cli; cli(prog_name='rocmend')"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "plain,rx-7900-xtx" in done.stdout.splitlines()
