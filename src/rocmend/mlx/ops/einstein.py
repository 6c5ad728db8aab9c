"""Einstein's summation: two operands after the other, by products of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import shape_text, to_array
from rocmend.mlx.ops.products import matmul
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.array import array

__all__ = ["einsum", "einsum_path"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST = 1024
_plans: dict[Any, _Plan] = {}


class _Plan:
    """What is known of a summation from its text and its operands' shapes.

    Attributes:
        inputs: the letters of each operand, ``...`` written as letters.
        output: those of the result.
        sizes: of each letter.
        path: which operands meet, as ``einsum_path`` tells it.
        counts: the text of naive and optimised scaling and operations.
    """

    __slots__ = ("counts", "inputs", "output", "path", "sizes")

    def __init__(self, subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> None:
        self.inputs, self.output = _parsed(subscripts, shapes)
        self.sizes = _sizes(self.inputs, shapes)
        self.path, self.counts = self._chosen()

    def _operations(self, letters: set[str], operands: int, *, summed: bool) -> int:
        """Return operations of one contraction: an element takes a product for each operand but one, and a sum."""
        return math.prod(self.sizes[one] for one in letters) * (max(1, operands - 1) + summed)

    def _chosen(self) -> tuple[list[tuple[int, ...]], tuple[int, int, int, int]]:
        terms = [set(one) for one in self.inputs]
        output = set(self.output)
        everything = set().union(*terms)
        naive = self._operations(everything, len(terms), summed=bool(everything - output))
        path = self._greedy(terms, output, naive) if len(terms) > 2 else [tuple(range(len(terms)))]
        scaling, operations = 0, 0
        for places in path:
            chosen = [terms[i] for i in places]
            terms = [term for i, term in enumerate(terms) if i not in places]
            kept = output.union(*terms)
            met = set().union(*chosen)
            terms.append(met & kept)
            scaling = max(scaling, len(met))
            operations += self._operations(met, len(chosen), summed=bool(met - kept))
        return path, (len(everything), scaling, naive, operations)

    def _greedy(self, terms: list[set[str]], output: set[str], naive: int) -> list[tuple[int, ...]]:
        """Return the path that takes at each step the two operands whose product sheds most.

        Results never grow beyond the largest operand, and the whole never costs more than the plain sum.
        """
        terms = list(terms)
        largest = max(math.prod(self.sizes[one] for one in term) for term in (*terms, output))
        path: list[tuple[int, ...]] = []
        spent = 0
        while len(terms) > 1:
            pairs = [(i, j) for i in range(len(terms)) for j in range(i + 1, len(terms))]
            sharing = [(i, j) for i, j in pairs if terms[i] & terms[j]]
            known = [self._priced(terms, pair, output, largest) for pair in sharing]
            found = [one for one in known if one is not None and spent + one[1] <= naive]
            if not found:
                known = [self._priced(terms, pair, output, largest) for pair in pairs]
                found = [one for one in known if one is not None and spent + one[1] <= naive]
            if not found:
                path.append(tuple(range(len(terms))))
                break
            _, cost, (i, j), made = min(found, key=lambda one: one[:2])
            path.append((i, j))
            spent += cost
            terms = [term for place, term in enumerate(terms) if place not in {i, j}] + [made]
        return path

    def _priced(
        self, terms: list[set[str]], pair: tuple[int, int], output: set[str], largest: int
    ) -> tuple[int, int, tuple[int, int], set[str]] | None:
        """Return how a pair ranks: what it sheds (less is better), what it costs, which it is and what is left."""
        i, j = pair
        kept = output.union(*(term for place, term in enumerate(terms) if place not in pair))
        met = terms[i] | terms[j]
        made = met & kept
        size = math.prod(self.sizes[one] for one in made)
        if size > largest:
            return None
        before = sum(math.prod(self.sizes[one] for one in terms[place]) for place in pair)
        return size - before, self._operations(met, 2, summed=bool(met - kept)), pair, made


def _parsed(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[str], str]:
    """Return the letters of operands and of the result, where ``...`` stands for letters that are free."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    for one in (*inputs, right):
        for letter in one.replace("...", "", 1):
            if letter not in _LETTERS:
                raise ValueError(f"[einsum] Subscripts must be letters, but got {letter!r} in {subscripts!r}.")
    if len(inputs) != len(shapes):
        raise ValueError(
            f"[einsum] Number of operands, {len(shapes)}, does not match number of input subscripts, {len(inputs)}."
        )
    free = [letter for letter in _LETTERS if letter not in text]
    dots = 0
    for one, shape in zip(inputs, shapes, strict=True):
        if "..." in one:
            dots = max(dots, len(shape) - len(one) + 3)
    if dots > len(free):
        raise ValueError(f"[einsum] There are not enough letters for {subscripts!r}.")
    dotted = "".join(free[:dots])
    given = []
    for place, (one, shape) in enumerate(zip(inputs, shapes, strict=True)):
        missing = len(shape) - len(one.replace("...", ""))
        if ("..." not in one and missing) or missing < 0:
            raise ValueError(
                f"[einsum] Invalid number of subscripts {len(one.replace('...', ''))} for input {place} with "
                f"{len(shape)} dimensions."
            )
        given.append(one.replace("...", dotted[dots - missing :] if missing else ""))
    if not arrow:
        every = "".join(inputs)
        right = "..." + "".join(sorted(letter for letter in set(every) - {"."} if every.count(letter) == 1))
    output = right.replace("...", dotted)
    if len(set(output)) != len(output):
        raise ValueError(f"[einsum] Repeat indices not allowed in output, got {right!r}.")
    unknown = set(output) - set("".join(given))
    if unknown:
        raise ValueError(f"[einsum] Output subscripts {sorted(unknown)} are in no input of {subscripts!r}.")
    return given, output


