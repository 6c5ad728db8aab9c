"""What the extensions of a ``setup.py`` define, also in loops and by parts of texts; what is not known is said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.core.beneath import Beneath
from rocmend.port.definitions.macros import Definitions
from rocmend.port.definitions.units import Builds

HEAD = "import os, torch\nfrom setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
TAIL = 'setup(ext_modules=[CUDAExtension("e", ["k.cu"], extra_compile_args={"nvcc": flags})])\n'


def way(folder: Path, body: str, tail: str = TAIL) -> Definitions:
    (folder / "setup.py").write_text(HEAD + body + tail)
    with Beneath(folder) as tree:
        (one,) = Builds(tree).of_unit("k.cu")
        return one


@pytest.mark.parametrize(
    ("body", "defined"),
    [
        ("flags = []\nfor one in ['A', 'B']:\n    flags.append('-D' + one)\n", {"A": "1", "B": "1"}),
        ("NAMES = ('A', 'B')\nflags = ['-O3'] + [f'-DIS_{one}=2' for one in NAMES]\n", {"IS_A": "2", "IS_B": "2"}),
        (
            "flags = []\nfor k, v in {'A': 1, 'B': 'x'}.items():\n  flags += ['-D%s=%s' % (k, v)]\n",
            {"A": "1", "B": "x"},
        ),
        ("flags = ['-O3']\nfor k, v in [('A', 1)]:\n    flags += ['-D{}={}'.format(k, v)]\n", {"A": "1"}),
        ("WIDTH = 32\nflags = ['-DWIDTH=' + str(WIDTH)]\n", {"WIDTH": "32"}),
        ("def f(given):\n    return given + ['-DB']\nflags = f(['-DA']) if True else []\n", {"A": "1", "B": "1"}),
        ("flags = list(torch.utils.cpp_extension.COMMON_HIP_FLAGS) + ['-DA']\n", {"A": "1"}),
        ("flags = os.environ.get('FLAGS', '').split() + ['-DA']\n", {"A": "1"}),
    ],
)
def test_loops_and_parts_of_texts_are_followed(body: str, defined: dict[str, str], tmp_path: Path) -> None:
    made = way(tmp_path, body)
    assert (made.defined, made.unknown) == (defined, ())


@pytest.mark.parametrize(
    ("body", "name", "line"),
    [
        ("flags = []\nfor one in names():\n    flags.append('-D' + one)\n", "", 6),
        ("flags = ['-DVERSION=' + version()]\n", "VERSION", 4),
        ("from build import flags\n", "", 5),
        ("flags = ['-O3'] + given()\n", "", 4),
        ("flags = ['-O3']\nif has_it():\n    flags.append('-DX')\n", "X", 5),
        ("flags = ['-O3']\ntry:\n    import x\n    flags.append('-DX')\nexcept ImportError:\n    pass\n", "X", 5),
        ("flags = ['-O3']\nothers = ['-DX']\n", "X", 5),
    ],
)
def test_what_is_not_known_is_said_with_its_line(body: str, name: str, line: int, tmp_path: Path) -> None:
    made = way(tmp_path, body)
    assert {one.name for one in made.unknown} == {name}, made
    assert f"setup.py, line {line}: " in made.unknown[0].why, made
    assert made.defined == {}


@pytest.mark.parametrize(
    ("macros", "defined", "unknown"),
    [
        ("[('A', None), ('N', '2')]", {"A": "", "N": "2"}, set()),
        ("[(one, None) for one in ['A', 'B']]", {"A": "", "B": ""}, set()),
        ("[('N', str(count()))]", {}, {"N"}),
        ("[(name(), None)]", {}, {""}),
        ("made()", {}, {""}),
    ],
)
def test_pairs_of_macros(macros: str, defined: dict[str, str], unknown: set[str], tmp_path: Path) -> None:
    made = way(tmp_path, "", f'CUDAExtension("e", ["k.cu"], define_macros={macros})\n')
    assert (made.defined, {one.name for one in made.unknown}) == (defined, unknown)


def test_a_script_is_executed_as_one(tmp_path: Path) -> None:
    body = "if __name__ == '__main__':\n    flags = ['-DA']\n    " + TAIL
    assert (way(tmp_path, body, "").defined, way(tmp_path, body, "").unknown) == ({"A": "1"}, ())


def test_arguments_of_an_extension_in_a_dict(tmp_path: Path) -> None:
    body = "given = {'extra_compile_args': ['-DA'], 'define_macros': [('B', None)]}\n"
    made = way(tmp_path, body, 'CUDAExtension("e", ["k.cu"], **given)\n')
    assert (made.defined, made.unknown) == ({"A": "1", "B": ""}, ())
    assert {one.name for one in way(tmp_path, "", 'CUDAExtension("e", ["k.cu"], **given())\n').unknown} == {""}
