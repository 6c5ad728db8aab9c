"""Findings for a person stay with the port: every later run shows each once, until a person closes it."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .conftest import Done

Installed = Callable[..., "Done"]

DIVERGING = """#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>

__device__ int odd(int v) { return __shfl_sync(0xffffffff, v, 0) + 1; }
__device__ int even(int v) { return __shfl_sync(0xffffffff, v, 1) + 2; }



__global__ void k(int* x) {
  int v = x[threadIdx.x], r;



  if (threadIdx.x & 1) r = odd(v); else r = even(v);
  x[threadIdx.x] = r;
}
"""
NEARBY = """#include <cuda_runtime.h>
#include <mma.h>
__global__ void k(int* x) {
  x[0] = __shfl_sync(0xffffffff, x[1], 0);
  asm volatile("mov.u32 %0, %%smid;" : "=r"(x[2]));
}
"""


def by_hand(installed: Installed, project: Path, *options: str) -> list[dict[str, Any]]:
    done = installed("port", str(project), "--no-cache", "--format", "jsonl", *options)
    return [one for one in map(json.loads, done.out.splitlines()) if one["outcome"] == "manual"]


def applied(installed: Installed, tmp_path: Path, text: str) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "k.cu").write_text(text)
    assert installed("port", str(project), "--apply").code == 1
    return project


def test_a_finding_that_rules_no_longer_see_stays_open(installed: Installed, tmp_path: Path) -> None:
    """Once both helpers call ``warp32_shfl_sync``, no rule sees that lanes meet at different calls."""
    project = applied(installed, tmp_path, DIVERGING)
    (found,) = by_hand(installed, project)
    line = (project / "k.cu").read_text().splitlines()[found["line"] - 1]
    assert (found["rule"], line.strip()) == ("CU30", "if (threadIdx.x & 1) r = odd(v); else r = even(v);")
    assert installed("port", str(project)).code == 1
    proof = installed("port", "verify", str(project), "--level", "static", "--json")
    assert proof.code == 1
    (told,) = json.loads(proof.out)["data"]["levels"][1]["evidence"]
    assert (told["outcome"], told["data"]["rule"]) == ("broken", "CU30")
    before = (project / "k.cu").read_bytes()
    assert installed("port", str(project), "--apply", "--no-cache", "--jobs", "1").code == 1
    assert (project / "k.cu").read_bytes() == before


@pytest.mark.parametrize("way", ["reason", "code", "no comment", "no record"])
def test_what_closes_a_finding(installed: Installed, tmp_path: Path, way: str) -> None:
    project = applied(installed, tmp_path, DIVERGING)
    path = project / "k.cu"
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "// ROCM CU30" in line)
    end = next(number for number in range(at, len(lines)) if lines[number].startswith("#endif"))
    if way == "reason":
        lines[at:end] = ["  // rocmend: ignore[CU30] the lanes of a warp are all odd or all even here\n"]
    elif way == "code":
        lines[at : end + 2] = ["  r = odd(v);\n"]
    elif way == "no comment":
        lines[at:end] = []
    else:
        shutil.rmtree(project / ".rocmend")
    path.write_text("".join(lines))
    rules = [one["rule"] for one in by_hand(installed, project)]
    assert rules == {"reason": [], "code": [], "no comment": ["CU30"], "no record": ["CU46"]}[way]


EDITED = ("if (threadIdx.x & 1) r = odd(v); else r = even(v);", "r = (threadIdx.x & 1) ? odd(v) : even(v);")


@pytest.mark.parametrize("edited", [False, True])
def test_a_rule_is_asked_again_on_the_rocm_side(installed: Installed, tmp_path: Path, edited: bool) -> None:
    """A person deletes the comment and lays out the line anew, in a file that is renamed to one for HIP."""
    project = applied(installed, tmp_path, DIVERGING)
    text = "".join(line for line in (project / "k.cu").read_text().splitlines(True) if "// ROCM" not in line)
    (project / "k.cu").unlink()
    (project / "k.hip").write_text(text.replace(*EDITED) if edited else text)
    (found,) = by_hand(installed, project)
    line = (project / "k.hip").read_text().splitlines()[found["line"] - 1]
    assert (found["rule"], found["path"], line.strip()) == ("CU30", "k.hip", EDITED[edited])
    before = (project / "k.hip").read_bytes()
    assert installed("port", str(project), "--apply", "--no-cache", "--allow-dirty").code == 1
    assert (project / "k.hip").read_bytes() == before
    (project / "k.hip").write_text(text.replace(EDITED[0], "r = odd(v);"))
    assert by_hand(installed, project, "--jobs", "1") == [], "its rule no longer finds it there"


def test_what_is_found_nowhere_stays_open_until_a_person_closes_it(installed: Installed, tmp_path: Path) -> None:
    project = applied(installed, tmp_path, DIVERGING)
    (manifest,) = (project / ".rocmend" / "port").glob("*/manifest.json")
    record = json.loads(manifest.read_text())
    (one,) = record["findings"]
    assert one.pop("seen_on_rocm")
    record["findings"] = [{**one, "code": ["no", "such", "code"]}]
    manifest.write_text(json.dumps(record))
    path = project / "k.cu"
    text = "".join(line for line in path.read_text().splitlines(True) if "// ROCM" not in line)
    path.write_text(text.replace(EDITED[0], "r = odd(v);"))
    (found,) = by_hand(installed, project)
    assert (found["rule"], found["line"]) == ("CU30", 1)
    assert "could not be found again: look at it. It was on line 15 of the original" in found["message"]
    path.write_text(
        path.read_text().replace("  r = odd(v);", "  // rocmend: ignore[CU30] all lanes go one way\n  r = odd(v);")
    )
    assert by_hand(installed, project, "--jobs", "1") == []


def test_a_file_that_is_gone_is_named(installed: Installed, tmp_path: Path) -> None:
    project = applied(installed, tmp_path, DIVERGING)
    (project / "other.cu").write_text(NEARBY)
    (project / "k.cu").unlink()
    told = json.loads(installed("port", str(project), "--json").out)["data"]["analysis"]
    assert any("k.cu is gone with 1 finding for a person" in note for note in told["notes"]), told["notes"]


def test_no_finding_counts_twice(installed: Installed, tmp_path: Path) -> None:
    """A comment in the region of a rewrite nearby, whose rule still reports the code below it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "k.cu").write_text(NEARBY)
    before = sorted(one["rule"] for one in by_hand(installed, project, "--jobs", "1"))
    assert before
    installed("port", str(project), "--apply")
    assert sorted(one["rule"] for one in by_hand(installed, project)) == before


