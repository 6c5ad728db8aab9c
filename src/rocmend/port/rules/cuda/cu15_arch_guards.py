"""Code selected by `__CUDA_ARCH__`.

What it does:
  Finds conditionals on `__CUDA_ARCH__`, which HIP's compiler never defines. A test for device code alone is
  rewritten; a fallback for old GPUs that HIP has built in is removed; for the others the message shows which branch
  ROCm compiles.

Why it matters:
  An undefined macro counts as 0: ROCm compiles the branch for the oldest GPU, or the host's. If that branch is empty,
  the kernel does nothing, without a warning.

Use instead:
  `__HIP_DEVICE_COMPILE__` distinguishes device code from host code. For what a GPU can do, test the feature
  (`__gfx942__`, `__has_builtin`) or write the branch for ROCm. A conditional in which a name of ROCm already decides,
  such as `#if defined(USE_ROCM) || __CUDA_ARCH__ >= 700`, is not reported.

Fix safety:
  Safe where the macro only distinguishes device code from host code. Where a number decides, nothing is rewritten: a
  branch in device code for older GPUs is a note, all others have to be ported by hand.

References:
  HIP porting guide, identifying the compiler. Clang documentation, HIP support.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.conditions import Branch, Group
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Token
from rocmend.port.cuda.treated import treats_rocm
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_ARCH = b"__CUDA_ARCH__"
_REFUSALS = (b"assert", b"static_assert", b"trap", b"__trap", b"printf", b"abort", b"exit", b"__builtin_trap")
"""What stands in a branch that only says that a GPU is too old."""
_REMEDY = (
    "Add a ROCm branch (#if defined(USE_ROCM)), or make sure that the branch compiled without __CUDA_ARCH__ is "
    "complete."
)


@rule(
    "CU15",
    "Code selected by __CUDA_ARCH__",
    Language.CUDA,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(_ARCH,),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",
        "measured: clang 21 and 22 define no __CUDA_ARCH__ for HIP",
    ),
    valid=(
        "#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)\nint x;\n#endif\n",
        "#ifdef USE_ROCM\nint x;\n#elif __CUDA_ARCH__ >= 700\nint y;\n#endif\n",
        (
            "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600\n#else\n"
            "__device__ double atomicAdd(double *a, double b) { return b; }\n#endif\n"
        ),
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700\n#error old\n#endif\n",
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700\n#error old\n#else\nint x;\n#endif\n",
        '// __CUDA_ARCH__\nconst char *s = "__CUDA_ARCH__";\n',
        "#if defined(USE_ROCM) || __CUDA_ARCH__ >= 700\nint x;\n#endif\n",
        "#if defined(USE_ROCM) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)\nint x;\n#else\nint y;\n#endif\n",
        "#if __CUDA_ARCH__ >= 800 || defined(__HIP_PLATFORM_AMD__)\nint x;\n#endif\n",
        "#if !defined(USE_ROCM) && __CUDA_ARCH__ >= 800\nint x;\n#else\nint y;\n#endif\n",
        "#if !defined(__HIP_PLATFORM_AMD__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700\n#error old\n#endif\n",
        "#if __CUDA_ARCH__ >= 800\nint x;\n#elif defined(USE_ROCM)\nint y;\n#else\n#error old\n#endif\n",
        "#if __CUDA_ARCH__ >= 800\nint x;\n#elif !defined(USE_ROCM)\nint y;\n#endif\n",
        "#if defined(BF16) && (defined(USE_ROCM) || __CUDA_ARCH__ >= 800)\nint x;\n#else\nint y;\n#endif\n",
        "#if defined(__CUDA_ARCH__) && !defined(USE_ROCM)\nint x;\n#endif\n",
        "#ifndef USE_ROCM\n#if __CUDA_ARCH__ >= 800\nint x;\n#endif\n#endif\n",
        "#if defined(__gfx942__) || __CUDA_ARCH__ >= 900\nint x;\n#else\nint y;\n#endif\n",
        "#ifdef USE_ROCM\n#define ON_AMD 1\n#endif\n#if defined(ON_AMD) || __CUDA_ARCH__ >= 700\nint x;\n#endif\n",
        (
            "#ifdef USE_ROCM\n#define ON_AMD 1\n#else\n#define ON_AMD 0\n#endif\n"
            "#if !ON_AMD && __CUDA_ARCH__ >= 700\nint x;\n#endif\n"
        ),
    ),
    invalid=(
        Case(
            "#ifdef __CUDA_ARCH__\nint x;\n#else\nint y;\n#endif\n",
            "#ifdef USE_ROCM\n#if defined(__HIP_DEVICE_COMPILE__)\nint x;\n#else\nint y;\n#endif\n"
            "#else\n#ifdef __CUDA_ARCH__\nint x;\n#else\nint y;\n#endif\n#endif\n",
        ),
        Case(
            "#if __CUDA_ARCH__ < 600\n__device__ double atomicAdd(double *a, double b) { return b; }\n#endif\nint x;\n",
            "#ifndef USE_ROCM\n#if __CUDA_ARCH__ < 600\n"
            "__device__ double atomicAdd(double *a, double b) { return b; }\n#endif\n#endif\nint x;\n",
        ),
        Case("#if __CUDA_ARCH__ < 700\n#error old\n#endif\n", None),
        Case("__global__ void k(int *p) {\n#if __CUDA_ARCH__ >= 700\n  *p = 1;\n#endif\n}\n", None),
        Case(
            "__global__ void k(int *p) {\n#if __CUDA_ARCH__ >= 350\n  *p = __ldg(p + 1);\n#else\n"
            "  *p = p[1];\n#endif\n}\n",
            None,
        ),
        Case("__global__ void k(int *p) { *p = __CUDA_ARCH__; }\n", None),
        # ROCm is named, and does not decide
        Case("#if (defined(USE_CUDA) || defined(USE_ROCM)) && __CUDA_ARCH__ >= 700\nint x;\n#endif\n", None),
        Case("#ifdef USE_ROCM\nint x;\n#endif\n#if __CUDA_ARCH__ >= 700\nint y;\n#endif\n", None),
        Case("#if defined(USE_ROCM) || __CUDA_ARCH__ >= 600\n#if __CUDA_ARCH__ >= 700\nint x;\n#endif\n#endif\n", None),
        Case("#define ON_AMD 1\n#if defined(ON_AMD) && __CUDA_ARCH__ >= 700\nint x;\n#endif\n", None),
    ),
)
def arch_guards(file: CudaFile) -> Iterator[Found]:
    """Yield them, each group once."""
    seen: set[int] = set()
    for index in file.names(_ARCH, shared=False):
        token = file.tokens[index]
        group = _group_of(file, token)
        if group is None:
            if file.shared(token.start) and not _tested_before(file, token):
                yield Found(
                    token.start,
                    token.end,
                    "__CUDA_ARCH__ is used as a value, and ROCm does not define it",
                    outcome=Outcome.MANUAL,
                    severity=Severity.ERROR,
                    remedy="Use another value on the ROCm side.",
                )
        elif group not in seen:
            seen.add(group)
            yield from _guard(file, file.groups[group], group, token)


def _group_of(file: CudaFile, token: Token) -> int | None:
    """Return the conditional group that a token decides; None where it stands in no condition."""
    if token.directive < 0:
        return None
    name = file.directives[token.directive].name
    if name not in (b"if", b"ifdef", b"ifndef", b"elif"):
        return None
    branch = file.branch_of(token)
    return branch.group if branch is not None else None


def _tested_before(file: CudaFile, token: Token) -> bool:
    """Return whether a value is used only where it is defined."""
    branch = file.branch_at(token.start)
    while branch is not None and _ARCH not in _words(file, branch):
        branch = file.branches[branch.parent] if branch.parent >= 0 else None
    return branch is not None


def _words(file: CudaFile, branch: Branch) -> list[bytes]:
    directive = file.directives[branch.directive]
    return [one.text for one in file.tokens[directive.first + 1 : directive.last]]


def _guard(file: CudaFile, group: Group, number: int, token: Token) -> Iterator[Found]:
    members = file.members(number)
    if not file.shared(group.start) or treats_rocm(file, number):
        return
    words = [_words(file, branch) for branch in members]
    if any(b"__HIP_DEVICE_COMPILE__" in one for one in words):
        return
    asked = [one for one in words if _ARCH in one]
    if all(_asks_for_device(one) for one in asked):
        edits = tuple(edit for branch in members for edit in _device_test(file, branch))
        yield Found(
            token.start, token.end, "__CUDA_ARCH__ distinguishes device code from host code", edits, Outcome.AUTO
        )
    elif (left_out := [one for one in members if one.chosen is not True]) and all(
        _refuses_alone(file, one) for one in left_out
    ):
        return  # what ROCm leaves out refuses old GPUs
    elif _atomics_left_out(file, members):
        return  # ROCm compiles the branch that takes atomicAdd as it is built in
    elif len(members) == 1 and _own_atomics(file, group.start, group.end):
        yield Found(
            token.start,
            token.end,
            "atomicAdd of double for old GPUs, which HIP already has",
            (Edit(group.start, group.end, b""),),
            Outcome.AUTO,
        )
    else:
        yield _by_number(file, members, token)


def _asks_for_device(words: list[bytes]) -> bool:
    """Return whether a condition asks only whether ``__CUDA_ARCH__`` is defined."""
    for at, word in enumerate(words):
        if word == _ARCH and words[0] not in (b"ifdef", b"ifndef"):
            before = words[at - 1]
            if before != b"defined" and not (before == b"(" and words[at - 2] == b"defined"):
                return False
    return True


def _device_test(file: CudaFile, branch: Branch) -> Iterator[Edit]:
    directive = file.directives[branch.directive]
    words = file.tokens[directive.first + 1 : directive.last]
    if not any(one.text == _ARCH for one in words):
        return
    if words[0].text in (b"ifdef", b"ifndef"):
        sign = b"" if words[0].text == b"ifdef" else b"!"
        yield Edit(words[0].start, words[1].end, b"if " + sign + b"defined(__HIP_DEVICE_COMPILE__)")
        return
    for one in words:
        if one.text == _ARCH:
            yield Edit(one.start, one.end, b"__HIP_DEVICE_COMPILE__")


def _refuses_alone(file: CudaFile, branch: Branch) -> bool:
    """Return whether a branch that ROCm does not compile holds an error of the preprocessor and nothing else."""
    first, last = file.token_at(branch.start), file.token_at(branch.end)
    inside = {one.directive for one in file.tokens[first:last]}
    names = {file.directives[number].name for number in inside if number >= 0}
    return branch.chosen is False and -1 not in inside and bool(names) and names <= {b"error", b"warning"}


def _atomics_left_out(file: CudaFile, members: list[Branch]) -> bool:
    """Return whether ROCm compiles an empty branch, and the others hold nothing but ``atomicAdd`` for double."""
    compiled = [one for one in members if one.chosen is True]
    others = [one for one in members if one.chosen is not True]
    if len(compiled) != 1 or not others or any(one.chosen is not False for one in others):
        return False
    empty = file.token_at(compiled[0].start) == file.token_at(compiled[0].end)
    return empty and all(_own_atomics(file, one.start, one.end) for one in others)


def _own_atomics(file: CudaFile, start: int, end: int) -> bool:
    """Return whether nothing but functions ``atomicAdd`` for double stands between two offsets."""
    inside = [one for one in file.functions if start <= one.head and one.end <= end]
    if not inside or any(one.name.text != b"atomicAdd" for one in inside):
        return False
    if not all(b"double" in file.data[one.head : one.start] for one in inside):
        return False
    first, last = file.token_at(start), file.token_at(end)
    code = (one for one in file.tokens[first:last] if one.directive < 0)
    held = all(any(it.head <= one.start < it.end for it in inside) for one in code)
    return held and not any(start < one.start < end for one in file.groups)


def _by_number(file: CudaFile, members: list[Branch], token: Token) -> Found:
    """Return what there is to say where a number decides."""
    function = file.function_at(token.start)
    compiled = next((branch for branch in members if branch.chosen is not False), None)
    device = function is not None and function.on_device and b"__host__" not in function.qualifiers
    if device and compiled is not None and compiled.chosen is True and _complete(file, compiled):
        return Found(
            token.start,
            token.end,
            f"ROCm does not define __CUDA_ARCH__ and compiles the branch {file.condition_of(compiled)}",
            outcome=Outcome.NOTE,
            severity=Severity.INFO,
        )
    what = "none of the branches" if compiled is None else f"the branch {file.condition_of(compiled)}"
    return Found(
        token.start,
        token.end,
        f"__CUDA_ARCH__ is not defined on ROCm, which compiles {what} here",
        outcome=Outcome.MANUAL,
        remedy=_REMEDY,
    )


def _complete(file: CudaFile, branch: Branch) -> bool:
    """Return whether a branch does something and is no refusal."""
    tokens = [one for one in file.tokens[file.token_at(branch.start) : file.token_at(branch.end)] if one.directive < 0]
    refuses = any(one.text in _REFUSALS for one in tokens)
    for directive in file.directives[branch.directive + 1 :]:
        if directive.start >= branch.end:
            break
        refuses = refuses or directive.name == b"error"
    return bool(tokens) and not refuses
