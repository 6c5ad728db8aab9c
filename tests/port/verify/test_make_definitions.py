"""What a Makefile defines for the compiler of a source."""

from __future__ import annotations

from rocmend.port.verify.make_definitions import make_options

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


def macros(unit: str, makefile: bytes = PORTED) -> list[str]:
    return [word for word in make_options(makefile, unit) if word.startswith(("-D", "NAME"))]


def test_the_recipe_of_a_source_is_followed_as_make_does() -> None:
    common = ["-DUSE_ROCM", "-DSIZE=1024", "-DRELEASE", "-D", 'NAME="a"']
    assert macros("main.cu") == [*common, "-DANY"]
    assert macros("src/other.cu") == [*common, "-DOTHER"]


def test_rules_that_make_has_itself_use_the_usual_variables() -> None:
    assert macros("a.cu", b"CXXFLAGS = -DA\nCFLAGS += -DB=2\nFLAGS = -DC\n") == ["-DA", "-DB=2"]


def test_what_refers_to_itself_is_unknown() -> None:
    assert macros("a.cu", b"A = $(B) -DA\nB = $(A)\nmain: a.cu\n\tnvcc $(A) -DX -c a.cu\n") == []
    assert macros("a.cu", b"main: a.cu\n\tnvcc -DX='1 -c a.cu\n") == []
