"""Textures and surfaces.

What it does:
  Finds texture and surface references, and reads and writes through textures and surfaces.

Why it matters:
  References (`texture<float, 2>`) were removed in CUDA 12 and deprecated in HIP. Reads through texture objects compile
  for RDNA; gfx90a, gfx942 and gfx950 have no image instructions at all, and HIP refuses them there.

Use instead:
  A pointer and plain loads (`__ldg` or `const __restrict__`). Where addressing modes, filtering or layers are used,
  write them out, and keep texture objects for RDNA alone.

Fix safety:
  Nothing is rewritten: the result of an out-of-bounds read depends on border mode and filtering.

References:
  HIP documentation, texture management. AMD CDNA 3 instruction set.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_READS = tuple(
    f"{kind}{shape}{how}".encode()
    for kind, shapes in (("tex", ("1D", "2D", "3D", "1DLayered", "2DLayered", "Cubemap", "CubemapLayered")),)
    for shape in shapes
    for how in ("", "Lod", "Grad", "fetch", "gather")
) + tuple(
    f"surf{shape}{how}".encode()
    for shape in ("1D", "2D", "3D", "1DLayered", "2DLayered", "Cubemap", "CubemapLayered")
    for how in ("read", "write")
)
_REMEDY = "Use plain loads through a pointer; write addressing modes and filtering by hand."


@rule(
    "CU19",
    "Textures and surfaces",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"texture", b"surface", b"tex1D", b"tex2D", b"tex3D", b"texCubemap", b"surf1D", b"surf2D", b"surf3D"),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/modules/texture_management.html",
        "measured: HIP 6.4, `tex2D is unavailable` for gfx942",
    ),
    valid=(
        "int texture = 3;\nfloat surface(float x);\n",
        "#ifndef USE_ROCM\ntexture<float, 1> t;\n#endif\n",
    ),
    invalid=(
        Case("texture<float, 2, cudaReadModeElementType> image;\n", None),
        Case("__global__ void k(cudaTextureObject_t t, float *o) {\n  o[0] = tex1Dfetch<float>(t, 3);\n}\n", None),
        Case("__global__ void k(cudaSurfaceObject_t s) {\n  surf2Dwrite(1.0f, s, 0, 0);\n}\n", None),
    ),
)
def textures(file: CudaFile) -> Iterator[Found]:
    """Yield the references, and the first read or write of each kind."""
    tokens = file.tokens
    for index in file.names(b"texture", b"surface"):
        if index + 1 < len(tokens) and tokens[index + 1].text == b"<":
            token = tokens[index]
            what = token.text.decode()
            yield Found(
                token.start, token.end, f"a {what} reference: HIP deprecates them, CUDA 12 has none", remedy=_REMEDY
            )
    seen: set[bytes] = set()
    for call in file.calls(*_READS):
        if call.name.text in seen or call.qualifier:
            continue
        seen.add(call.name.text)
        name = call.name.text.decode()
        yield Found(
            call.start, call.end, f"{name}: gfx90a, gfx942 and gfx950 have no image instructions", remedy=_REMEDY
        )