def _sizes(inputs: list[str], shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for place, (letters, shape) in enumerate(zip(inputs, shapes, strict=True)):
        for axis, (letter, size) in enumerate(zip(letters, shape, strict=True)):
            known = sizes.get(letter, 1)
            if 1 not in (known, size) and known != size:
                raise ValueError(
                    f"[einsum] Cannot broadcast dimension {axis} of input {place} with shape {shape_text(shape)} to "
                    f"size {known}."
                )
            sizes[letter] = size if known == 1 else known
    return sizes


def _plan(subscripts: str, operands: tuple[Any, ...]) -> tuple[_Plan, list[array]]:
    if not operands:
        raise ValueError("[einsum] At least one operand is required.")
    arrays = [to_array(one) for one in operands]
    key = (subscripts, tuple([one.shape for one in arrays]))
    plan = _plans.get(key)
    if plan is None:
        plan = _Plan(*key)
        if len(_plans) >= _MOST:
            _plans.clear()
        _plans[key] = plan
    return plan, arrays


def einsum_path(subscripts: str, *operands: Any) -> tuple[list[tuple[int, ...]], str]:
    """Return in which order ``einsum`` multiplies.

    Args:
        subscripts: as for ``einsum``.
        *operands: as for ``einsum``.

    Returns:
        The places of the operands that meet at each step, the result taking the last place; and a text for people.

    Raises:
        ValueError: as for ``einsum``.
    """
    plan, _ = _plan(subscripts, operands)
    naive, scaling, operations, fewer = plan.counts
    text = (
        f"  Complete contraction:  {subscripts}\n         Naive scaling:  {naive}\n     Optimized scaling:  {scaling}\n"
        f"      Naive FLOP count:  {operations}\n  Optimized FLOP count:  {fewer}\n"
    )
    return list(plan.path), text


def einsum(subscripts: str, *operands: Any, stream: Any = None) -> array:
    """Sum products over named axes: ``einsum("ij,jk->ik", a, b)`` is a matrix product.

    Args:
        subscripts: a letter for each axis of each operand, ``...`` for any number of axes, ``->`` before those of the
            result; without it the result has the letters that stand once, in order.
        *operands: arrays. Sums of products need types that promote to an inexact one.
        stream: where it is computed.

    Returns:
        An array with the axes of the result.

    Raises:
        ValueError: text that cannot be read, or that does not fit the operands.
    """
    plan, arrays = _plan(subscripts, operands)
    terms = list(zip(arrays, plan.inputs, strict=True))
    for places in plan.path:
        chosen = [terms[place] for place in places]
        terms = [term for place, term in enumerate(terms) if place not in places]
        made = chosen[0]
        for place, other in enumerate(chosen[1:], 1):
            kept = set(plan.output).union(*(letters for _, letters in (*terms, *chosen[place + 1 :])))
            made = _met(made, other, kept, plan.sizes, stream)
        kept = set(plan.output).union(*(letters for _, letters in terms))
        terms.append(_summed(*made, kept, stream))
    x, letters = terms[0]
    x, letters = _summed(x, letters, set(plan.output), stream)
    order = [letters.index(letter) for letter in plan.output]
    if order != sorted(order):
        x = ops.transpose(x, order, stream=stream)
    shape = tuple(plan.sizes[letter] for letter in plan.output)
    return x if x.shape == shape else ops.broadcast_to(x, shape, stream=stream)


def _summed(x: array, letters: str, kept: set[str], stream: Any) -> tuple[array, str]:
    """Take diagonals of letters that stand twice, and sum over those that nobody needs."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = ops.diagonal(x, 0, first, second, stream=stream)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    axes = [axis for axis, letter in enumerate(letters) if letter not in kept]
    if axes:
        x = ops.sum(x, axes, stream=stream)
        letters = "".join(letter for letter in letters if letter in kept)
    return x, letters


def _met(
    first: tuple[array, str], second: tuple[array, str], kept: set[str], sizes: dict[str, int], stream: Any
) -> tuple[array, str]:
    """Multiply two operands and sum over the letters that only they have."""
    a, left = _summed(*first, kept | set(second[1]), stream)
    b, right = _summed(*second, kept | set(left), stream)
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in kept]
    inner = [letter for letter in both if letter not in kept]
    rows = [letter for letter in left if letter not in right]
    columns = [letter for letter in right if letter not in left]
    a = ops.transpose(a, [left.index(letter) for letter in (*batch, *rows, *inner)], stream=stream)
    b = ops.transpose(b, [right.index(letter) for letter in (*batch, *inner, *columns)], stream=stream)
    n, r = len(batch), len(rows)
    out = "".join((*batch, *rows, *columns))
    if not inner:
        a = ops.reshape(a, (*a.shape, *[1] * len(columns)), stream=stream)
        b = ops.reshape(b, (*b.shape[:n], *[1] * r, *b.shape[n:]), stream=stream)
        return ops.multiply(a, b, stream=stream), out
    whole = tuple(sizes[letter] for letter in inner)
    a = ops.broadcast_to(a, (*a.shape[: n + r], *whole), stream=stream)
    b = ops.broadcast_to(b, (*b.shape[:n], *whole, *b.shape[n + len(inner) :]), stream=stream)
    high, wide = a.shape[n : n + r], b.shape[n + len(inner) :]
    a = ops.reshape(a, (*a.shape[:n], math.prod(high), math.prod(whole)), stream=stream)
    b = ops.reshape(b, (*b.shape[:n], math.prod(whole), math.prod(wide)), stream=stream)
    made = matmul(a, b, stream=stream)
    return ops.reshape(made, (*made.shape[:-2], *high, *wide), stream=stream), out
