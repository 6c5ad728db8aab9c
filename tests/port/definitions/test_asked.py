"""A source is undecided only where it asks for what is not known."""

from __future__ import annotations

import pytest

from rocmend.port.definitions.asked import undecided
from rocmend.port.definitions.macros import Definitions, Unknown

ANY = Definitions({"KNOWN": "1"}, unknown=(Unknown("", "CMakeLists.txt, line 3: include(x.cmake)"),))
WIDTH = Definitions({}, unknown=(Unknown("WIDTH", "Makefile, line 2: another recipe"),))


@pytest.mark.parametrize(
    "source",
    [
        b"#ifndef K_CUH\n#define K_CUH\nint x;\n#endif\n",
        b"#if defined(USE_ROCM) || __CUDA_ARCH__ >= 700 || CUDA_VERSION > 1 /* OTHER */\n#endif\n",
        b"#ifdef KNOWN\n#endif\n#ifdef NDEBUG\n#endif\nint OTHER; // #if OTHER\n",
        b"int x = WIDTHS;\n",
    ],
)
def test_what_a_source_does_not_ask_for_does_not_matter(source: bytes) -> None:
    assert undecided(ANY, [source]) == ""
    assert undecided(WIDTH, [source]) == ""


@pytest.mark.parametrize(
    "source",
    [
        b"#ifndef WIDTH\n#define WIDTH 32\n#endif\n",
        b"#if defined(USE_ROCM) && \\\n  WIDTH > 3\n#endif\n",
        b"#if 0\n#elif WIDTH\n#endif\n",
    ],
)
def test_what_a_source_asks_for_is_said_with_the_line(source: bytes) -> None:
    told = undecided(ANY, [b"", source])
    assert "CMakeLists.txt, line 3: include(x.cmake)" in told
    assert told.endswith("asks for WIDTH")
    assert "whether WIDTH is defined, or as what (Makefile, line 2: another recipe)" in undecided(WIDTH, [source])


def test_a_value_may_be_unknown_too() -> None:
    assert "WIDTH" in undecided(WIDTH, [b"int x = WIDTH;\n"])
    assert undecided(Definitions({"WIDTH": "1"}), [b"#if WIDTH\n#endif\n"]) == ""
