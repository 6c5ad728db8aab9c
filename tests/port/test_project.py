"""What a project is, and what its port consists of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.port.analyse import analyse
from rocmend.port.phases import TITLES, phase_of
from rocmend.port.project import Project, ProjectKind, understand
from rocmend.port.rule import rules

Make = Callable[[Path, dict[str, str | bytes]], Path]

KERNEL = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n"
SETUP = "from torch.utils.cpp_extension import CUDAExtension\n"
CMAKE = "project(x LANGUAGES CXX CUDA)\n"
MAKE = "k: k.cu\n\tnvcc -o k k.cu\n"


def known(root: Path) -> Project:
    return understand(root, analyse(root, cache=False))


def applying(project: Project) -> set[int]:
    return {phase.number for phase in project.phases if phase.applies}


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"a.py": "import torch\n"}, ProjectKind.PYTHON),
        ({"a.py": "import triton\n"}, ProjectKind.TRITON),
        ({"setup.py": SETUP, "k.cu": KERNEL}, ProjectKind.EXTENSION),
        ({"CMakeLists.txt": CMAKE, "k.cu": KERNEL}, ProjectKind.CMAKE),
        ({"Makefile": MAKE, "k.cu": KERNEL}, ProjectKind.MAKE),
        ({"Makefile": MAKE, "setup.py": SETUP, "k.cu": KERNEL}, ProjectKind.MIXED),
        ({"k.cu": KERNEL}, ProjectKind.SOURCES),
        ({"Makefile": "all:\n\tcc a.c\n", "a.c": "int x;\n"}, ProjectKind.NOTHING),
        ({"Makefile": "all:\n\tcc a.c\n", "a.py": "import torch\n"}, ProjectKind.PYTHON),
    ],
)
def test_kinds(tmp_path: Path, make_project: Make, files: dict[str, str | bytes], kind: ProjectKind) -> None:
    project = known(make_project(tmp_path, files))
    assert project.kind is kind
    assert project.why


def test_a_python_project_skips_the_phases_of_sources(tmp_path: Path, make_project: Make) -> None:
    project = known(make_project(tmp_path, {"a.py": "import torch\ntorch.compile(f)\n"}))
    assert applying(project) == {0, 1, 6, 8}
    assert "no CUDA C++" in project.phases[2].reason
    assert [phase.title for phase in project.phases] == list(TITLES)


def test_sources_need_every_phase_that_is_about_them(tmp_path: Path, make_project: Make) -> None:
    files: dict[str, str | bytes] = {"k.cu": "#include <cutlass/gemm.h>\n" + KERNEL, "CMakeLists.txt": CMAKE}
    project = known(make_project(tmp_path, files))
    assert applying(project) >= {0, 1, 2, 3, 4, 5, 8}
    assert "CUTLASS" in project.phases[5].reason
    assert project.builds == ("CMakeLists.txt",)


def test_what_rules_find_makes_a_phase_apply(tmp_path: Path, make_project: Make) -> None:
    """A flag for nvcc in a Python project without any CUDA source of its own."""
    source = 'import os\nos.environ["TORCH_CUDA_ARCH_LIST"] = "8.0"\n'
    project = known(make_project(tmp_path, {"a.py": source}))
    assert project.phases[4].applies
    assert project.phases[4].rules


def test_estimates_add_up(project: Path) -> None:
    analysis = analyse(project)
    whole = understand(project, analysis)
    for name in ("auto", "suggested", "manual", "notes"):
        assert getattr(whole.estimate, name) == sum(getattr(phase.estimate, name) for phase in whole.phases)
    assert sum((whole.estimate.auto, whole.estimate.suggested, whole.estimate.manual, whole.estimate.notes)) == len(
        analysis.issues
    )
    assert whole.files.read == sum(analysis.looked_at.values())
    assert whole.files.done + whole.files.manual <= len(analysis.files)


def test_dependencies_containers_and_workflows(tmp_path: Path, make_project: Make) -> None:
    project = known(
        make_project(
            tmp_path,
            {
                "pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.11"\n'
                'dependencies = ["torch==2.7.1", "jax[cuda12]", "numpy>=1,<3"]\n'
                '[project.scripts]\nx-train = "x.train:main"\n',
                "x/train.py": 'import torch\nimport jax\nif __name__ == "__main__":\n    main()\n',
                "tests/run.py": 'if __name__ == "__main__":\n    main()\n',
                "docker/Dockerfile": "FROM nvidia/cuda:12.4.0-base\n",
                "docker/Dockerfile.rocm": "FROM rocm/pytorch\n",
                ".github/workflows/test.yml": "on: push\n",
                ".gitmodules": '[submodule "y"]\n\tpath = third_party/y\n\turl = https://example.com/y\n',
                "third_party/z/k.cu": KERNEL,
            },
        )
    )
    by_name = {one.name: one for one in project.dependencies}
    assert (by_name["torch"].pinned, by_name["torch"].role, by_name["torch"].line) == (True, "torch", 4)
    assert (by_name["jax"].pinned, by_name["jax"].role) == (False, "cuda")
    assert (by_name["numpy"].pinned, by_name["numpy"].role) == (False, "")
    assert project.requires_python == ">=3.11"
    assert [entry.name for entry in project.entry_points] == ["x-train", "train.py"]
    assert project.containers == ("docker/Dockerfile",)
    assert project.own_rocm == ("docker/Dockerfile.rocm",)
    assert project.workflows == (".github/workflows/test.yml",)
    assert project.submodules == ("third_party/y",)
    assert project.vendored == {"third_party": 1}
    assert "jax" in project.phases[0].reason
    assert "PyTorch's path" in project.phases[0].reason


def test_a_single_file_is_understood_alone(project: Path) -> None:
    path = project / "csrc" / "total.cu"
    whole = understand(path, analyse(path))
    assert (whole.cuda_sources, whole.python_files) == (1, 0)


def test_every_rule_belongs_to_a_phase() -> None:
    assert {rule.id: phase_of(rule.id) for rule in rules() if phase_of(rule.id) == len(TITLES) - 1} == {}
