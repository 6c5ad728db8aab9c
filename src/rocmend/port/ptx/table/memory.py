"""Loads, stores, atomic operations, copies, fences and hints about caches."""

from __future__ import annotations

import re

from rocmend.port.ptx.context import TYPES, Context, arity
from rocmend.port.ptx.program import Instruction, NotUnderstoodError
from rocmend.port.ptx.registry import instruction

_SCOPES = {
    "cta": "__HIP_MEMORY_SCOPE_WORKGROUP",
    "cluster": "__HIP_MEMORY_SCOPE_AGENT",
    "gpu": "__HIP_MEMORY_SCOPE_AGENT",
    "sys": "__HIP_MEMORY_SCOPE_SYSTEM",
}
_FENCES = {
    "cta": "__threadfence_block()",
    "gl": "__threadfence()",
    "gpu": "__threadfence()",
    "cluster": "__threadfence()",
}
_FENCES["sys"] = "__threadfence_system()"
_SPACES = frozenset(("global", "shared", "shared::cta"))
_PLAIN_HINTS = frozenset(("ca", "cs", "lu", "nc", "wb", "wt", "weak"))
_HINT = re.compile(r"L1::\w+|L2::\w+")
_ORDERS = {"relaxed": "__ATOMIC_RELAXED", "acquire": "__ATOMIC_ACQUIRE", "release": "__ATOMIC_RELEASE"}
_ORDERS["acq_rel"] = "__ATOMIC_ACQ_REL"


def _unknown(one: Instruction) -> NotUnderstoodError:
    return NotUnderstoodError(f"{one.name} is not in the table")


def _pointer(context: Context, operand: str, space: str, cpp: str) -> str:
    """Return a typed pointer to an operand's address, in a space of PTX."""
    address, kind = context.address(operand)
    if space.startswith("shared"):
        return f"hip_ptx::shared<{cpp}>({address})"
    if TYPES[kind].size != 64:
        raise NotUnderstoodError("an address of 32 bits is in no window that is known")
    return f"hip_ptx::generic<{cpp}>({address})"


class _Access:
    """The modifiers of a load or a store."""

    def __init__(self, one: Instruction) -> None:
        self.space = ""
        self.order = ""
        self.scope = ""
        self.hints: set[str] = set()
        self.count = 1
        self.kind = one.modifiers[-1] if one.modifiers else ""
        for word in one.modifiers[:-1]:
            if word in _SPACES:
                self.space = word
            elif word in ("v2", "v4"):
                self.count = int(word[1])
            elif word in _SCOPES:
                self.scope = word
            elif word in ("relaxed", "acquire", "release", "volatile"):
                self.order = word
            elif word in _PLAIN_HINTS or word in ("cg", "cv") or _HINT.fullmatch(word):
                self.hints.add(word)
            else:
                raise _unknown(one)
        if self.kind not in TYPES or self.kind == "pred" or self.kind in ("f16", "bf16", "f16x2", "bf16x2"):
            raise _unknown(one)
        # A load past the first cache sees what other compute units wrote: that is an atomic one here.
        if not self.order and self.hints & {"cv", "cg"} and self.space != "shared":
            self.order = "relaxed"
            self.scope = "sys" if "cv" in self.hints else "gpu"
        if self.order == "volatile":
            self.order, self.scope = "relaxed", "sys"
        if self.order and not self.scope:
            raise _unknown(one)

    @property
    def words(self) -> str:
        """Return the C++ type that memory is read as."""
        return TYPES[self.kind].cpp


@instruction("ld", "ldu")
def _load(context: Context, one: Instruction) -> None:
    access = _Access(one)
    if access.order == "release":
        raise _unknown(one)
    arity(one, 2, 3)
    targets = context.parts(one.operands[0], access.count)
    pointer = _pointer(context, one.operands[1], access.space, f"const {access.words}")
    if len(targets) == 1:
        context.write(targets[0], access.kind, _loaded(access, pointer))
        return
    name = f"ptx_at{len(context.lines)}"
    context.do(f"auto* {name} = {pointer};")
    # All parts are read before one is written: a target may hold the address.
    for at in range(len(targets)):
        part = f"{name} + {at}" if at else name
        context.do(f"const {access.words} {name}_{at} = {_loaded(access, part, single=False)};")
    if access.order == "acquire":
        context.do(_fence(access.scope))
    for at, target in enumerate(targets):
        context.write(target, access.kind, f"{name}_{at}")


def _loaded(access: _Access, pointer: str, *, single: bool = True) -> str:
    if access.order:
        order = _ORDERS[access.order] if single else "__ATOMIC_RELAXED"
        return f"__hip_atomic_load({pointer}, {order}, {_SCOPES[access.scope]})"
    return f"hip_ptx::load<{access.words}>({pointer})"


def _fence(scope: str) -> str:
    return f"{_FENCES[scope]};"


@instruction("st")
def _store(context: Context, one: Instruction) -> None:
    access = _Access(one)
    if access.order == "acquire":
        raise _unknown(one)
    arity(one, 2, 3)
    values = context.parts(one.operands[1], access.count)
    pointer = _pointer(context, one.operands[0], access.space, access.words)
    single = len(values) == 1
    if not single and access.order == "release":
        context.do(_fence(access.scope))
    for at, value in enumerate(values):
        where = f"{pointer} + {at}" if at else pointer
        text = context.read(value, access.kind, narrow=True)
        if access.order:
            order = _ORDERS[access.order] if single else "__ATOMIC_RELAXED"
            context.do(f"__hip_atomic_store({where}, {text}, {order}, {_SCOPES[access.scope]});")
        else:
            context.do(f"hip_ptx::store<{access.words}>({where}, {text});")


