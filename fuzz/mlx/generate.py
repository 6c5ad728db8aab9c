"""Random programs. Shapes and types of variables are those that rocmend's ``mlx.core`` infers without computing."""

from __future__ import annotations

import random
from typing import Any

from language import Program, Statement, apply

DTYPES = (
    "bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "bfloat16",
    "complex64",
)  # fmt: skip
FLOATS = ("float16", "float32", "bfloat16")

# Names of functions by how exactly two implementations must agree.
UNARY_EXACT = (
    "abs", "negative", "sign", "floor", "ceil", "round", "logical_not", "isnan", "isinf", "isfinite", "isposinf",
    "isneginf", "bitwise_invert", "stop_gradient", "square", "real", "imag", "conjugate", "contiguous", "zeros_like",
    "ones_like", "nan_to_num",
)  # fmt: skip
UNARY_CLOSE = (
    "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid", "sqrt", "rsqrt", "erf",
    "erfinv", "log2", "log10", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "reciprocal", "degrees",
    "radians",
)  # fmt: skip
BINARY_EXACT = (
    "add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide",
    "remainder", "isclose",
)  # fmt: skip
BINARY_CLOSE = ("divide", "power", "logaddexp", "arctan2")
SHIFTS = ("left_shift", "right_shift")
REDUCE_EXACT = ("max", "min", "all", "any", "argmax", "argmin")
REDUCE_CLOSE = ("sum", "prod", "mean", "var", "std", "logsumexp", "median")
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
SMOOTH = ("sin", "cos", "tanh", "sigmoid", "exp", "square", "negative", "erf", "arctan", "log1p", "abs")
SMOOTH_BINARY = ("add", "multiply", "subtract", "maximum", "minimum", "divide", "logaddexp")


