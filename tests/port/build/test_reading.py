"""Reading build files, scripts and lists: what is found, and that places are places of the file."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.port.build.dependencies import parsed
from rocmend.port.build.file import TextFile
from rocmend.port.build.kinds import Kind, destination, kind_of
from rocmend.port.build.make import What


def held(file: TextFile, start: int, end: int) -> str:
    return file.data[start:end].decode()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("CMakeLists.txt", Kind.CMAKE),
        ("cmake/FindX.cmake", Kind.CMAKE),
        ("src/Makefile", Kind.MAKE),
        ("rules.mk", Kind.MAKE),
        ("docker/Dockerfile", Kind.DOCKERFILE),
        ("docker/app.Dockerfile", Kind.DOCKERFILE),
        ("Dockerfile.cuda", Kind.DOCKERFILE),
        ("docker-compose.dev.yml", Kind.COMPOSE),
        ("environment.yml", Kind.CONDA),
        (".github/workflows/ci.yml", Kind.WORKFLOW),
        ("sub/.github/workflows/ci.yaml", Kind.WORKFLOW),
        ("config/run.yaml", Kind.YAML),
        ("requirements.txt", Kind.REQUIREMENTS),
        ("requirements/dev.in", Kind.REQUIREMENTS),
        ("dev-requirements.txt", Kind.REQUIREMENTS),
        ("notes.txt", None),
        ("Dockerfile.rocm", None),
        ("requirements-rocm.txt", None),
        ("cmake/hip.cmake", None),
        ("backends/rocm6/CMakeLists.txt", None),
        ("chip/CMakeLists.txt", Kind.CMAKE),
        ("amd64.mk", Kind.MAKE),
    ],
)
def test_kinds(path: str, kind: Kind | None) -> None:
    assert kind_of(path) is kind


@pytest.mark.parametrize(
    ("path", "beside"),
    [
        ("Dockerfile", "Dockerfile.rocm"),
        ("a/Dockerfile.dev", "a/Dockerfile.dev.rocm"),
        ("a/app.Dockerfile", "a/app.rocm.Dockerfile"),
        ("docker-compose.yml", "docker-compose.rocm.yml"),
        ("requirements.txt", "requirements-rocm.txt"),
        ("environment.yml", "environment-rocm.yml"),
        (".env", ".env.rocm"),
        ("CMakeLists.txt", "CMakeLists.txt"),
        ("pyproject.toml", "pyproject.toml"),
    ],
)
def test_destinations(path: str, beside: str) -> None:
    assert destination(path) == beside
    assert kind_of(beside) is None or beside == path  # what was written is not read as something to port


def test_binary_is_refused() -> None:
    with pytest.raises(DataError):
        TextFile("Makefile", b"a\x00b")


def test_cmake_commands_arguments_and_blocks() -> None:
    text = (
        '# set(A 1)\nSet(B "x y" [[z ")" ]] ${C}/d.cu) # end\n#[[ set(D 1) ]]\nif(USE_HIP)\n  e()\nelse()\n'
        "  f()\nendif()\n"
        "if(G)\n  h(\n    i # set(J)\n    j)\nendif()\n"
    )
    file = TextFile("CMakeLists.txt", text.encode())
    names = [command.name for command in file.cmake]
    assert names == ["set", "if", "e", "else", "f", "endif", "if", "h", "endif"]
    assert file.cmake[0].values() == ("B", "x y", 'z ")" ', "${C}/d.cu")
    assert [held(file, one.start, one.end) for one in file.cmake[0].arguments] == list(file.cmake[0].values())
    assert [command.settled for command in file.cmake] == [False, True, True, True, True, True, False, False, False]
    assert file.cmake[7].values() == ("i", "j")
    assert held(file, file.cmake[7].start, file.cmake[7].end) == "h(\n    i # set(J)\n    j)"


def test_makefile_statements() -> None:
    text = (
        "A = 1 # one\nB := a \\\n  b\nifdef USE_ROCM\nC = 2\nelse\nC = 3\nendif\n"
        "x: y\n\t@echo $(A) \\\n\t  b # no comment\n\tcc\nz: D += 4\ndefine E\nF = 5\nendef\nexport G ?= 6\n"
    )
    file = TextFile("Makefile", text.encode())
    assigned = {
        one.name: held(file, one.value_start, one.value_end) for one in file.make if one.what is What.ASSIGNMENT
    }
    assert assigned == {"A": "1", "B": "a \\\n  b", "C": "3", "D": "4", "F": "5", "G": "6"}
    assert [one.settled for one in file.make if one.name == "C"] == [True, True]
    assert [one.fixed for one in file.make if one.name == "F"] == [True]
    recipes = [held(file, one.value_start, one.value_end) for one in file.make if one.what is What.RECIPE]
    assert recipes == ["echo $(A) \\\n\t  b # no comment", "cc"]


def test_shell_words_and_statements() -> None:
    text = (
        'export A="b c"  # comment\nD=1 run --x=\'y z\' "$(inner a)" `back` && more\n'
        "if test -e rocm; then\n  settled\nfi\nfor i in a b; do\n  body\ndone\ncat <<EOF\nnot a command\nEOF\n"
        "last \\\n  word\n"
    )
    file = TextFile("run.sh", text.encode())
    assert [one.name for one in file.commands] == [
        *("export", "run", "inner", "back", "more", "test", "settled", "body", "cat", "last")
    ]
    by_name = {one.name: one for one in file.commands}
    assert [word.value for word in by_name["run"].words] == ["D=1", "run", "--x=y z", "$(inner a)", "`back`"]
    assert [word.value for word in by_name["run"].assignments] == ["D=1"]
    assert by_name["export"].arguments[0].value == "A=b c"
    assert by_name["inner"].inner
    assert by_name["settled"].settled
    assert not by_name["body"].settled
    alone = {name for name, one in by_name.items() if one.alone}
    assert alone == {"export", "run", "inner", "back", "more", "settled", "body", "last"}
    assert held(file, *by_name["more"].statement).startswith("D=1 run")
    assert held(file, *by_name["last"].statement) == "last \\\n  word"


def test_dockerfile_instructions() -> None:
    text = (
        "# syntax\nFROM a\nRUN apt-get update && \\\n    # why\n    pip install b\nRUN <<EOF\nc d\nEOF\n"
        'ENV E=1 F="2 3"\nENV G h\n'
    )
    file = TextFile("Dockerfile", text.encode())
    assert [one.keyword for one in file.instructions] == ["FROM", "RUN", "RUN", "ENV", "ENV"]
    assert [one.name for one in file.commands if one.name != ""][:2] == ["apt-get", "pip"]
    assert {one.name: one.value for one in file.settings} == {"E": "1", "F": "2 3", "G": "h"}
    assert [one.name for one in file.dependencies] == ["b"]


def test_yaml_entries_agree_with_a_parser() -> None:
    text = (
        "a: 1  # one\nb:\n  - c: 'x # y'\n    d: \"e\"\n  - f\nlist:\n- g: h\n- i\nrun: |\n  echo a: b\n"
        "  echo c\nlast: ${{ x }}\n"
    )
    file = TextFile("a.yaml", text.encode())
    found = {(one.keys, one.value) for one in file.yaml if one.value}
    document = yaml.safe_load(text)
    assert (("a",), "1") in found
    assert document["b"][0] == {"c": "x # y", "d": "e"}
    assert {(("b", "[]", "c"), "x # y"), (("b", "[]", "d"), "e"), (("b", "[]"), "f")} <= found
    assert {(("list", "[]", "g"), "h"), (("list", "[]"), "i"), (("last",), "${{ x }}")} <= found
    block = next(one for one in file.yaml if one.block)
    assert [line.strip() for line in held(file, block.start, block.end).splitlines()] == document["run"].splitlines()
    assert [one.name for one in file.commands] == ["echo", "echo"]


TOML = st.recursive(
    st.text(alphabet="ab #[]{},=.'", max_size=8) | st.integers(-5, 5) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


def written(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(written(one) for one in value) + "]"
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


def leaves(value: object) -> list[str]:
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


@given(st.dictionaries(st.sampled_from(["a", "b-c", "d_e"]), TOML, max_size=3))
def test_toml_values_are_what_the_parser_reads(table: dict[str, object]) -> None:
    text = "[x.y] # [z]\n" + "".join(f"{key} = {written(value)} # c\n" for key, value in table.items())
    file = TextFile("a.toml", text.encode())
    expected = [
        ((*("x", "y"), key), leaf) for key, value in tomllib.loads(text)["x"]["y"].items() for leaf in leaves(value)
    ]
    assert [(one.keys, one.text) for one in file.values] == expected
    assert [held(file, one.start, one.end) for one in file.values] == [leaf for _, leaf in expected]


@given(st.dictionaries(st.text(alphabet="abc", min_size=1), TOML, max_size=3))
def test_json_values_are_what_the_parser_reads(table: dict[str, object]) -> None:
    text = json.dumps(table, indent=1)
    file = TextFile("a.json", text.encode())
    expected = [leaf for value in json.loads(text).values() for leaf in leaves(value)]
    assert [one.text for one in file.values] == expected


@given(st.text(alphabet="ab \t\n\r\\\"'`$(){}[]#:;&|<>=-,.é\x00", max_size=60), st.sampled_from(list(Kind)))
def test_whatever_stands_there_is_read(text: str, kind: Kind) -> None:
    path = {
        Kind.CMAKE: "CMakeLists.txt",
        Kind.MAKE: "Makefile",
        Kind.BAZEL: "BUILD",
        Kind.MESON: "meson.build",
        Kind.SHELL: "a.sh",
        Kind.DOCKERFILE: "Dockerfile",
        Kind.COMPOSE: "compose.yml",
        Kind.CONDA: "environment.yml",
        Kind.WORKFLOW: ".gitlab-ci.yml",
        Kind.ENV: ".env",
        Kind.YAML: "a.yaml",
        Kind.TOML: "a.toml",
        Kind.INI: "a.cfg",
        Kind.JSON: "a.json",
        Kind.REQUIREMENTS: "requirements.txt",
    }[kind]
    try:
        file = TextFile(path, text.encode())
    except DataError:
        assert "\x00" in text
        return
    for command in file.commands:
        assert command.start <= command.end <= len(file.data)
    for setting in file.settings:
        assert 0 <= setting.start <= setting.end <= len(file.data)
    for dependency in file.dependencies:
        assert dependency.name in dependency.name.lower()
        assert 0 <= dependency.start < dependency.end <= len(file.data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch", ("torch", (), "")),
        ("Torch_Vision == 0.1", ("torch-vision", (), "== 0.1")),
        ("jax[cuda12,k8s]>=0.4,<1", ("jax", ("cuda12", "k8s"), ">=0.4,<1")),
        ("a; python_version < '3.9'", ("a", (), "")),
        ("a @ https://example.org/a.whl", ("a", (), "@ https://example.org/a.whl")),
        ("torch (>=1.0)", ("torch", (), "(>=1.0)")),
        ("a==1 --hash=sha256:1", ("a", (), "==1")),
        ("./local", None),
        ("a b", None),
    ],
)
def test_requirements(text: str, expected: object) -> None:
    assert parsed(text) == expected


def test_dependencies_of_every_kind() -> None:
    for path, text in {
        "requirements.txt": "# torch==0\nnumpy\ntorch==2.1 ; python_version > '3'  # why\n-r other.txt\n",
        "pyproject.toml": "[project]\ndependencies = [\n 'numpy', # torch==0\n 'torch==2.1; os_name > \"3\"',\n]\n",
        "setup.cfg": "[options]\ninstall_requires =\n  numpy\n  torch==2.1\n",
        "environment.yml": "dependencies:\n  - python=3.10\n  - pip:\n    - numpy\n    - torch==2.1\n",
        "install.sh": "uv pip install -r x.txt --index-url https://a/b numpy 'torch==2.1'\n",
        "Makefile": "all:\n\tpython3 -m pip install -U numpy torch==2.1\n",
    }.items():
        found = {one.name: one.version for one in TextFile(path, text.encode()).dependencies}
        found.pop("python", None)
        assert found == {"numpy": "", "torch": "==2.1"}, path
