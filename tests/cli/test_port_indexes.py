"""``port`` and installs that get PyTorch from an index for ROCm: they are right as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .port_project import Rocmend, data_of

RIGHT = (
    ("i.sh", "pip install torch --index-url https://download.pytorch.org/whl/rocm6.4\n"),
    ("i.sh", "pip install -i https://d2.example.net/v2/gfx1151/ torch torchvision xformers\n"),
    (
        "i.sh",
        'python3 -m pip install --index-url https://stable.repo.amd.com/rocm/whl-next/ "torch[device-gfx1010]"\n',
    ),
    ("i.sh", "pip install torch==2.8.0 --extra-index-url https://download.pytorch.org/whl/rocm6.4\n"),
    ("i.sh", "pip3 install torch==2.6.0 -f https://repo.radeon.com/rocm/manylinux/rocm-rel-6.4/\n"),
    ("i.sh", "uv pip install torch --extra-index-url https://download.pytorch.org/whl/rocm6.4\n"),
    ("i.sh", "uv pip install torch --torch-backend=rocm6.4\n"),
    ("i.sh", "uv pip install --torch-backend auto torch\n"),
    ("i.sh", "export PIP_INDEX_URL=https://download.pytorch.org/whl/rocm6.4\npip install torch\n"),
    ("i.sh", "PIP_INDEX_URL=https://download.pytorch.org/whl/rocm6.4 pip install torch\n"),
    ("i.sh", 'INDEX=https://download.pytorch.org/whl/rocm6.4\npip install torch --index-url "${INDEX}"\n'),
    ("i.sh", "pip config set global.index-url https://download.pytorch.org/whl/rocm6.4\npip install torch\n"),
    ("i.sh", "cat > ~/.pip/pip.conf <<E\n[global]\nindex-url = https://a.example/whl/rocm6.4\nE\npip install torch\n"),
    ("i.sh", "conda install pytorch -c https://conda.example.org/rocm\n"),
    ("i.sh", "pip install -r requirements.txt --index-url https://download.pytorch.org/whl/rocm6.4\n"),
    ("Dockerfile", "FROM rocm/pytorch\nRUN pip install torch --index-url https://a.example/whl/rocm6.4\n"),
    ("Dockerfile", "FROM a\nENV PIP_INDEX_URL=https://a.example/whl/rocm6.4\nRUN pip install torch\n"),
    ("Makefile", "INDEX := https://a.example/whl/rocm6.4\nall:\n\tpip install torch -i $(INDEX)\n"),
    ("requirements.txt", "--index-url https://download.pytorch.org/whl/rocm6.4\ntorch==2.8.0\n"),
    ("requirements.txt", "--find-links https://a.example/rocm/\ntorch==2.8.0\nnumpy\n"),
    ("requirements.txt", "torch==2.8.0+rocm6.4\nnumpy\n"),
    (
        "environment.yml",
        "dependencies:\n  - pip:\n    - --index-url https://a.example/whl/rocm6.4\n    - torch==2.8.0\n",
    ),
    (
        "pyproject.toml",
        '[project]\ndependencies = ["torch"]\n[[tool.uv.index]]\nurl = "https://a.example/whl/rocm6.4"\n',
    ),
    (
        ".github/workflows/a.yml",
        "env:\n  PIP_INDEX_URL: https://a.example/rocm\njobs:\n  a:\n    steps:\n    - run: pip install torch\n",
    ),
)
WRONG = (
    ("i.sh", "pip install torch --index-url https://a.example/whl/rocm6.4\npip install torch==2.8.0\n", "auto"),
    ("i.sh", "PIP_INDEX_URL=https://a.example/whl/rocm6.4 pip install torch\npip install torch\n", "auto"),
    ("i.sh", "pip install torch --extra-index-url https://a.example/whl/rocm6.4\n", "note"),
    ("i.sh", "uv pip install torch --extra-index-url https://a.example/whl/cu128\n", "auto"),
    (
        "Dockerfile",
        "FROM a\nENV PIP_INDEX_URL=https://a.example/whl/rocm6.4\nFROM b\nRUN pip install torch\n",
        "suggest",
    ),
    ("requirements.txt", "# --index-url https://a.example/whl/rocm6.4\ntorch==2.8.0\n", "auto"),
)


def issues_of(rocmend: Rocmend, root: Path, files: tuple[tuple[str, str], ...]) -> list[list[dict[str, Any]]]:
    """Return what a port says of each of some files, all of them in one project."""
    for number, (name, text) in enumerate(files):
        path = root / f"part{number}" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (root / "a.py").write_text("import torch\n")
    read = data_of(rocmend("port", root, "--no-cache", "--json"))["analysis"]["files"]
    told = {file["path"]: file["issues"] for file in read}
    return [told.get(f"part{number}/{name}", []) for number, (name, _) in enumerate(files)]


def test_an_install_from_an_index_for_rocm_is_right_as_it_is(rocmend: Rocmend, tmp_path: Path) -> None:
    found = issues_of(rocmend, tmp_path, RIGHT)
    assert [(text, issues) for (_, text), issues in zip(RIGHT, found, strict=True) if issues] == []


def test_an_index_for_rocm_counts_only_where_it_is_in_force(rocmend: Rocmend, tmp_path: Path) -> None:
    found = issues_of(rocmend, tmp_path, tuple((name, text) for name, text, _ in WRONG))
    for (name, text, outcome), issues in zip(WRONG, found, strict=True):
        assert {issue["outcome"] for issue in issues if issue["rule"] == "DP01"} == {outcome}, (name, text)


def test_a_requirement_from_an_index_for_rocm_is_listed_as_one(rocmend: Rocmend, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("--index-url https://a.example/whl/rocm6.4\ntorch==2.8.0\n")
    (tmp_path / "a.py").write_text("import torch\n")
    told = " ".join(rocmend("port", tmp_path, "--no-cache").out.split())
    assert "requirements.txt:2 It comes from an index for ROCm." in told
    assert "CUDA." not in told


def test_the_plan_that_doctor_writes_is_not_rewritten(rocmend: Rocmend, tmp_path: Path) -> None:
    plan = rocmend("doctor", "--machine", "strix-halo", "--plan", "sh").out
    assert "torch[device-gfx1151]" in plan
    (issues,) = issues_of(rocmend, tmp_path, (("plan.sh", plan),))
    assert [issue for issue in issues if issue["edits"]] == []