class Maker:
    """Writes one program."""

    def __init__(self, mx: Any, seed: int) -> None:
        self.mx = mx
        self.random = random.Random(seed)  # noqa: S311
        self.program: Program = []
        self.variables: list[Any] = []

    def make(self, length: int) -> Program:
        """Return a program of at most so many statements."""
        for _ in range(self.random.randint(1, 3)):
            self.input()
        kinds = (
            [self.unary] * 4 + [self.binary] * 6 + [self.scalar] * 3 + [self.reduce] * 3 + [self.scan, self.order]
            + [self.move] * 5 + [self.index] * 4 + [self.update] * 3 + [self.inplace] * 2 + [self.cast] * 3
            + [self.alias, self.product, self.product, self.transform, self.transform, self.transform, self.fast]
            + [self.input, self.select, self.random_numbers, self.join]
        )  # fmt: skip
        while len(self.program) < length:
            self.random.choice(kinds)()
        return self.program

    # -- helpers

    def add(self, statement: Statement) -> None:
        """Add a statement; one that raises is kept now and then, to see whether both raise."""
        try:
            x = apply(self.mx, statement, self.variables)
            if getattr(x, "size", 10_000) > 4096:
                return
        except Exception:  # noqa: BLE001
            if self.random.random() > 0.1:
                return
            x = None
        self.program.append(statement)
        self.variables.append(x)

    def do(self, name: str, *args: Any, **kw: Any) -> None:
        """Add a call."""
        statement: Statement = {"do": name, "args": list(args)}
        if kw:
            statement["kw"] = kw
        self.add(statement)

    def pick(self, *dtypes: str, ndim: int = 0) -> int | None:
        """Return the number of a variable of one of these types."""
        fit = [
            at
            for at, x in enumerate(self.variables)
            if x is not None and x.ndim >= ndim and (not dtypes or _name(x) in dtypes)
        ]
        return self.random.choice(fit) if fit else None

    def shape(self) -> list[int]:
        return [self.random.choice((1, 1, 2, 3, 4, 5, 8, 0 if self.random.random() < 0.1 else 7)) for _ in range(self.random.choice((0, 1, 1, 2, 2, 2, 3, 4)))]  # fmt: skip

    def input(self) -> None:
        """A fresh array; often of a shape that meets one that is there."""
        shape = self.shape()
        at = self.pick()
        if at is not None and self.random.random() < 0.6:
            shape = [1 if self.random.random() < 0.2 else size for size in self.variables[at].shape]
            shape = shape[self.random.randint(0, len(shape)) if self.random.random() < 0.2 else 0 :]
        kind = self.random.choice(("small", "small", "normal", "positive", "unit", "special", "wide", "bits"))
        dtype = self.random.choice((*DTYPES, *FLOATS, "float32", "int32"))
        self.do("input", shape, dtype, kind, self.random.getrandbits(30))

    def axis(self, x: Any) -> int:
        return self.random.randint(-x.ndim, x.ndim - 1) if x.ndim else 0

    def number(self) -> Any:
        return self.random.choice((0, 1, 2, -1, 3, 0.5, -2.5, 1.0, True, False, 100, {"f": "nan"}, {"f": "inf"}, {"f": "-0.0"}))  # fmt: skip

    # -- kinds of statements

    def unary(self) -> None:
        at = self.pick()
        if at is not None:
            self.do(self.random.choice((*UNARY_EXACT, *UNARY_CLOSE)), {"v": at})

    def binary(self) -> None:
        a, b = self.pick(), self.pick()
        if a is None:
            return
        name = self.random.choice((*BINARY_EXACT, *BINARY_EXACT, *BINARY_CLOSE))
        if name in ("floor_divide", "remainder", "power") and not {
            _name(self.variables[a]),
            _name(self.variables[b]),
        } & {*FLOATS}:
            self.do("ones_like", {"v": b})  # integers: division by zero and negative powers have no defined result
            self.do("abs", {"v": b})
            self.do("add", {"v": len(self.variables) - 1}, {"v": len(self.variables) - 2})
            b = len(self.variables) - 1
        self.do(name, {"v": a}, {"v": b})

    def scalar(self) -> None:
        a = self.pick()
        if a is not None:
            pair = [{"v": a}, self.number()]
            self.random.shuffle(pair)
            name = self.random.choice((*BINARY_EXACT[:-1], *BINARY_CLOSE))  # isclose takes arrays only
            if name in ("power", "floor_divide", "remainder") and _name(self.variables[a]) not in FLOATS:
                return  # integers: division by zero and negative powers have no defined result
            self.do(name, *pair)

    def reduce(self) -> None:
        at = self.pick()
        if at is None:
            return
        x = self.variables[at]
        name = self.random.choice((*REDUCE_EXACT, *REDUCE_CLOSE))
        kw: dict[str, Any] = {"keepdims": self.random.random() < 0.3}
        if self.random.random() < 0.7 and x.ndim:
            kw["axis"] = self.axis(x)
            if name in ("sum", "max", "mean", "prod") and x.ndim > 1 and self.random.random() < 0.3:
                kw["axis"] = self.random.sample(range(x.ndim), 2)
        if name in ("var", "std") and self.random.random() < 0.3:
            kw["ddof"] = 1
        self.do(name, {"v": at}, **kw)

    def scan(self) -> None:
        at = self.pick(ndim=1)
        if at is not None:
            kw = {"axis": self.axis(self.variables[at]), "reverse": self.random.random() < 0.4}
            self.do(self.random.choice(SCANS), {"v": at}, inclusive=self.random.random() < 0.7, **kw)

    def order(self) -> None:
        at = self.pick(ndim=1)
        if at is None:
            return
        axis = self.axis(self.variables[at])
        which = self.random.choice(("sort", "argsort", "softmax", "topk"))
        if which == "topk":
            size = self.variables[at].shape[axis]
            self.do("sort", {"v": at}, axis=axis)
            if size:
                self.do("min", {"v": at}, axis=axis)
        else:
            self.do(which, {"v": at}, axis=axis)

    def move(self) -> None:
        at = self.pick()
        if at is None:
            return
        x, r = self.variables[at], self.random
        which = r.choice(("reshape", "transpose", "swapaxes", "expand_dims", "squeeze", "flatten", "broadcast_to", "repeat", "tile", "pad", "roll", "moveaxis", "tril", "diagonal", "view", "unflatten"))  # fmt: skip
        v = {"v": at}
        if which == "reshape":
            sizes = list(x.shape)
            r.shuffle(sizes)
            if len(sizes) > 1 and r.random() < 0.5:
                sizes[:2] = [sizes[0] * sizes[1]]
            if sizes and x.size and r.random() < 0.3:
                sizes[r.randrange(len(sizes))] = -1
            self.do("reshape", v, sizes)
        elif which == "transpose":
            self.do("transpose", v, r.sample(range(x.ndim), x.ndim))
        elif which in ("swapaxes", "moveaxis"):
            self.do(which, v, self.axis(x), self.axis(x))
        elif which == "expand_dims":
            self.do(which, v, r.randint(-x.ndim - 1, x.ndim))
        elif which in ("squeeze", "flatten"):
            self.do(which, v)
        elif which == "broadcast_to":
            self.do(which, v, [r.choice((1, 2, 3)), *(r.choice((2, 4)) if size == 1 else size for size in x.shape)])
        elif which == "repeat":
            self.do(which, v, r.randint(0, 3), axis=self.axis(x))
        elif which == "tile":
            self.do(which, v, [r.randint(1, 2) for _ in range(r.randint(1, x.ndim + 1))])
        elif which == "pad":
            self.do(which, v, [[r.randint(0, 2), r.randint(0, 2)] for _ in range(x.ndim)], "constant", r.choice((0, 1)))
        elif which == "roll":
            self.do(which, v, r.randint(-4, 4), axis=self.axis(x))
        elif which == "tril":
            self.do(r.choice(("tril", "triu")), v, r.randint(-2, 2))
        elif which == "diagonal":
            self.do(which, v, r.randint(-2, 2), 0, max(x.ndim - 1, 0))
        elif which == "view":
            self.do("method.view", v, {"d": r.choice(("uint8", "uint16", "int32", "float32", "int8"))})
        elif x.ndim and x.shape[0] % 2 == 0:
            self.do("unflatten", v, 0, [2, -1])

    def join(self) -> None:
        a, b = self.pick(), self.pick()
        if a is not None and b is not None:
            x = self.variables[a]
            pair = [{"v": a}, {"v": self.random.choice((a, b))}]
            name = self.random.choice(("concatenate", "stack"))
            self.do(name, pair, axis=self.axis(x))

    def indices(self, x: Any) -> Any:
        r = self.random
        items: list[Any] = []
        ellipsis = False
        sizes = list(x.shape[: r.randint(0, x.ndim)])
        while sizes:
            size = sizes.pop(0)
            if ellipsis:  # which axis comes next is left open: an index that each of them has
                size = min(x.shape)
            which = r.random()
            if which < 0.45:
                step = r.choice((1, 1, 1, 2, -1, -2, 3))
                items.append({"s": [r.choice((None, r.randint(-size - 1, size + 1))), r.choice((None, r.randint(-size - 1, size + 1))), step]})  # fmt: skip
            elif which < 0.65 and size:
                items.append(r.randint(-size, size - 1))
            elif which < 0.72:
                items.append(None)
                sizes.insert(0, size)
            elif which < 0.78 and not ellipsis:
                items.append({"e": 0})
                ellipsis = True
            elif size:
                count = r.randint(1, 4)
                self.program.append({"do": "array", "args": [[r.randint(-size, size - 1) for _ in range(count)]]})
                self.variables.append(apply(self.mx, self.program[-1], []))
                items.append({"v": len(self.variables) - 1})
        return items[0] if len(items) == 1 else {"t": items}

    def index(self) -> None:
        at = self.pick()
        if at is None:
            return
        x, r = self.variables[at], self.random
        if x.ndim and r.random() < 0.25:
            axis = self.axis(x)
            size = x.shape[axis]
            if size:
                self.do("take", {"v": at}, r.randint(0, size - 1), axis=axis)
            return
        if x.ndim and r.random() < 0.2:
            self.do("first.split", {"v": at}, 1 if x.shape[0] % 2 else 2, axis=0)
            return
        self.do("getitem", {"v": at}, self.indices(x))

    def update(self) -> None:
        at = self.pick()
        if at is None:
            return
        where = self.indices(self.variables[at])
        try:
            part = apply(self.mx, {"do": "getitem", "args": [{"v": at}, where]}, self.variables)
        except Exception:  # noqa: BLE001
            return
        value: Any = self.random.choice((0, 1, 2.5, -3))
        if self.random.random() < 0.6:
            self.do("input", list(part.shape), _name(self.variables[at]), "small", self.random.getrandbits(30))
            value = {"v": len(self.variables) - 1}
        if "v" in str(where) or self.random.random() < 0.3:  # places given twice: what is left there is not defined
            self.do(self.random.choice(("at.add", "at.maximum", "at.minimum")), {"v": at}, where, value)
        else:
            self.do("setitem", {"v": at}, where, value)

    def inplace(self) -> None:
        a = self.pick()
        if a is None:
            return
        b = {"v": self.pick()} if self.random.random() < 0.5 else self.random.choice((1, 2, 0.5))
        self.do(f"inplace.{self.random.choice(('add', 'sub', 'mul'))}", {"v": a}, b)

    def alias(self) -> None:
        at = self.pick()
        if at is not None:
            self.do("alias", {"v": at})

    def cast(self) -> None:
        at = self.pick()
        if at is None:
            return
        target = self.random.choice(DTYPES)
        source = _name(self.variables[at])
        if source in (*FLOATS, "complex64") and target not in (*FLOATS, "complex64", "bool_"):
            self.do("clip", {"v": at}, 0, 100)  # out of range (and NaN) to an integer is not defined
            self.do("nan_to_num", {"v": len(self.variables) - 1})
            at = len(self.variables) - 1
            if self.variables[at] is None:
                return
        self.do("method.astype", {"v": at}, {"d": target})

    def product(self) -> None:
        dtype = self.random.choice((*FLOATS, "float32"))
        a = self.pick(dtype, ndim=1)
        if a is None:
            return
        x, r = self.variables[a], self.random
        inner = x.shape[-1]
        outer = r.choice((1, 2, 3, 5))
        which = r.choice(("matmul", "matmul", "vector", "addmm", "einsum", "outer", "inner", "tensordot"))
        if which == "vector":
            self.do("input", [inner], dtype, "normal", r.getrandbits(30))
            self.do("matmul", {"v": a}, {"v": len(self.variables) - 1})
            return
        if which in ("outer", "inner"):
            self.do(which, {"v": a}, {"v": a})
            return
        shape = [inner, outer]
        if which == "matmul" and x.ndim > 2 and r.random() < 0.5:
            shape = [*x.shape[:-2], inner, outer]
        self.do("input", shape, dtype, "normal", r.getrandbits(30))
        b = {"v": len(self.variables) - 1}
        if which == "addmm" and x.ndim >= 2:
            self.do("input", [outer], dtype, "normal", r.getrandbits(30))
            self.do("addmm", {"v": len(self.variables) - 1}, {"v": a}, b, alpha=0.5, beta=2.0)
        elif which == "einsum" and x.ndim == 2:
            self.do("einsum", "ij,jk->ki", {"v": a}, b)
        elif which == "tensordot":
            self.do("tensordot", {"v": a}, b, 1)
        else:
            self.do("matmul", {"v": a}, b)

    def transform(self) -> None:
        at = self.pick(*FLOATS)
        if at is None:
            return
        r = self.random
        steps: list[list[Any]] = []
        for _ in range(r.randint(1, 4)):
            if r.random() < 0.6:
                steps.append([r.choice(SMOOTH), None])
            else:
                steps.append([r.choice(SMOOTH_BINARY), r.choice((0.5, 2.0, -1.5, {"v": at}))])
        which = r.choice(("grad", "grad", "second", "jvp", "vjp", "vmap", "vmap_grad", "compile", "checkpoint"))
        if which in ("vmap", "vmap_grad"):
            if not self.variables[at].ndim:
                return
            steps = [step for step in steps if not isinstance(step[1], dict)]
        self.add({"do": f"transform.{which}", "args": [{"v": at}], "chain": steps})

    def fast(self) -> None:
        at = self.pick(*FLOATS, ndim=1)
        if at is None:
            return
        x, r = self.variables[at], self.random
        dtype = _name(x)
        which = r.choice(("rms_norm", "layer_norm", "rope", "attention", "quantize"))
        size = x.shape[-1]
        if which == "rope" and x.ndim >= 3 and size >= 2:
            self.do("fast.rope", {"v": at}, size // 2 * 2, traditional=r.random() < 0.5, base=100.0, scale=1.0, offset=r.randint(0, 9))  # fmt: skip
        elif which in ("rms_norm", "layer_norm") and size:
            self.do("input", [size], dtype, "normal", r.getrandbits(30))
            weight = {"v": len(self.variables) - 1}
            if which == "rms_norm":
                self.do("fast.rms_norm", {"v": at}, weight, 1e-5)
            else:
                self.do("fast.layer_norm", {"v": at}, weight, None, 1e-5)
        elif which == "attention":
            heads, length, width = r.choice((1, 2, 4)), r.choice((1, 3, 8)), r.choice((8, 16))
            kv = r.choice([one for one in (1, 2, 4) if heads % one == 0])
            self.do("input", [2, heads, length, width], dtype, "normal", r.getrandbits(30))
            q = len(self.variables) - 1
            self.do("input", [2, kv, 8, width], dtype, "normal", r.getrandbits(30))
            self.do("fast.scaled_dot_product_attention", {"v": q}, {"v": q + 1}, {"v": q + 1}, scale=0.3, mask=r.choice((None, "causal")))  # fmt: skip
        elif which == "quantize":
            bits, group = r.choice((2, 3, 4, 5, 6, 8)), r.choice((32, 64, 128))
            rows = r.choice((4, 8))
            self.do("input", [rows, 2 * group], "float32", "normal", r.getrandbits(30))
            w = {"v": len(self.variables) - 1}
            self.do("first.quantize", w, group_size=group, bits=bits)

    def select(self) -> None:
        a, b, c = self.pick(), self.pick(), self.pick()
        if a is not None:
            if self.random.random() < 0.5:
                self.do("where", {"v": a}, {"v": b}, {"v": c})
            else:
                self.do("clip", {"v": a}, -1, 2)

    def random_numbers(self) -> None:
        r = self.random
        self.do("random.key", r.randint(0, 2**40))
        key = {"v": len(self.variables) - 1}
        shape, dtype = self.shape(), r.choice(FLOATS)
        which = r.choice(("uniform", "normal", "randint", "bernoulli", "split", "bits", "gumbel", "truncated_normal"))
        if which == "uniform":
            self.do("random.uniform", -1.0, 3.0, shape, {"d": dtype}, key=key)
        elif which in ("normal", "gumbel"):
            self.do(f"random.{which}", shape, {"d": dtype}, key=key)
        elif which == "randint":
            self.do("random.randint", -5, 20, shape, {"d": r.choice(("int32", "uint8", "int64"))}, key=key)
        elif which == "bernoulli":
            self.do("random.bernoulli", 0.3, shape, key=key)
        elif which == "truncated_normal":
            self.do("random.truncated_normal", -1.0, 1.0, shape, {"d": "float32"}, key=key)
        elif which == "bits":
            self.do("random.randint", 0, 2**31 - 1, shape, {"d": "uint32"}, key=key)
        else:
            self.do("random.split", key, r.randint(1, 5))


def _name(x: Any) -> str:
    name: str = str(x.dtype).rpartition(".")[2]
    return "bool_" if name == "bool" else name
