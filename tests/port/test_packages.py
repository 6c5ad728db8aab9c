"""How a file reaches ``is_rocm``: every way is imported for real, as the file itself would be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.port.analyse import analyse
from rocmend.port.apply import apply
from rocmend.port.packages import Reach, Reaches
from rocmend.port.undo import undo
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.records import Status


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("setup.py", "import os\n", Reach("", "")),
        ("tools/run.py", "import os\n", Reach("", "tools")),
        ("pkg/a.py", "import os\n", Reach("._rocm", "pkg")),
        ("pkg/__init__.py", "import os\n", Reach("._rocm", "pkg")),
        ("pkg/sub/a.py", "from ..x import y\n", Reach(".._rocm", "pkg")),
        ("pkg/sub/a.py", "from pkg.x import y\n", Reach("pkg._rocm", "pkg")),
        ("pkg/sub/a.py", "import pkg\n", Reach("pkg._rocm", "pkg")),
        ("pkg/train.py", "import os\nif __name__ == '__main__':\n    main()\n", Reach("", "pkg")),
        ("pkg/train.py", "from pkg import x\nif __name__ == '__main__':\n    main()\n", Reach("pkg._rocm", "pkg")),
        ("src/lib/sub/a.py", "import os\n", Reach(".._rocm", "src/lib")),
        ("scripts/generate.py", "from model import Model\n", Reach("_rocm", "scripts")),
        ("scripts/generate.py", "from types import Model\n", Reach("", "scripts")),
        ("scripts/generate.py", "from model import other\n", Reach("", "scripts")),
        ("scripts/generate.py", "import model\n", Reach("", "scripts")),
        ("pkg/a.py", "from triton import Config\n", Reach("._rocm", "pkg")),
        ("src/lib/tests/conftest.py", "import os\n", Reach("", "src/lib/tests")),
        ("src/lib/tests/test_a.py", "import os\n", Reach("", "src/lib/tests")),
        ("src/lib/tests/test_a.py", "from .b import c\n", Reach("", "src/lib/tests")),
        ("src/lib/tests/test_a.py", "from lib.b import c\n", Reach("lib._rocm", "src/lib")),
        ("pkg/sub/train.py", "import os\nif __name__ == '__main__':\n    main()\n", Reach("", "pkg/sub")),
        ("pkg/__main__.py", "import os\n", Reach("", "pkg")),
        ("pkg/a.py", "import os\ndef f():\n    from pkg import b\n", Reach("._rocm", "pkg")),
        ("not-a-name/a.py", "import os\n", Reach("", "not-a-name")),
    ],
)
def test_a_file_imports_only_what_it_will_find(tmp_path: Path, path: str, source: str, expected: Reach) -> None:
    for made in (
        "pkg/__init__.py",
        "pkg/triton.py",
        "pkg/sub/__init__.py",
        "src/lib/__init__.py",
        "src/lib/sub/__init__.py",
        "src/lib/tests/__init__.py",
        "scripts/model.py",
        "scripts/types.py",
        "not-a-name/__init__.py",
    ):
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made).write_text("class Model: pass\nConfig = Model\n", encoding="utf-8")
    assert Reaches(tmp_path).of(path, source.encode()) == expected


def test_a_folder_on_the_search_path_is_where_packages_begin(
    tmp_path: Path, make_project: Callable[[Path, dict[str, str | bytes]], Path]
) -> None:
    """``app/backend`` is a package by its files, and put on the search path by the program that uses it."""
    root = make_project(
        tmp_path / "root",
        {
            "app/__init__.py": "",
            "app/backend/__init__.py": "",
            "app/backend/main.py": "import triton.language\nfrom core.deep.a import x\n",
            "app/backend/core/__init__.py": "",
            "app/backend/core/deep/__init__.py": "",
            "app/backend/core/deep/a.py": "from ..b import x\n",
            "app/backend/core/b.py": "x = 1\n",
            "app/triton/__init__.py": "",
            "app/triton/c.py": "import triton\n",
        },
    )
    reaches = Reaches(root)
    assert reaches.of("app/triton/c.py", b"import triton\n") == Reach(".._rocm", "app")
    path = root / "app/backend/core/deep/a.py"
    reach = reaches.of("app/backend/core/deep/a.py", path.read_bytes())
    assert reach == Reach(".._rocm", "app/backend/core")
    (root / reach.folder / "_rocm.py").write_text("is_rocm = False\n", encoding="utf-8")
    path.write_bytes(f"from {reach.module} import is_rocm\n".encode() + path.read_bytes())
    command = "import sys; sys.path.insert(0, 'app/backend'); import core.deep.a"
    subprocess.run([sys.executable, "-c", command], cwd=root, check=True)


@pytest.mark.slow
def test_a_file_of_no_package_finds_what_it_needs_beside_itself_on_rocm_alone(
    tmp_path: Path, make_project: Callable[[Path, dict[str, str | bytes]], Path]
) -> None:
    """Executed as a script or as part of a package of any name; on CUDA nothing is looked for."""
    script = (
        "import torch\n\ny = torch.zeros(1).to(torch.float8_e4m3fn)\n\n"
        "if __name__ == '__main__':\n    import pynvml\n    pynvml.nvmlDeviceGetCount\n"
    )
    root = make_project(tmp_path / "root", {"tools/deep/run.py": script})
    apply(analyse(root, cache=False), suggestions=True)
    ported = (root / "tools/deep/run.py").read_text(encoding="utf-8")
    assert (root / "tools/deep/_rocm_fp8.py").is_file()
    assert (root / "tools/deep/_rocm_nvml.py").is_file()
    flag = 'getattr(torch.version, "hip", None) is not None'
    assert flag in ported
    for value in ("True", "False"):
        forced = ported.replace(flag, value).replace("import pynvml\n", "import types as pynvml\n")
        forced = forced.replace("pynvml.nvmlDeviceGetCount", "pynvml.ModuleType")
        if value == "True":
            forced = forced.replace("pynvml.ModuleType", "pynvml.nvmlDeviceGetCount")
        (root / "tools/deep/run.py").write_text(forced, encoding="utf-8")
        for command in (["tools/deep/run.py"], ["-m", "tools.deep.run"], ["-c", "import tools.deep.run"]):
            subprocess.run([sys.executable, *command], cwd=root, check=True)


def test_every_way_is_found_when_the_file_is_executed(
    tmp_path: Path, make_project: Callable[[Path, dict[str, str | bytes]], Path]
) -> None:
    root = make_project(
        tmp_path / "root",
        {
            "pkg/__init__.py": "",
            "pkg/sub/__init__.py": "from .a import x\n",
            "pkg/sub/a.py": "x = 1\n",
            "pkg/b.py": "import pkg.sub\n",
            "scripts/model.py": "y = 1\n",
            "scripts/generate.py": "from model import y\n",
        },
    )
    reaches = Reaches(root)
    for path in ("pkg/__init__.py", "pkg/sub/a.py", "pkg/b.py", "scripts/generate.py"):
        data = (root / path).read_bytes()
        reach = reaches.of(path, data)
        (root / reach.folder / "_rocm.py").write_text("is_rocm = False\n", encoding="utf-8")
        (root / path).write_bytes(f"from {reach.module} import is_rocm\n".encode() + data)
    subprocess.run([sys.executable, "-c", "import pkg.b, pkg.sub.a"], cwd=root, check=True)
    subprocess.run([sys.executable, "scripts/generate.py"], cwd=root, check=True)


OWN = "import torch\n\nIS_HIP = torch.version.hip is not None\n"
TRAIN = 'import torch\n\n\ndef faster(model):\n    return torch.compile(model, mode="max-autotune")\n'


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("module", "reused"),
    [
        (OWN, True),
        ("from .other import x\n" + OWN, False),  # imported by what it imports, it would not be there yet
        ("import pkg.other\n" + OWN, False),
        ("import torch\n\nIS_HIP = torch.version.cuda is None\n", False),  # a build for the CPU is none for ROCm
        ("import torch\n\nSPECIAL = torch.version.hip is not None\n", False),  # its gates would not be known again
        ("import torch\n\nIS_HIP = torch.version.hip is not None\nIS_HIP = False\n", False),
        ("def f(:\n# version.hip\n", False),
    ],
)
def test_a_flag_that_the_project_has_is_reused(tmp_path: Path, module: str, *, reused: bool) -> None:
    write(
        tmp_path, {"pkg/__init__.py": "", "pkg/other.py": "x = 1\n", "pkg/compat.py": module, "pkg/sub/__init__.py": ""}
    )
    expected = "compat:IS_HIP" if reused else "_rocm"
    assert Reaches(tmp_path).of("pkg/train.py", TRAIN.encode()).module == f".{expected}"
    assert Reaches(tmp_path).of("pkg/sub/a.py", TRAIN.encode()).module == f"..{expected}"
    assert Reaches(tmp_path).of("pkg/run.py", b"import pkg.x\n").module == f"pkg.{expected}"
    assert Reaches(tmp_path).of("pkg/train.py", TRAIN.encode(), {"is_rocm", "attention"}).module == "._rocm"
    assert Reaches(tmp_path).of("pkg/compat.py", OWN.encode()).module == "._rocm"


def test_a_port_with_the_project_s_own_flag_is_proven_and_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    write(root, {"pkg/__init__.py": "", "pkg/compat.py": OWN, "pkg/train.py": TRAIN})
    applied = apply(analyse(root, cache=False))
    assert (applied.changed, applied.added, applied.left_alone) == (("pkg/train.py",), (), ())
    text = (root / "pkg" / "train.py").read_text()
    assert "from .compat import IS_HIP as is_rocm" in text
    assert '"max-autotune-no-cudagraphs" if is_rocm else "max-autotune"' in text
    assert verify(root, levels=["identity"]).levels[0].status is Status.PASSED
    assert apply(analyse(root, cache=False)).changed == ()
    (root / "pkg" / "compat.py").write_text(OWN.replace("is not None", "is None"))
    assert verify(root, levels=["identity"]).levels[0].status is Status.FAILED
    (root / "pkg" / "compat.py").write_text(OWN)
    undo(root)
    assert (root / "pkg" / "train.py").read_text() == TRAIN
