"""Writing for ROCm: conditions of each language, and what the tools themselves make of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import UnitError
from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.gates import GATES
from rocmend.port.build.identity import broken, restored
from rocmend.port.build.kinds import kind_of
from rocmend.port.build.write import ported, redirected
from rocmend.port.records import Edit, Issue, Outcome


def issue(*edits: Edit) -> Issue:
    return Issue("XX01", "p", 1, 1, 1, 0, 1, Severity.ERROR, Outcome.AUTO, "m", edits=edits)


def swap(path: str, text: str, old: str, new: str) -> str:
    at = text.encode().index(old.encode())
    return ported(path, text.encode(), [issue(Edit(at, at + len(old.encode()), new.encode()))]).decode()


def test_a_changed_line_stands_beside_the_original() -> None:
    text = "é = 1\nA = x\nB = 2\n"
    after = swap("Makefile", text, "x", "y")
    assert after == "é = 1\nifdef USE_ROCM\nA = y\nelse\nA = x\nendif\nB = 2\n"
    assert restored("Makefile", after.encode()) == text.encode()


def test_a_line_that_goes_is_kept_for_others() -> None:
    assert swap("CMakeLists.txt", "  a()\n", "a()", "") == "  if(NOT USE_ROCM)\n    a()\n  endif()\n"
    assert swap("Makefile", "A = 1 # why\n", "A = 1", "") == "ifndef USE_ROCM\nA = 1 # why\nendif\n"


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ('set(F "${F} -G")\n', " -G"),
        ('set(F "${F} \\\n  -G")\n', "-G"),
        ("target_compile_options(a PRIVATE -G)\n", "-G"),
        ("target_compile_options(a PRIVATE\n  $<$<COMPILE_LANGUAGE:CUDA>:-G>)\n", "-G"),
    ],
)
def test_a_statement_of_cmake_that_says_nothing_more_goes(text: str, option: str) -> None:
    inside = text if "\\" in text else indent(text, "  ")  # a string over two lines stays as it is
    assert swap("CMakeLists.txt", text, option, "") == f"if(NOT USE_ROCM)\n{inside}endif()\n"


def test_options_for_a_language_that_gets_none_go() -> None:
    text = "target_compile_options(a PRIVATE\n  $<$<COMPILE_LANGUAGE:CXX>:-Wall>\n  $<$<COMPILE_LANGUAGE:CUDA>:-G>)\n"
    after = swap("CMakeLists.txt", text, "-G", "")
    rocm = "target_compile_options(a PRIVATE\n  $<$<COMPILE_LANGUAGE:CXX>:-Wall>\n)\n"
    assert after == f"if(USE_ROCM)\n{indent(rocm, '  ')}else()\n{indent(text, '  ')}endif()\n"


@pytest.mark.parametrize("path", ["requirements_ascend.txt", "src/musa/CMakeLists.txt", "docker/Dockerfile.gaudi"])
def test_files_for_the_chips_of_others_are_no_matter_of_a_port(path: str) -> None:
    assert kind_of(path) is None
    assert kind_of(path.replace("ascend", "cuda").replace("musa", "samusa").replace("gaudi", "cuda")) is not None


def test_lines_that_follow_each_other_share_a_condition() -> None:
    text = b"a()\nb()\nc()"
    after = ported("CMakeLists.txt", text, [issue(Edit(0, 1, b"x")), issue(Edit(4, 5, b"y"))])
    assert after == b"if(USE_ROCM)\n  x()\n  y()\nelse()\n  a()\n  b()\nendif()\nc()"
    assert restored("CMakeLists.txt", after) == text


def test_lines_are_added_after_a_statement() -> None:
    text = b"a(\n  b)\r\nc()\r\n"
    end = text.index(b"\r\n")
    after = ported("CMakeLists.txt", text, [issue(Edit(end, end, b"\nd()"))])
    assert after == b"a(\n  b)\r\nif(USE_ROCM)\n  d()\nendif()\r\nc()\r\n"
    assert restored("CMakeLists.txt", after) == text


@pytest.mark.parametrize("text", ["a()", "a()\r", "a()\n", "a()\r\n", "\ufeffa()\n", "\n\na()\n\n"])
@pytest.mark.parametrize("new", ["b", ""])
def test_the_end_of_a_file_stays_what_it_was(text: str, new: str) -> None:
    data = text.encode()
    at = data.index(b"a()")
    after = ported("CMakeLists.txt", data, [issue(Edit(at, at + 3, b"b()" if new else b""))])
    assert after != data
    assert restored("CMakeLists.txt", after) == data
    assert broken("CMakeLists.txt", data, after) is None


def test_a_projects_own_condition_is_not_taken_for_broken() -> None:
    text = b"if(USE_ROCM)\n  x()\nelseif(Y)\n  y()\nendif()\nif(USE_ROCM)\n  z()\nendif()\na()\n"
    at = text.index(b"a()")
    after = ported("CMakeLists.txt", text, [issue(Edit(at, at + 1, b"b"))])
    assert broken("CMakeLists.txt", text, after) is None
    assert broken("CMakeLists.txt", text, after.replace(b"\n  a()", b"\n  c()")) is not None
    assert broken("CMakeLists.txt", text, text.replace(b"a()", b"b()")) is not None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.sh", 'export A="x\n  y"\n'),
        ("a.sh", "\tx a\n"),
        ("a.sh", "nvcc -DA=x\\\ny\n"),
        ("a.sh", 'x "$(echo "a\nb")"\n'),
        ("CMakeLists.txt", 'set(F "x -DA=\\"b\nc\\" -O3")\n'),
        ("CMakeLists.txt", "set(F [[x\nb]])\n"),
    ],
)
def test_lines_that_are_part_of_a_text_stay_where_they_are(path: str, text: str) -> None:
    after, kind = swap(path, text, "x", "z"), kind_of(path)
    assert kind is not None
    assert f"{GATES[kind].otherwise}\n{text}" in after
    assert restored(path, after.encode()) == text.encode()
    moved = after.replace(text, indent(text, "  "))
    assert broken(path, text.encode(), moved.encode()) is not None, "what moved is not taken for the original"


def test_where_no_condition_can_stand_nothing_is_written() -> None:
    for path, text in {
        "CMakeLists.txt": "if(X)\nendif()\n",
        "a.sh": "if x; then\n  y\nfi\n",
        "a.yaml": "x: 1\n",
        "Makefile": "define A\nx = 1\nendef\n",
    }.items():
        at = text.lower().index("x")
        with pytest.raises(UnitError):
            ported(path, text.encode(), [issue(Edit(at, at + 1, b"z"))])
        assert TextFile(path, text.encode()).region(at, at + 1) is None


def test_lists_and_images_name_the_rocm_sides_of_lists() -> None:
    image = (
        b"# requirements.txt\nCOPY requirements.txt /a/requirements.txt\nRUN pip install -r /a/requirements.txt -r b\n"
    )
    made = redirected(
        {
            "requirements.txt": b"numpy\n",
            "requirements/dev.txt": b"-r ../requirements.txt\n-r base.txt\nx\n",
            "docker/Dockerfile": image + b"RUN cat my-requirements.txt dev.txt\n",
        }
    )
    assert made == {
        "requirements-rocm.txt": b"numpy\n",
        "requirements/dev-rocm.txt": b"-r ../requirements-rocm.txt\n-r base.txt\nx\n",
        "docker/Dockerfile.rocm": (
            b"# requirements.txt\nCOPY requirements-rocm.txt /a/requirements-rocm.txt\n"
            b"RUN pip install -r /a/requirements-rocm.txt -r b\nRUN cat my-requirements.txt dev-rocm.txt\n"
        ),
    }


STATEMENTS = {
    "Makefile": ["A = x\n", "B := x \\\n  y\n", "t: u\n\techo x\n", "# x\n", "\n", "ifdef C\nD = x\nendif\n"],
    "a.sh": [
        "x y\n",
        "A=x y z \\\n  w\n",
        "# x\n",
        "\n",
        "if a; then\n  x\nfi\n",
        "f() {\n  x && y\n}\n",
        "cat <<E\nx\nE\n",
    ],
    "CMakeLists.txt": ["a(x)\n", 'b("x" y\n  z) # x\n', "# x\n", "\n", "if(c)\n  d(x)\nelse()\n  e(x)\nendif()\n"],
}


@given(st.sampled_from(sorted(STATEMENTS)), st.data(), st.booleans(), st.booleans())
def test_the_nvidia_side_is_the_original(path: str, data: st.DataObject, crlf: bool, cut: bool) -> None:
    """Every word x that can be changed is, or goes with its statement; folded, the file is what it was."""
    text = "".join(data.draw(st.lists(st.sampled_from(STATEMENTS[path]), max_size=8)))
    before = (text.replace("\n", "\r\n") if crlf else text).encode()
    before = before.removesuffix(b"\r\n").removesuffix(b"\n") if cut else before
    if path == "Makefile" and before.endswith(b"\\"):
        return
    file = TextFile(path, before)
    places = [
        at
        for at in range(len(before))
        if before[at : at + 1] == b"x" and before[at - 2 : at] != b"# " and file.region(at, at + 1) is not None
    ]
    edits = [Edit(at, at + 1, data.draw(st.sampled_from([b"new", b"new words"]))) for at in places]
    after = ported(path, before, [issue(*edits)] if edits else [])
    assert restored(path, after) == before
    assert (after != before) == bool(edits)
    again = TextFile(path, after)
    assert all(again.region(at, at + 3) is None for at in range(len(after)) if after[at : at + 3] == b"new")


def run(argv: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(argv, cwd=folder, env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_takes_the_branch_it_is_asked_for(tmp_path: Path) -> None:
    text = "CC = one\nF = a \\\n  b\nall:\n\t@echo $(CC) $(F)\n\t@echo one last\n"
    data = text.encode()
    places = [data.index(b"one"), data.index(b"b\nall"), data.index(b"one last")]
    after = ported("Makefile", data, [issue(*(Edit(at, at + (3 if at != places[1] else 1), b"two") for at in places))])
    (tmp_path / "Makefile").write_bytes(after)
    assert run(["make"], tmp_path) == "one a b\none last\n"
    assert run(["make", "USE_ROCM=1"], tmp_path) == "two a two\ntwo last\n"


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_cmake_takes_the_branch_it_is_asked_for(tmp_path: Path) -> None:
    data = b'set(A one)\nforeach(i 1)\n  set(B\n    one)\nendforeach()\nmessage("${A} ${B}")\n'
    first, second = data.index(b"one"), data.rindex(b"one")
    after = ported("a.cmake", data, [issue(Edit(first, first + 3, b"two"), Edit(second, second + 3, b"two"))])
    (tmp_path / "a.cmake").write_bytes(after)
    for define, expected in (("-DX=1", "one one"), ("-DUSE_ROCM=ON", "two two"), ("-DUSE_ROCM=OFF", "one one")):
        done = subprocess.run(["cmake", define, "-P", "a.cmake"], cwd=tmp_path, capture_output=True, check=True)
        assert done.stderr.decode().strip() == expected


@pytest.mark.skipif(shutil.which("sh") is None, reason="no sh")
def test_sh_takes_the_branch_it_is_asked_for(tmp_path: Path) -> None:
    data = b"set -eu\nf() {\n  echo one |\n    cat\n}\nf\nA=one; echo $A\n"
    first, second = data.index(b"one"), data.rindex(b"one")
    after = ported("a.sh", data, [issue(Edit(first, first + 3, b"two"), Edit(second, second + 3, b"two"))])
    (tmp_path / "a.sh").write_bytes(after)
    assert run(["sh", "a.sh"], tmp_path) == "one\none\n"
    assert run(["sh", "a.sh"], tmp_path, USE_ROCM="") == "one\none\n"
    assert run(["sh", "a.sh"], tmp_path, USE_ROCM="1") == "two\ntwo\n"
