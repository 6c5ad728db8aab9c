"""What version.py says, and where a torch came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.machine.parse.torch import Origin, backend_of_tag, guess_source, parse_version_py


def version_py(version: str, *, hip: str = "", cuda: str = "", xpu: str = "") -> str:
    def quoted(value: str) -> str:
        return repr(value) if value else "None"

    return (
        "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n"
        f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {quoted(cuda)}\n"
        f"git_version = 'ab12'\nhip: Optional[str] = {quoted(hip)}\nxpu: Optional[str] = {quoted(xpu)}\n"
    )


@pytest.mark.parametrize(
    ("text", "backend", "rocm"),
    [
        (version_py("2.5.1+rocm6.2", hip="6.2.41133-dd7f95766"), "rocm", "6.2"),
        (version_py("2.11.0a0+rocm7.11.0a20260106", hip="7.2.53150"), "rocm", "7.11.0a20260106"),
        (version_py("2.7.0a0+gitbfd8155", hip="6.5.25190"), "rocm", "6.5"),
        (version_py("2.13.0", cuda="13.0"), "cuda", None),
        (version_py("2.13.0+cpu"), "cpu", None),
        (version_py("2.9.0+xpu", xpu="20250200"), "xpu", None),
        ("__version__ = '1.0'\n", "unknown", None),
        ("", "unknown", None),
    ],
)
def test_backend_and_release(text: str, backend: str, rocm: str | None) -> None:
    found = parse_version_py(text)
    assert (found.backend, found.rocm) == (backend, rocm)


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (Origin("2.13.0"), "pypi"),
        (Origin("2.5.1+rocm6.2"), "pytorch-index"),
        (Origin("2.9.1+rocm6.4", requires=("pytorch-triton-rocm",)), "pytorch-index"),
        (Origin("2.10.0+rocm7.1"), "pytorch-index"),
        (Origin("2.5.1+rocm6.2.4"), "pytorch-index"),
        (Origin("2.6.0+cu126"), "pytorch-index"),
        (Origin("2.6.0+rocm6.4.1.git1ded221d"), "radeon-repo"),
        (Origin("2.9.1+rocm7.1.1.lw.git351ff442"), "radeon-repo"),
        (Origin("2.11.0a0+rocm7.11.0a20260106"), "therock"),
        (Origin("2.13.0+rocm10.0.0"), "therock"),
        (Origin("2.8.0a0+rocmsdk20250609"), "therock"),
        (Origin("2.9.0", requires=("rocm",)), "therock"),
        (Origin("2.7.0a0+gitbfd8155"), "source-build"),
        (Origin("2.9.0a0"), "source-build"),
        (Origin("2.9.1", url="https://repo.radeon.com/rocm/manylinux/rocm-rel-7.1.1/torch.whl"), "radeon-repo"),
        (Origin("2.9.1", url="https://download.pytorch.org/whl/nightly/torch.whl"), "pytorch-index"),
        (Origin("2.9.1", url="https://rocm.nightlies.amd.com/v2/gfx1151/torch.whl"), "therock"),
        (Origin("2.9.1", url="file:///src/pytorch"), "source-build"),
        (Origin("2.9.1", url="file:///tmp/torch-2.9.1.whl"), "pypi"),
        (Origin("2.9.1", installer="conda\n"), "conda"),
        (Origin("2.6.0", path="/usr/lib/python3/dist-packages/torch"), "distro"),
        (Origin("2.9.1+mine"), "unknown"),
        (Origin(""), "unknown"),
    ],
)
def test_source(origin: Origin, source: str) -> None:
    assert guess_source(origin) == source


def test_backend_of_tag() -> None:
    assert backend_of_tag("0.20.1+rocm6.2") == "rocm"
    assert backend_of_tag("2.6.0+cu126") == "cuda"
    assert backend_of_tag("2.6.0+cpu") == "cpu"
    assert backend_of_tag("2.6.0") == "unknown"


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert parse_version_py(text).backend in {"rocm", "cuda", "cpu", "xpu", "unknown"}
    assert guess_source(Origin(text, url=text, requires=(text,)))