def test_a_port_in_place_and_then_a_folder_of_its_own_can_be_undone(installed: Installed, tmp_path: Path) -> None:
    """The second port does not write the first one's support headers twice, and its record can be read."""
    project = applied(installed, tmp_path, NEARBY)
    assert installed("port", str(project), "--apply", "--style", "tree").code in {0, 1}
    assert (project / "rocm" / "k.hip").is_file()
    for _ in range(2):
        assert installed("port", "undo", str(project)).code == 0
    assert (project / "k.cu").read_text() == NEARBY
    assert not (project / "rocm").exists()


MAKEFILE = "a.ptx: a.cu\n\tnvcc -ptx a.cu -o a.ptx\n\nprogram: b.cu\n\tnvcc -lineinfo b.cu -o program\n"


@pytest.mark.slow
def test_a_finding_in_a_build_survives_its_formatting_and_a_move(installed: Installed, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    makefile = project / "Makefile"
    makefile.write_text(MAKEFILE)
    assert installed("port", str(project), "--apply").code == 1
    assert [one["rule"] for one in by_hand(installed, project)] == ["BL01"]
    (line,) = {one for one in makefile.read_text().splitlines() if "hipcc" in one and "-ptx" in one}
    first, _, rest = line.partition(" -ptx ")
    assert rest, line
    makefile.write_text(makefile.read_text().replace(line, f"{first}  -ptx \\\n\t\t{rest}"))
    assert [one["rule"] for one in by_hand(installed, project, "--jobs", "1")] == ["BL01"], "formatted"
    (project / "build").mkdir()
    makefile = makefile.rename(project / "build" / "Makefile")
    (found,) = by_hand(installed, project, "--jobs", "2")
    assert (found["rule"], found["path"]) == ("BL01", "build/Makefile")
    kept = makefile.read_text()
    makefile.write_text("".join(f"# {one}" if "-ptx" in one else one for one in kept.splitlines(keepends=True)))
    (found,) = by_hand(installed, project, "--jobs", "3")
    assert "could not be found again: look at it" in found["message"], "no longer run"
    makefile.write_text("# rocmend: ignore[BL01] it is no longer run\n" + makefile.read_text())
    assert by_hand(installed, project, "--jobs", "4") == []


def test_two_findings_of_a_rule_on_a_line_stay_two(installed: Installed, tmp_path: Path) -> None:
    """As a port keeps them: of one rule and one line, with words of their own."""
    project = applied(installed, tmp_path, DIVERGING)
    (manifest,) = (project / ".rocmend" / "port").glob("*/manifest.json")
    record = json.loads(manifest.read_text())
    (one,) = record["findings"]
    record["findings"] = [one, {**one, "message": "another thing of the same line"}]
    manifest.write_text(json.dumps(record))
    found = by_hand(installed, project)
    assert [two["rule"] for two in found] == ["CU30", "CU30"]
    assert len({two["message"] for two in found}) == 2
    assert len({two["line"] for two in found}) == 1


@pytest.mark.slow
def test_a_record_of_thousands_of_findings_is_read_at_once(installed: Installed, tmp_path: Path) -> None:
    """It may be a stranger's: what would take too long to find again stays open, at the beginning of its file."""
    project = applied(installed, tmp_path, DIVERGING)
    (manifest,) = (project / ".rocmend" / "port").glob("*/manifest.json")
    record = json.loads(manifest.read_text())
    (one,) = record["findings"]
    (project / "k.cu").write_text((project / "k.cu").read_text() + "__device__ int a;\n" * 20_000)
    code = ["__device__", "int", "a", ";"]
    many = [{**one, "line": n, "message": f"finding {n}", "code": code * (n % 60 + 1)} for n in range(4000)]
    marks = "".join(f"// ROCM CU30: {n} lanes\n__device__ int b{n};\n" for n in range(2000))
    (project / "k.cu").write_text((project / "k.cu").read_text() + marks)
    record["findings"] = many
    manifest.write_text(json.dumps(record))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = by_hand(installed, project)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 30
    assert sum(two["rule"] == "CU30" for two in found) == 4000 + 1, "and the one that its rule finds"
