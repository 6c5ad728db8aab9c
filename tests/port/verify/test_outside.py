"""What a stranger's source makes the compiler read ends up in no result."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.codeobject.hip import HipFailure, HipObject, check_syntax, compile_hip
from rocmend.codeobject.hip.confine import reading_directive
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.outside import reasons
from rocmend.port.verify.records import Outcome

from .conftest import Ported

HIDDEN = "hunter2_is_what_nobody_may_see"
HEAD = b"#include <hip/hip_runtime.h>\n"
TAIL = b"__global__ void run(int* out) { *out = 1; }\n"


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("a.cu", b'\n#include "/etc/shadow"\n', "line 2 includes /etc/shadow"),
        ("a.cu", b"# include <../secret.h>\n", "line 1 includes ../secret.h"),
        ("a/b.cu", b'#include "../../secret.h"\n', "includes ../../secret.h"),
        ("a/b.cu", b'#include "x/../../../secret.h"\n', "includes x/../../../secret.h"),
        ("a.cu", b'#include "/usr/include/../../etc/shadow"\n', "includes /usr/include/../../etc/shadow"),
        ("a.cu", b'asm(".incbin \\"/etc/shadow\\"");\n', "embeds a file (.incbin)"),
        ("a.h", b"  #  embed </etc/shadow>\n", "embeds a file (#  embed)"),
        ("a/b.cu", b'#include "../secret.h"\n#include <cuda.h>\n#include "/usr/include/stdio.h"\n', ""),
        ("a.cu", b"// it embeds #embed nothing\nint incbin;\n", ""),
    ],
)
def test_sources_that_read_outside(path: str, text: bytes, words: str) -> None:
    assert words in reasons([(path, text)]).get(path, "")
    assert bool(words) == (path in reasons([(path, text)]))


@pytest.mark.slow
def test_such_a_unit_is_not_compiled_and_others_are(ported: Ported, tmp_path: Path) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text(f"{HIDDEN}\n")
    root = ported(
        {
            "bad.cu": HEAD + b'#include "own.h"\n' + TAIL,
            "own.h": f'#include "{secret}"\n'.encode(),
            "good.cu": HEAD + TAIL,
        },
        {},
    )
    (level,) = verify(root, levels=["compile"], targets=["gfx1100", "gfx942"], cache=False).levels
    assert {one.subject for one in level.evidence if one.outcome is Outcome.HOLDS} == {"good.cu"}
    bad = [one for one in level.evidence if one.subject == "bad.cu"]
    assert {one.outcome for one in bad} == {Outcome.UNKNOWN}
    assert f"own.h: line 1 includes {secret}" in bad[0].detail
    assert HIDDEN not in str(level)


@pytest.mark.slow
@pytest.mark.usefixtures("pip_compiler")
@pytest.mark.parametrize(
    "text",
    [
        '#define PLACE "{secret}"\n#include PLACE\n',
        "#define QUOTED(x) #x\n#define PLACE(x) QUOTED(x)\n#include PLACE({secret})\n",
        '#inc\\\nlude "{secret}"\n',
        '#include "link.h"\n',
    ],
)
def test_what_no_scan_sees_is_not_shown(tmp_path: Path, text: str) -> None:
    secret, own = tmp_path / "secret.h", tmp_path / "project"
    secret.write_text(f"{HIDDEN}\n")
    own.mkdir()
    (own / "link.h").symlink_to(secret)
    source = own / "a.hip"
    source.write_bytes(HEAD + text.format(secret=secret).encode() + TAIL)
    seen = compile_hip(source, "gfx1100", cache=False)
    assert HIDDEN in str(seen), "the compiler itself shows it"
    for made in (
        compile_hip(source, "gfx1100", cache=False, within=[own]),
        check_syntax(source, "gfx1100", host_only=True, within=[own]),
    ):
        assert isinstance(made, HipFailure)
        assert HIDDEN not in str(made)
        assert "outside of the project" in made.message


@pytest.mark.slow
@pytest.mark.usefixtures("pip_compiler")
@pytest.mark.parametrize(
    "text",
    [
        'asm(".inc" "bin \\"{secret}\\"");',
        'asm(".macro take a\\n.in\\\\a \\"{secret}\\"\\n.endm\\ntake cbin");',
        "const char kept[] = {{\n#embed SECRET\n}};",
    ],
)
def test_what_was_read_is_not_kept(tmp_path: Path, text: str) -> None:
    secret, own = tmp_path / "secret.h", tmp_path / "project"
    secret.write_text("static const int given = 4711;\n")
    own.mkdir()
    source = own / "a.hip"
    head = f'#define SECRET "{secret}"\n'.encode()
    inside = text.format(secret=secret).encode()
    body = inside if text.startswith("#") else b"__device__ " + inside if text.startswith("const") else b""
    run = b"__global__ void run(int* out) { " + (inside if not body else b"") + b" *out = 1; }\n"
    source.write_bytes(HEAD + head + body + b"\n" + run)
    made = compile_hip(source, "gfx1100", cache=False, within=[own])
    assert isinstance(made, HipFailure), "a code object with the file's bytes in it"
    (own / "good.hip").write_bytes(HEAD + TAIL)
    assert isinstance(compile_hip(own / "good.hip", "gfx1100", cache=False, within=[own]), HipObject)


def test_directives_are_told_from_strings() -> None:
    assert reading_directive('  .ascii "x.incbin y"\n  s_endpgm\n') == ""
    assert reading_directive('  .ascii "a\\"b"\n  .InCbin "x"\n') == ".InCbin"


@pytest.mark.slow
@pytest.mark.usefixtures("pip_compiler")
def test_what_was_compiled_without_bounds_is_not_taken_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    secret, own = tmp_path / "secret.h", tmp_path / "project"
    secret.write_text("static const int given = 4711;\n")
    own.mkdir()
    source = own / "a.hip"
    source.write_bytes(HEAD + f'#include "{secret}"\n'.encode() + b"__global__ void run(int* out) { *out = given; }\n")
    assert isinstance(compile_hip(source, "gfx1100"), HipObject)
    made = compile_hip(source, "gfx1100", within=[own])
    assert isinstance(made, HipFailure)
    assert "outside of the project" in made.message
    assert isinstance(compile_hip(source, "gfx1100", within=[own, tmp_path]), HipObject)
    again = compile_hip(source, "gfx1100", within=[own])
    assert isinstance(again, HipFailure)