_FETCH = {
    "and": "fetch_and",
    "or": "fetch_or",
    "xor": "fetch_xor",
    "exch": "exchange",
    "min": "fetch_min",
    "max": "fetch_max",
}
_ATOMIC = {
    "add": frozenset(("u32", "s32", "u64", "f32", "f64")),
    "min": frozenset(("u32", "s32", "u64", "s64")),
    "max": frozenset(("u32", "s32", "u64", "s64")),
    "and": frozenset(("b32", "b64")),
    "or": frozenset(("b32", "b64")),
    "xor": frozenset(("b32", "b64")),
    "exch": frozenset(("b32", "b64")),
    "cas": frozenset(("b32", "b64")),
    "inc": frozenset(("u32",)),
    "dec": frozenset(("u32",)),
}


def _atomic_words(one: Instruction) -> tuple[str, str, str, str, str]:
    """Return type, space, order, scope and operation."""
    kind = one.modifiers[-1] if one.modifiers else ""
    space = order = scope = operation = ""
    for word in one.modifiers[:-1]:
        if word in _SPACES:
            space = word
        elif word in _SCOPES:
            scope = word
        elif word in _ORDERS:
            order = word
        elif word in _ATOMIC and not operation:
            operation = word
        else:
            raise _unknown(one)
    if kind not in _ATOMIC.get(operation, ()):
        raise _unknown(one)
    return kind, space, order, scope, operation


@instruction("atom", "red")
def _atomic(context: Context, one: Instruction) -> None:
    kind, space, order, scope, operation = _atomic_words(one)
    returns = one.root == "atom"
    first = 1 if returns else 0
    arity(one, first + (3 if operation == "cas" else 2))
    pointer = _pointer(context, one.operands[first], space, TYPES[kind].cpp)
    values = [context.read(operand, kind) for operand in one.operands[first + 1 :]]
    how = f"{_ORDERS[order or 'relaxed']}, {_SCOPES[scope or 'gpu']}"
    if operation in ("inc", "dec"):
        if order not in ("", "relaxed") or scope not in ("", "gpu"):
            raise _unknown(one)
        text = f"{'atomicInc' if operation == 'inc' else 'atomicDec'}({pointer}, {values[0]})"
    elif operation == "cas":
        text = f"hip_ptx::compare_and_swap<{TYPES[kind].cpp}, {how}>({pointer}, {values[0]}, {values[1]})"
    else:
        name = _FETCH.get(operation, f"fetch_{operation}")
        text = f"__hip_atomic_{name}({pointer}, {values[0]}, {how})"
    if returns:
        context.write(one.operands[0], kind, text)
    else:
        context.do(f"(void){text};")


@instruction("membar", "fence")
def _barrier_of_memory(context: Context, one: Instruction) -> None:
    words = [word for word in one.modifiers if word not in ("acq_rel", "sc", "acquire", "release")]
    if len(words) != 1 or words[0] not in _FENCES or one.operands:
        raise _unknown(one)
    context.do(_fence(words[0]))


@instruction("cp")
def _copy(context: Context, one: Instruction) -> None:
    words = one.modifiers
    if words[:1] != ("async",) or "bulk" in words or "mbarrier" in words:
        raise _unknown(one)
    if words[1:] in (("commit_group",), ("wait_all",)) or words[1:2] == ("wait_group",):
        # The copies are made at once: there is nothing to wait for.
        context.do("hip_ptx::nothing();")
        return
    hints = [word for word in words[4:] if not _HINT.fullmatch(word)]
    if (
        words[1:2] not in (("ca",), ("cg",))
        or words[2] not in ("shared", "shared::cta")
        or words[3:4] != ("global",)
        or hints
    ):
        raise _unknown(one)
    given = [*one.operands]
    if "L2::cache_hint" in words:
        given = given[:-1]
    if len(given) not in (3, 4):
        raise _unknown(one)
    to, kind = context.address(given[0])
    source, source_kind = context.address(given[1])
    if TYPES[source_kind].size != 64:
        raise NotUnderstoodError("a global address has 32 bits")
    size = _size(context, given[2])
    amount = context.read(given[3], "u32") if len(given) == 4 else f"{size}"
    del kind
    context.do(f"hip_ptx::copy_to_shared<{size}>({to}, {source}, {amount});")


def _size(context: Context, operand: str) -> str:
    if operand in ("4", "8", "16"):
        return operand
    held = context.registers.get(operand)
    if held is None or not held.constant:
        raise NotUnderstoodError("the size of a copy is no constant")
    return held.cpp


@instruction("prefetch", "prefetchu", "discard", "applypriority")
def _hint(context: Context, one: Instruction) -> None:
    arity(one, 1, 2)
    context.do("hip_ptx::nothing();")


@instruction("createpolicy")
def _policy(context: Context, one: Instruction) -> None:
    if one.modifiers[:1] != ("fractional",) or one.modifiers[-1] != "b64":
        raise _unknown(one)
    context.write(one.operands[0], "b64", "uint64_t(0)")


@instruction("isspacep")
def _in_space(context: Context, one: Instruction) -> None:
    arity(one, 2)
    pointer = f"hip_ptx::generic<void>({context.read(one.operands[1], 'u64')})"
    if one.modifiers == ("shared",):
        context.write(one.operands[0], "pred", f"__builtin_amdgcn_is_shared({pointer})")
    elif one.modifiers == ("local",):
        context.write(one.operands[0], "pred", f"__builtin_amdgcn_is_private({pointer})")
    elif one.modifiers == ("global",):
        context.write(
            one.operands[0],
            "pred",
            f"!(__builtin_amdgcn_is_shared({pointer}) || __builtin_amdgcn_is_private({pointer}))",
        )
    else:
        raise _unknown(one)
