"""Memory instructions: what they access, how many bytes, and which counter tells when they are done."""

from __future__ import annotations

import re

from rocmend.emulate.decode.operands import UnmodelledError, operand
from rocmend.emulate.decode.text import Parts
from rocmend.emulate.generation import Generation
from rocmend.emulate.layout import INST, OPERAND, Counter, Flag, Form, Kind

__all__ = ["read", "reads"]

_VECTOR = re.compile(r"(global|flat|buffer|scratch)_(load|store|atomic)_(.+)")
_SCALAR = re.compile(r"s_(buffer_)?load_(.+)")
_LDS = re.compile(r"ds_(.+)")
_FORMS = {"global": Form.GLOBAL, "flat": Form.FLAT, "buffer": Form.BUFFER, "scratch": Form.SCRATCH}

_SIZES = {
    "ubyte": (1, 0), "u8": (1, 0), "sbyte": (1, 1), "i8": (1, 1), "byte": (1, 0), "b8": (1, 0),
    "ushort": (2, 0), "u16": (2, 0), "sshort": (2, 1), "i16": (2, 1), "short": (2, 0), "b16": (2, 0),
    "dword": (4, 0), "b32": (4, 0), "dwordx2": (8, 0), "b64": (8, 0), "dwordx3": (12, 0), "b96": (12, 0),
    "dwordx4": (16, 0), "b128": (16, 0), "dwordx8": (32, 0), "b256": (32, 0), "dwordx16": (64, 0), "b512": (64, 0),
}  # fmt: skip
_ATOMICS = {
    "swap": 0, "cmpswap": 1, "add": 2, "sub": 3, "rsub": 4, "smin": 5, "min_i": 5, "umin": 6, "min_u": 6, "smax": 7,
    "max_i": 7, "umax": 8, "max_u": 8, "and": 9, "or": 10, "xor": 11, "inc": 12, "dec": 13, "add_f": 14, "min_f": 15,
    "fmin": 15, "min_num_f": 15, "max_f": 16, "fmax": 16, "max_num_f": 16, "pk_add_f16": 17, "pk_add_bf16": 18,
    "sub_clamp_u": 19, "cond_sub_u": 20,
}  # fmt: skip
_IGNORED = re.compile(r"nontemporal|slc|nt|dlc|sc0|sc1|glc|scc|th:\w+|scope:\w+|format:.*|tfe_unused|r128|a16|swz|nv")
_COHERENT = re.compile(r"glc|sc1|scope:SCOPE_(?:DEV|SYS)")


def reads(parts: Parts) -> bool:
    """Return whether an instruction is a load, store or atomic that is modelled; only its name counts.

    Raises:
        UnmodelledError: It is one that is not.
    """
    made, name = INST(), parts.name
    if found := _VECTOR.fullmatch(name):
        (_atomic if found[2] == "atomic" else _loaded)(made, found[3], parts)
        return True
    if found := _SCALAR.fullmatch(name):
        return found[2] in _SIZES
    found = _LDS.fullmatch(name)
    if found is None or found[1].startswith(("bpermute", "permute", "swizzle")):
        return False
    kind = found[1]
    if _DS_PAIR.fullmatch(kind) or kind.endswith("addtid_b32"):
        return True
    if plain := _DS_PLAIN.fullmatch(kind):
        _loaded(made, plain[2], parts)
    else:
        _lds_operation(made, kind, parts)
    return True


def read(parts: Parts, generation: Generation) -> INST | None:
    """Decode a memory instruction; None where it is another."""
    if found := _VECTOR.fullmatch(parts.name):
        return _vector(parts, found[1], found[2], found[3], generation)
    if found := _SCALAR.fullmatch(parts.name):
        return _scalar(parts, bool(found[1]), found[2], generation)
    if parts.name in {"s_memtime", "s_memrealtime", "s_dcache_inv"}:
        raise UnmodelledError(parts.name, parts.text)
    if (found := _LDS.fullmatch(parts.name)) and not found[1].startswith(("bpermute", "permute", "swizzle")):
        return _lds(parts, found[1], generation)
    return None


