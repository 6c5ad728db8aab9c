"""What a Makefile defines for the compiler of a source."""

from __future__ import annotations

import pytest

from rocmend.port.definitions.macros import Definitions
from rocmend.port.definitions.make import Makefile

PORTED = b"""\
ifdef USE_ROCM
CC        = hipcc -DUSE_ROCM
else
CC        = nvcc -DFOR_CUDA
endif
DEBUG     = no
SIZE     ?= 1024
obj = $(source:.cu=.o)
CFLAGS := $(EXTRA_CFLAGS) -std=c++17 -DSIZE=$(SIZE)
ifeq ($(DEBUG),yes)
  CFLAGS += -g -DDEBUG
else ifeq ($(DEBUG),no)
  CFLAGS += -DRELEASE \\
            -D NAME=\\"a\\"
else
  CFLAGS += -DNEITHER
endif
ifeq ($(shell uname),Linux)
  CFLAGS += -DON_LINUX
else
  CFLAGS += -DELSEWHERE
endif
VERSION := $(shell git describe)
CFLAGS += -DVERSION=$(VERSION)

main: main.o other.o
\t$(CC) $(CFLAGS) $^ -o $@

other.o: src/other.cu
\t@echo -DNOT_AN_OPTION -c
\t$(CC) $(CFLAGS) -DOTHER -c $< -o $@

%.o: %.cu
\t$(CC) $(CFLAGS) -DANY -c $< -o $@
"""


def made(unit: str, makefile: bytes = PORTED, **others: bytes) -> Definitions:
    return Makefile("Makefile", {"Makefile": makefile, **others}.get).definitions(unit)


def unknown(unit: str, makefile: bytes = PORTED, **others: bytes) -> dict[str, str]:
    return {one.name: one.why for one in made(unit, makefile, **others).unknown}


def test_the_recipe_of_a_source_is_followed_as_make_does() -> None:
    common = {"USE_ROCM": "1", "SIZE": "1024", "RELEASE": "1", "NAME": '"a"'}
    assert made("main.cu").defined == {**common, "ANY": "1"}
    assert made("src/other.cu").defined == {**common, "OTHER": "1"}


def test_what_only_a_shell_could_tell_is_unknown() -> None:
    found = unknown("main.cu")
    assert set(found) == {"ON_LINUX", "ELSEWHERE", "VERSION"}
    assert all("Makefile, line 33" in why for why in found.values())


def test_rules_that_make_has_itself_use_the_usual_variables() -> None:
    assert made("a.cu", b"CXXFLAGS = -DA\nCFLAGS += -DB=2\nFLAGS = -DC\n").defined == {"A": "1", "B": "2"}


def test_what_refers_to_itself_is_unknown() -> None:
    assert set(unknown("a.cu", b"A = $(B) -DA\nB = $(A)\nmain: a.cu\n\tnvcc $(A) -DX -c a.cu\n")) == {""}
    assert made("a.cu", b"A = $(B) -DA\nB = $(A)\nmain: a.cu\n\tnvcc $(A) -DX -c a.cu\n").defined == {}
    assert made("a.cu", b"main: a.cu\n\tnvcc -DX='1 -c a.cu\n").defined == {}


TWO = b"""\
a.o: a.cu
\tnvcc -DN=1 -DSAME -c a.cu -o a.o
a_fast.o: a.cu
\tnvcc -DN=2 -DSAME -DFAST -c a.cu -o a_fast.o
"""


def test_of_two_recipes_for_a_source_what_differs_is_unknown() -> None:
    assert made("a.cu", TWO).defined == {"SAME": "1"}
    found = unknown("a.cu", TWO)
    assert set(found) == {"N", "FAST"}
    assert all("Makefile, line 3" in why for why in found.values())


@pytest.mark.parametrize(
    ("makefile", "name"),
    [
        (b"debug: CFLAGS += -DX\n%.o: %.cu\n\tnvcc $(CFLAGS) -c $<\n", "X"),
        (b"include ../config.mk\n%.o: %.cu\n\tnvcc -c $<\n", ""),
        (b"CFLAGS = $(shell pkg-config --cflags x)\n%.o: %.cu\n\tnvcc $(CFLAGS) -c $<\n", ""),
        (b"%.o: %.cu\n\tnvcc $(foreach d,A B,-D$(d)) -c $<\n", ""),
        (b"%.o: %.cu\n\tnvcc -DNAME=$* -c $<\n", "NAME"),
        (b"all:\n\tnvcc -DA -c a.cu\nrest:\n\tnvcc -DA -DX -c b.cu c.cu\n", "X"),
        (b"ifeq ($(shell uname),Linux)\n%.o: %.cu\n\tnvcc -DX -c $<\nendif\n", "X"),
    ],
)
def test_what_is_not_followed_may_be_defined(makefile: bytes, name: str) -> None:
    found = unknown("d.cu", makefile)
    assert list(found) == [name], found
    assert "Makefile" in found[name]
    assert name not in made("d.cu", makefile).defined


def test_lists_of_files_define_nothing() -> None:
    text = (
        b"SRC = $(wildcard *.cu)\nOBJ = $(SRC:.cu=.o)\n-include $(OBJ:.o=.d)\nmain: $(SRC)\n\tnvcc -DX $(SRC) -o $@\n"
    )
    assert made("a.cu", text) == Definitions({"X": "1"}, build="Makefile")


def test_files_of_the_project_are_included() -> None:
    assert made("a.cu", b"include mk/common.mk\n", **{"mk/common.mk": b"NVCCFLAGS = -DX\n"}).defined == {"X": "1"}
