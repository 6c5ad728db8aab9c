"""What `port` finds in forms that hide it, as a person runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import Done

Installed = Callable[..., "Done"]


def found(installed: Installed, folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    for name, text in files.items():
        (folder / name).write_text(text)
    done = installed("port", str(folder), "--no-cache", "--format", "jsonl", "--ignore", "CU40")
    return [json.loads(line) for line in done.out.splitlines()]


def test_two_calls_on_one_line_are_said_to_be_there(installed: Installed, tmp_path: Path) -> None:
    kernel = (
        "__device__ int f(int v) {\n  if (v) return __shfl_sync(~0u, v, 0); else return __shfl_sync(~0u, v, 1);\n}\n"
    )
    (told,) = [one["message"] for one in found(installed, tmp_path, {"k.cu": kernel}) if one["rule"] == "CU30"]
    assert "two different calls, both on this line" in told


def test_macros_beyond_those_that_are_used_are_said(installed: Installed, tmp_path: Path) -> None:
    names = "".join(f"#ifdef USE_ROCM\n#define ON_AMD_{at:03} 1\n#endif\n" for at in range(70))
    (tmp_path / "gates.h").write_text(names + "__global__ void k(int* x) { x[0] = __any(1); }\n")
    done = installed("port", str(tmp_path), "--no-cache")
    assert "6 macros of the project for ROCm not used (ON_AMD_064, …)" in done.out


def test_one_statement_that_asks_for_a_capability_is_one_finding(installed: Installed, tmp_path: Path) -> None:
    lines = [
        "int version() {",
        "  int dev, major, minor;",
        "  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, dev);",
        "  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, dev);",
        "  return major * 10 + minor;",
        "}",
        "void a() { if (version() >= 90) launch9(); else launch8(); }",
        "void b(cudaDeviceProp p) { int sm = 10 * p.major + p.minor; printf(text, sm); if (80 <= sm) launch8(); }",
        "void c(cudaDeviceProp p) { if (p.major == 8 && p.minor == 9) launch8(); }",
        "void d(cudaDeviceProp p) { if (p.major < 6 || (p.major == 6 && p.minor < 1)) exit(1); }",
        "void e(cudaDeviceProp p) { if (p.major > 9) exit(1); }",
        "void f(cudaDeviceProp p, cudaDeviceProp best) { if (p.major > best.major) best = p; }",
        "void g(cudaDeviceProp p) { std::pair<int, int> cc = {p.major, p.minor}; if (cc.first >= 8) launch8(); }",
        "",
    ]
    seen = [
        (one["line"], one["rule"], one["outcome"]) for one in found(installed, tmp_path, {"k.cu": "\n".join(lines)})
    ]
    wanted = [(7, "manual"), (8, "manual"), (9, "manual"), (10, "note"), (11, "manual"), (13, "manual")]
    assert seen == [(line, "CU47", outcome) for line, outcome in wanted]


PYTHON = {
    "return cap[0] * 10 + cap[1] >= 80": "suggest",
    "return 10 * cap[0] + cap[1] >= 80": "suggest",
    "return 8 <= cap[0]": "suggest",
    "return torch.cuda.get_device_properties(0).major >= 8": "suggest",
    "return int(f'{cap[0]}{cap[1]}') >= 90": "suggest",
    "return ''.join(map(str, cap)) == '90'": "suggest",
    "return max(torch.cuda.get_device_capability(k) for k in range(2)) >= (9, 0)": "suggest",
    "return version() >= 80": "suggest",
    "return TABLE[cap]": "manual",
    "return TABLE.get(cap[0], 3)": "manual",
    "return choose(capability=cap)": "manual",
    "return cap": "manual",
    "self.sm = cap": "manual",
    "arch = f'compute_{cap[0]}{cap[1]}'": "manual",
    "print(cap, f'sm_{cap[0]}')": "",
    "logger.info('%d.%d', *cap)": "",
    "raise RuntimeError(f'not for {cap[0]}.{cap[1]}')": "",
    "return cap == torch.cuda.get_device_capability(1)": "",
}


def test_python_that_chooses_by_a_capability(installed: Installed, tmp_path: Path) -> None:
    head = "import torch\n\n\ndef version():\n    major, minor = torch.cuda.get_device_capability()\n"
    head += "    return major * 10 + minor\n"
    for at, line in enumerate(PYTHON):
        head += f"\n\ndef f{at}(self):\n    cap = torch.cuda.get_device_capability()\n    {line}\n"
    said = {one["line"]: one["outcome"] for one in found(installed, tmp_path, {"choose.py": head})}
    assert said.pop(6) == "manual"  # another file may call it
    lines = {number: line.strip() for number, line in enumerate(head.splitlines(), 1)}
    assert {lines[number]: outcome for number, outcome in said.items()} == {k: v for k, v in PYTHON.items() if v}