def _modifiers(made: INST, parts: Parts, known: tuple[str, ...] = ()) -> None:
    for word in parts.modifiers:
        name = word.partition(":")[0]
        if name == "offset":
            value = parts.value("offset")
            made.immediate = value
        elif name == "offen":
            made.flags |= Flag.OFFEN
        elif name == "idxen":
            made.flags |= Flag.IDXEN
        elif name == "lds":
            made.flags |= Flag.TO_LDS
        elif name not in known and not _IGNORED.fullmatch(word):
            raise UnmodelledError(f"the modifier {word}", parts.text)
        if _COHERENT.fullmatch(word):
            made.flags |= Flag.COHERENT


def _loaded(made: INST, kind: str, parts: Parts) -> None:
    """Apply the size of a load or store: ``short_d16_hi``, ``d16_u8``, ``b128``."""
    plain = kind
    if plain.startswith("lds_"):
        made.flags |= Flag.TO_LDS
        plain = plain.removeprefix("lds_")
    high = "d16_hi" in plain
    half = "d16" in plain
    plain = re.sub(r"_?d16(?:_hi)?_?", "", plain)
    if plain not in _SIZES:
        raise UnmodelledError(parts.name, parts.text)
    made.bytes, signed = _SIZES[plain]
    if signed:
        made.flags |= Flag.SIGNED
    if high:
        made.flags |= Flag.D16_HIGH
    elif half:
        made.flags |= Flag.D16_LOW


