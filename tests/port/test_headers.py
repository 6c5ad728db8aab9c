"""Whether lanes diverge, where a header of the project says what a macro or a constant is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.port.analyse import analyse

KERNEL = """#include "{header}"
#include <cuda_runtime.h>
__global__ void k(const int* in, int* out, int n) {{
  int rounds = 0, v = in[threadIdx.x];
  for (int i = 0; i < n; ++i) {{
    SKIP(3);
    rounds += 1;
  }}
  {branch} {{
    v = __shfl_sync(0xffffffff, v, 0);
  }} else {{
    v = __shfl_sync(0xffffffff, v, 1);
  }}
  out[threadIdx.x] = v;
}}
"""


def lines(folder: Path, branch: str, **headers: str) -> list[int]:
    """Return the lines of the findings in a source that includes ``first.cuh``, in a project of these headers."""
    (folder / "kernel.cu").write_text(KERNEL.format(header="first.cuh", branch=branch))
    for name, text in headers.items():
        (folder / f"{name}.cuh").write_text(f"#pragma once\n{text}\n")
    return [issue.line for issue in analyse(folder, cache=False).issues if issue.rule == "CU30"]


@pytest.mark.parametrize(
    ("branch", "header", "diverges"),
    [
        ("if (threadIdx.x / kWarp == 0)", "", True),
        ("if (threadIdx.x / kWarp == 0)", "constexpr int kWarp = 32;", False),
        ("if (threadIdx.x / kWarp == 0)", "namespace own {\nstatic constexpr unsigned kWarp{64};\n}", False),
        ("if (threadIdx.x / kWarp == 0)", "constexpr int kWarp = 16;", True),
        ("if (threadIdx.x / kWarp == 0)", "int kWarp = 32;", True),
        ("if (threadIdx.x / kWarp == 0)", "// constexpr int kWarp = 32;", True),
        ("if (threadIdx.x / WARP_SIZE == 0)", "", False),
        ("if (threadIdx.x / WARP_SIZE == 0)", "#define WARP_SIZE 32", False),
        ("if (threadIdx.x / WARP_SIZE == 0)", "#define WARP_SIZE 16", True),
        (
            "if (threadIdx.x / WARP_SIZE == 0)",
            "#ifdef BIG\n#define WARP_SIZE 32\n#else\n#define WARP_SIZE 8\n#endif",
            True,
        ),
        ("if (WRITER)", "#define WRITER (threadIdx.x & 1)", True),
        ("if (WRITER)", "#define WRITER (blockIdx.x & 1)", False),
        ("IF_FIRST", "", True),
        ("IF_FIRST", "#define IF_FIRST if (blockIdx.x == 0)", False),
        ("IF_FIRST", "#define IF_FIRST if (threadIdx.x == 0)", True),
        ("WHEN(n > 3)", "#define WHEN(condition) if (!!(condition))", False),
        ("WHEN(v > 3)", "#define WHEN(condition) if (!!(condition))", True),
        ("if (rounds > 3)", "#define SKIP(i)", False),
        ("if (rounds > 3)", "#define SKIP(i) \\\n  if ((i + threadIdx.x) & 1) continue", True),
    ],
)
def test_what_a_header_says(branch: str, header: str, diverges: bool, tmp_path: Path) -> None:
    assert lines(tmp_path, branch, first=header) == ([9] if diverges else [])


def test_a_constant_made_of_another_header_s(tmp_path: Path) -> None:
    first = '#include "second.cuh"\nconstexpr int kWarp = 2 * kHalf;'
    branch = "if (threadIdx.x / kWarp == 0)"
    assert lines(tmp_path, branch, first=first, second="constexpr int kHalf = 16;") == []
    assert lines(tmp_path, branch, first=first, second="constexpr int kHalf = 8;") == [9]


def test_constants_of_two_headers_decide_nothing(tmp_path: Path) -> None:
    first = '#include "second.cuh"\nnamespace a {\nconstexpr int kWarp = 32;\n}'
    second = "namespace b {\nconstexpr int kWarp = 8;\n}"
    assert lines(tmp_path, "if (threadIdx.x / kWarp == 0)", first=first, second=second) == [9]


def test_a_header_that_is_not_included_says_nothing(tmp_path: Path) -> None:
    assert lines(tmp_path, "if (threadIdx.x / kWarp == 0)", other="constexpr int kWarp = 32;") == [9]


def test_the_shape_of_a_launch(tmp_path: Path) -> None:
    source = """#include "first.cuh"
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (threadIdx.x / 32 == 0) v = __shfl_sync(0xffffffff, v, 0);
  else v = __shfl_sync(0xffffffff, v, 1);
  out[threadIdx.x] = v;
}
void run(int* in, int* out) { k<<<1, dim3(kThreads, 4)>>>(in, out); }
"""
    (tmp_path / "kernel.cu").write_text(source)
    for threads, expected in (("64", []), ("48", [4])):
        (tmp_path / "first.cuh").write_text(f"constexpr int kThreads = {threads};\n")
        assert [one.line for one in analyse(tmp_path, cache=False).issues if one.rule == "CU30"] == expected


def test_a_comment_suppresses_what_a_header_shows(tmp_path: Path) -> None:
    branch = "// rocmend: ignore[CU30] as it is\n  if (WRITER)"
    assert lines(tmp_path, branch, first="#define WRITER (threadIdx.x & 1)") == []


def test_the_cache_knows_no_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that changes alone changes what is found in the files that include it."""
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kernel.cu").write_text(KERNEL.format(header="first.cuh", branch="if (WRITER)"))
    for body, expected in (("threadIdx.x & 1", [9]), ("blockIdx.x & 1", []), ("threadIdx.x & 2", [9])):
        (folder / "first.cuh").write_text(f"#define WRITER ({body})\n")
        assert [one.line for one in analyse(folder).issues if one.rule == "CU30"] == expected
