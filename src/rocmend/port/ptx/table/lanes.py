"""Lanes of a warp, barriers, sleeping and traps."""

from __future__ import annotations

from rocmend.port.ptx.context import Context, arity
from rocmend.port.ptx.program import Instruction, NotUnderstoodError
from rocmend.port.ptx.registry import instruction

_KINDS = {"up": "up", "down": "down", "bfly": "bfly", "idx": "idx"}


def _unknown(one: Instruction) -> NotUnderstoodError:
    return NotUnderstoodError(f"{one.name} is not in the table")


@instruction("shfl")
def _shuffle(context: Context, one: Instruction) -> None:
    words = [word for word in one.modifiers if word != "sync"]
    synced = "sync" in one.modifiers
    if len(words) != 2 or words[0] not in _KINDS or words[1] != "b32":
        raise _unknown(one)
    arity(one, 5 if synced else 4)
    targets = [name.strip() for name in one.operands[0].split("|")]
    values = ", ".join(context.read(operand, "b32") for operand in one.operands[1:4])
    if len(targets) == 1:
        context.write(targets[0], "b32", f"hip_ptx::shfl_{words[0]}({values})")
        return
    name = f"ptx_inside{len(context.lines)}"
    context.do(f"bool {name};")
    context.write(targets[0], "b32", f"hip_ptx::shfl_{words[0]}({values}, {name})")
    context.write(targets[1], "pred", name)


@instruction("vote")
def _vote(context: Context, one: Instruction) -> None:
    words = [word for word in one.modifiers if word != "sync"]
    synced = "sync" in one.modifiers
    arity(one, 3 if synced else 2)
    mask = context.read(one.operands[2], "b32") if synced else "0xffffffffu"
    asked = context.read(one.operands[1], "pred")
    if words == ["ballot", "b32"]:
        context.write(one.operands[0], "b32", f"warp32_ballot_sync({mask}, {asked})")
    elif len(words) == 2 and words[0] in ("all", "any", "uni") and words[1] == "pred":
        context.write(one.operands[0], "pred", f"(warp32_{words[0]}_sync({mask}, {asked}) != 0)")
    else:
        raise _unknown(one)


@instruction("activemask")
def _active(context: Context, one: Instruction) -> None:
    if one.modifiers != ("b32",):
        raise _unknown(one)
    arity(one, 1)
    context.write(one.operands[0], "b32", "warp32_activemask()")


@instruction("match")
def _match(context: Context, one: Instruction) -> None:
    if one.modifiers not in (("any", "sync", "b32"), ("any", "sync", "b64")):
        raise _unknown(one)
    arity(one, 3)
    kind = one.modifiers[-1]
    value, mask = context.read(one.operands[1], kind), context.read(one.operands[2], "b32")
    value = f"static_cast<unsigned long long>({value})" if kind == "b64" else value
    context.write(one.operands[0], "b32", f"warp32_match_any_sync({mask}, {value})")


@instruction("redux")
def _reduce(context: Context, one: Instruction) -> None:
    words = one.modifiers
    known = {("sync", name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32")}
    known |= {("sync", name, "b32") for name in ("and", "or", "xor")}
    if words not in known:
        raise _unknown(one)
    arity(one, 3)
    value, mask = context.read(one.operands[1], words[2]), context.read(one.operands[2], "b32")
    context.write(one.operands[0], words[2], f"warp32_reduce_{words[1]}_sync({mask}, {value})")


@instruction("bar", "barrier")
def _barrier(context: Context, one: Instruction) -> None:
    words = tuple(word for word in one.modifiers if word not in ("cta", "aligned"))
    if words == ("sync",) and one.operands == ("0",):
        context.do("__syncthreads();")
    elif words == ("warp", "sync") and len(one.operands) == 1:
        context.do(f"warp32_syncwarp({context.read(one.operands[0], 'b32')});")
    else:
        raise NotUnderstoodError(f"{one.name} is a barrier of a part of a block, which AMD GPUs do not have")


@instruction("nanosleep")
def _sleep(context: Context, one: Instruction) -> None:
    if one.modifiers != ("u32",):
        raise _unknown(one)
    arity(one, 1)
    context.do(f"hip_ptx::nanosleep({context.read(one.operands[0], 'u32')});")


@instruction("trap")
def _trap(context: Context, one: Instruction) -> None:
    arity(one, 0)
    context.do("__builtin_trap();")


@instruction("brkpt")
def _breakpoint(context: Context, one: Instruction) -> None:
    arity(one, 0)
    context.do("__builtin_debugtrap();")