def _registers(text: str, size: int, whole: str) -> OPERAND:
    """Return a vector register operand of as many registers as an access has; halves lose their suffix."""
    made = operand(re.sub(r"\.[lh]$", "", text), "b32", whole)
    made.dwords = max(1, size // 4)
    return made


def _vector(parts: Parts, space: str, verb: str, kind: str, generation: Generation) -> INST:
    made = INST(form=_FORMS[space], counter=Counter.LOAD, sources=4)
    given = list(parts.operands)
    _modifiers(made, parts)
    if verb == "atomic":
        _atomic(made, kind, parts)
        _atomic_data(made, given, parts, space)
    else:
        _loaded(made, kind, parts)
        _loaded_data(made, given, parts, space, stores=verb == "store")
        if verb == "load" and made.flags & (Flag.D16_LOW | Flag.D16_HIGH) and generation.loses_halves:
            made.flags |= Flag.LOSES_HALF
    if made.flags & (Flag.STORE | Flag.ATOMIC) and not made.flags & Flag.RETURNS and generation.major >= 10:
        made.counter = Counter.STORE
    if space == "buffer":
        _buffer_address(made, given, parts)
    else:
        _flat_address(made, given, parts, space)
    if made.flags & Flag.TO_LDS and space != "buffer":
        made.s[3].kind, made.s[3].value = Kind.LITERAL, made.immediate
    return made


def _loaded_data(made: INST, given: list[str], parts: Parts, space: str, *, stores: bool) -> None:
    """Apply the data of a load or store, and take it from the operands."""
    if stores:
        made.flags |= Flag.STORE
        data = given.pop(0 if space == "buffer" else 1)
        made.s[1] = _registers(data, made.bytes, parts.text)
        if data.endswith(".h"):
            made.flags |= Flag.D16_HIGH
    elif not made.flags & Flag.TO_LDS:
        made.d = _registers(given.pop(0), made.bytes, parts.text)
        if made.flags & Flag.D16_LOW and parts.operands[0].endswith(".h"):
            made.flags = (made.flags & ~Flag.D16_LOW) | Flag.D16_HIGH


def _atomic_data(made: INST, given: list[str], parts: Parts, space: str) -> None:
    """Apply the data of an atomic, and what it returns, and take them from the operands."""
    swaps = made.op == _ATOMICS["cmpswap"]
    returns = _returns(parts) if space == "buffer" else len(given) == (4 if space == "global" else 3)
    if returns:
        made.flags |= Flag.RETURNS
        made.d = _registers(given[0], made.bytes, parts.text)
        if space != "buffer":
            given.pop(0)
    data = given.pop(0 if space == "buffer" else 1)
    made.s[1] = _registers(data, made.bytes * (2 if swaps else 1), parts.text)
    if swaps:  # the value comes first, then what it is compared with
        made.s[4] = _registers(data, made.bytes, parts.text)
        made.s[4].index += made.bytes // 4


def _returns(parts: Parts) -> bool:
    return any(word in {"glc", "sc0"} or "RETURN" in word for word in parts.modifiers)


def _flat_address(made: INST, given: list[str], parts: Parts, space: str) -> None:
    address, *rest = given
    if address != "off":
        made.s[0] = operand(address, "b32", parts.text)
    if rest and rest[0] not in {"off", "null"}:
        made.s[2] = operand(rest[0], "b32", parts.text)
        if made.s[2].kind != Kind.SGPR:
            raise UnmodelledError(f"the address of {parts.name}", parts.text)
    if space in {"global", "flat"} and made.s[0].dwords == 1 and made.s[2].kind != Kind.SGPR:
        raise UnmodelledError(f"the address of {parts.name}", parts.text)


def _buffer_address(made: INST, given: list[str], parts: Parts) -> None:
    address, resource, offset = given if len(given) == 3 else ("off", *given)
    if address != "off":
        made.s[0] = operand(address, "b32", parts.text)
    made.s[2] = operand(resource, "b128", parts.text)
    if made.s[2].kind != Kind.SGPR or made.s[2].dwords != 4:
        raise UnmodelledError(f"the resource of {parts.name}", parts.text)
    if offset != "null":
        made.s[3] = operand(offset, "u32", parts.text)


def _atomic(made: INST, kind: str, parts: Parts) -> None:
    """Apply which atomic it is: ``add_u32``, ``smax_x2``, ``pk_add_f16``, ``cmpswap_b64``."""
    plain, size = kind, 4
    if found := re.fullmatch(r"(.+)_x2", plain):
        plain, size = found[1], 8
    if plain in {"pk_add_f16", "pk_add_bf16"}:
        name = plain
    elif found := re.fullmatch(r"(csub|sub_clamp|cond_sub)_u32", plain):
        name = "cond_sub_u" if found[1] == "cond_sub" else "sub_clamp_u"
    elif plain == "csub":
        name = "sub_clamp_u"
    elif found := re.fullmatch(r"(.+?)_(?:rtn_)?([ubif])(32|64)", plain):
        name, size = found[1], int(found[3]) // 8
        if f"{name}_{found[2]}" in _ATOMICS:
            name = f"{name}_{found[2]}"
    else:
        name = plain
    if name == "fcmpswap" or name not in _ATOMICS or (name == "cmpswap" and re.search(r"_f(?:32|64)$", plain)):
        raise UnmodelledError(parts.name, parts.text)
    made.op, made.bytes = _ATOMICS[name], size
    made.flags |= Flag.ATOMIC


def _scalar(parts: Parts, buffer: bool, kind: str, generation: Generation) -> INST:
    if kind not in _SIZES:
        raise UnmodelledError(parts.name, parts.text)
    size, signed = _SIZES[kind]
    made = INST(form=Form.SMEM, bytes=size, sources=2)
    made.counter = Counter.SCALAR if generation.major >= 12 else Counter.LDS
    made.flags = Flag.SIGNED if signed else 0
    _modifiers(made, parts)
    result, base, *offsets = parts.operands
    made.d = operand(result, "b32", parts.text)
    made.d.dwords = max(1, size // 4)
    made.s[0] = operand(base, "b128" if buffer else "b64", parts.text)
    if made.s[0].kind != Kind.SGPR or made.s[0].dwords != (4 if buffer else 2):
        raise UnmodelledError(f"the base of {parts.name}", parts.text)
    for one in offsets:
        if one == "null":
            continue
        found = operand(one, "u32", parts.text)
        if found.kind == Kind.LITERAL:
            made.immediate += int(found.value) if found.value < 1 << 31 else int(found.value) - (1 << 64)
        else:
            made.s[1] = found
    return made


_DS_PAIR = re.compile(r"(read|load|write|store)(?:2|_2addr)(?:(?:_)?(st64|stride64))?_b(32|64)")
_DS_PLAIN = re.compile(r"(read|load|write|store)_(?!addtid)(\w+)")
_PLAIN, _PAIR, _PAIR_64, _ADDTID, _TRANSPOSED = range(5)


def _lds(parts: Parts, kind: str, generation: Generation) -> INST:
    made = INST(form=Form.LDS, counter=Counter.LDS, sources=3)
    given, text = parts.operands, parts.text
    made.s[0] = OPERAND()
    _modifiers(made, parts, ("offset0", "offset1"))
    if found := _DS_PAIR.fullmatch(kind):
        made.bytes = int(found[3]) // 8
        made.dpp = _PAIR_64 if found[2] else _PAIR
        made.immediate = parts.value("offset0") | parts.value("offset1") << 8
        if found[1] in {"write", "store"}:
            made.flags |= Flag.STORE
            made.s[0] = operand(given[0], "b32", text)
            made.s[1], made.s[2] = (_registers(one, made.bytes, text) for one in given[1:3])
        else:
            made.d = _registers(given[0], 2 * made.bytes, text)
            made.s[0] = operand(given[1], "b32", text)
        return made
    if found := re.fullmatch(r"(read|load|write|store)_addtid_b32", kind):
        made.bytes, made.dpp = 4, _ADDTID
        if found[1] in {"write", "store"}:
            made.flags |= Flag.STORE
            made.s[1] = _registers(given[0], 4, text)
        else:
            made.d = _registers(given[0], 4, text)
        return made
    if kind == "read_b64_tr_b16":
        made.bytes, made.dpp = 8, _TRANSPOSED
        made.d, made.s[0] = _registers(given[0], 8, text), operand(given[1], "b32", text)
        return made
    if found := _DS_PLAIN.fullmatch(kind):
        _loaded(made, found[2], parts)
        if found[1] in {"write", "store"}:
            made.flags |= Flag.STORE
            made.s[0] = operand(given[0], "b32", text)
            made.s[1] = _registers(given[1], made.bytes, text)
            if given[1].endswith(".h"):
                made.flags |= Flag.D16_HIGH
        else:
            made.d = _registers(given[0], made.bytes, text)
            made.s[0] = operand(given[1], "b32", text)
        return made
    return _lds_atomic(made, kind, parts, generation)


def _lds_operation(made: INST, kind: str, parts: Parts) -> None:
    """Apply which atomic of the LDS it is."""
    plain = kind.replace("_rtn", "")
    if plain in {"nop", "gws_init", "gws_barrier", "append", "consume"} or plain.startswith(
        ("wrap", "mskor", "condxchg", "cmpst_f", "cmpstore_f", "wrxchg2", "storexchg_2addr")
    ):
        raise UnmodelledError(parts.name, parts.text)
    plain = re.sub(r"^(?:wrxchg|storexchg)", "swap", plain)
    _atomic(made, re.sub(r"^(?:cmpstore|cmpst)", "cmpswap", plain), parts)


def _lds_atomic(made: INST, kind: str, parts: Parts, generation: Generation) -> INST:
    given, text = list(parts.operands), parts.text
    returns = "_rtn" in kind
    _lds_operation(made, kind, parts)
    compares = made.op == _ATOMICS["cmpswap"]
    if returns:
        made.flags |= Flag.RETURNS
        made.d = _registers(given.pop(0), made.bytes, text)
    made.s[0] = operand(given[0], "b32", text)
    if compares:  # before gfx11 the compared value comes first
        value, compare = (given[2], given[1]) if generation.major < 11 else (given[1], given[2])
        made.s[1], made.s[4] = (_registers(one, made.bytes, text) for one in (value, compare))
        made.sources = 5
    else:
        made.s[1] = _registers(given[1], made.bytes, text)
    return made
