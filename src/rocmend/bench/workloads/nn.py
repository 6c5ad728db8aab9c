"""Networks: inference and training steps, against the same network in a wider type on the CPU."""

from __future__ import annotations

import contextlib
import copy
import gc
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rocmend.bench.networks import CATALOGUE, TRAINING, options_of
from rocmend.bench.workload import Workload

if TYPE_CHECKING:
    import torch

ROUNDING = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}
"""Relative error that is allowed of one product after another: times the root of how many there are.

About two units in the last place of the 16-bit types; of float32 more, as its convolutions may be transformed ones.
"""
GRADIENTS = 4.0
"""Times as much is allowed of gradients: they go through the network twice."""
KINKS, MOST = 10.0, 0.75
"""Where a ReLU's input changes its sign by rounding, its gradient is there or not: a few such places are most of the
gradients' error, and it differs tenfold from seed to seed. So the reference takes the signs of what is measured (see
``kinks.Kinks``). Where they cannot be had (compiled), this many times the root of what one product is allowed, and no
more than ``MOST``: the share of such places grows with the rounding, and the error with its root."""
_SCALE = 2.0**12
_ATTENTION = re.compile(r"_scaled_dot_product_(?:fused_)?(\w+?)_attention(?!\w*backward)(?:_\w+)?(?:\.|$)")
"""Operators that an implementation of attention is, with its name: flash, efficient, cudnn."""


class NetworkRun(Workload):
    """A network on a device, with a reference beside it on the CPU until it has been compared.

    Args:
        parameters: ``network``, ``task``, ``dtype``, ``batch``, ``tiny``, ``definition``, ``compile``,
            ``channels_last``.
        device: Where it runs.
    """

    def __init__(self, parameters: dict[str, Any], device: torch.device) -> None:
        import torch

        from rocmend.bench.networks.build import defined, module_of, randomize

        self.name, self.batch = str(parameters["network"]), int(parameters["batch"])
        self.training, self.device = parameters["task"] == TRAINING, device
        self.dtype = getattr(torch, parameters["dtype"])
        self._layout = torch.channels_last if parameters.get("channels_last") else torch.contiguous_format
        tiny = bool(parameters.get("tiny"))
        self._module, self._options = module_of(self.name), options_of(self.name, tiny=tiny)
        self.slow = _slow(self.name, compiled=bool(parameters.get("compile")), device=device)
        made, self._source = defined(self.name, tiny=tiny, definition=str(parameters.get("definition", "auto")))
        randomize(made, torch.Generator().manual_seed(7))
        if hasattr(self._module, "settle"):
            self._module.settle(made, **self._options)
        made.train(self.training).requires_grad_(self.training)
        if not self.training:
            made.to(self.dtype)  # the reference has the very weights that are measured
        self.model = copy.deepcopy(made).to(device)
        if self._layout is torch.channels_last:
            whole: Any = self.model  # torch's annotations of Module.to lack the layout
            whole.to(memory_format=self._layout)
        self._wide = torch.float64 if self.dtype is torch.float32 else torch.float32
        self._reference: torch.nn.Module | None = made.to(self._wide)
        self._call: Callable[..., Any] = self.model
        if parameters.get("compile"):
            self._call = torch.compile(self.model, dynamic=False)
        self._inputs: tuple[torch.Tensor, ...] = ()
        self._targets: torch.Tensor | None = None
        self._optimizer = self._scaler = None
        if self.training:
            tuned = self.model.parameters()
            convolutions = self._module.__name__.endswith("resnet")
            self._optimizer = torch.optim.SGD(tuned, 1e-3, 0.9) if convolutions else torch.optim.AdamW(tuned, 1e-5)
            half = self.dtype is torch.float16
            self._scaler = torch.amp.GradScaler(device.type, init_scale=_SCALE, enabled=half)
        self._first = True
        count = sum(one.numel() for one in self.model.parameters())
        self._detail: dict[str, Any] = {"definition": self._source, "parameters": count}
        self._fitted(lambda: self._load(self.batch))

    def run(self) -> Any:
        """Do one step."""
        if self._first:
            self._first = False
            return self._fitted(self._once)
        return self._once()

    def _once(self) -> Any:
        import torch

        if not self.training:
            with torch.inference_mode():
                return self._call(*self._inputs)
        assert self._optimizer is not None and self._scaler is not None  # noqa: S101, PT018  a training step has both
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return loss

    def _backward(self) -> torch.Tensor:
        """Return the loss, and leave the gradients, times the scale, in the parameters."""
        import torch

        mixed = self.dtype is not torch.float32
        with torch.autocast(self.device.type, self.dtype) if mixed else contextlib.nullcontext():
            loss: torch.Tensor = self._module.loss(self._call(*self._inputs), self._targets)
        assert self._scaler is not None  # noqa: S101
        scaled: torch.Tensor = self._scaler.scale(loss)
        scaled.backward()
        return loss

    def _load(self, batch: int) -> None:
        """Put the inputs of a batch on the device."""
        import torch

        generator = torch.Generator().manual_seed(11)
        drawn = self._module.inputs(batch, generator, **self._options)
        self._inputs = self._placed(drawn)
        if self.training:
            self._targets = self._module.targets(batch, generator, **self._options).to(self.device)

    def _placed(self, drawn: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return inputs on the device, in the type and the layout that are measured."""
        placed = []
        for one in drawn:
            # autocast takes float32
            whole = one.to(self.device, self.dtype if one.is_floating_point() and not self.training else None)
            placed.append(whole.contiguous(memory_format=self._layout) if whole.ndim == 4 else whole)
        return tuple(placed)

    # ------------------------------------------------------------------ too large

    def _fitted(self, action: Callable[[], Any]) -> Any:
        """Do something for the first time; where memory does not suffice, find the batch for which it does."""
        import torch

        try:
            return action()
        except torch.OutOfMemoryError as error:
            text = str(error).splitlines()[0]
        raise torch.OutOfMemoryError(f"out of memory with batch {self.batch}; {self._advice()} ({text})")

    def _advice(self) -> str:
        import torch

        batch = self.batch
        while (batch := batch // 2) > 0:
            self._inputs, self._targets = (), None  # what was too large is let go of first
            for parameter in self.model.parameters():
                parameter.grad = None
            gc.collect()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            try:
                self._load(batch)
                self._once()
            except torch.OutOfMemoryError:
                continue
            return f"batch {batch} fits"
        return "no smaller batch fits"

    # ------------------------------------------------------------------ the reference

    def wrong(self) -> str:
        """Compare with the reference, at the very shape that is measured."""
        said = self._gradients_wrong() if self.training else self._outputs_wrong()
        self._reference = None
        gc.collect()
        return said

    def _allowed(self) -> float:
        return float(ROUNDING[str(self.dtype).removeprefix("torch.")] * CATALOGUE[self.name].depth ** 0.5)

    def _outputs_wrong(self) -> str:
        """Compare the first and the last sample's outputs: in inference a sample does not depend on others."""
        import torch

        from rocmend.bench.networks.build import flat

        rows = sorted({0, self.batch - 1})
        assert self._reference is not None  # noqa: S101  it is compared once
        with torch.inference_mode(), self._attention():
            inputs = [one[rows].cpu() for one in self._inputs]
            got = [one[rows].cpu() for one in flat(self._once())]
            wide = [one.to(self._wide) if one.is_floating_point() else one for one in inputs]
            expected = flat(self._reference(*wide))
        if len(got) != len(expected):
            return f"{len(got)} outputs, {len(expected)} were expected"
        worst = 0.0
        for one, wanted in zip(got, expected, strict=True):
            if said := unlike(one, wanted):
                return said
            worst = max(worst, distance([one], [wanted]))
        self._detail |= {"error": worst, "allowed": self._allowed()}
        return _said("output", worst, self._allowed())

    def _gradients_wrong(self) -> str:
        """Compare loss and gradients of a step on a batch of a few samples, repeated.

        Its mean loss, its gradients and the statistics of its batch are those of the few, which the CPU can compute.
        """
        import torch

        from rocmend.bench.networks.kinks import Kinks

        few = next((count for count in range(2, 9) if self.batch % count == 0), 1)
        generator = torch.Generator().manual_seed(13)
        drawn = self._module.inputs(few, generator, **self._options)
        aims = self._module.targets(few, generator, **self._options)
        assert self._reference is not None and self._scaler is not None  # noqa: S101, PT018  it is compared once
        rows = torch.arange(self.batch) % few
        timed = self._inputs, self._targets
        self.model.load_state_dict(self._reference.state_dict())  # the first run took a step
        self._inputs, self._targets = self._placed(tuple(one[rows] for one in drawn)), aims[rows].to(self.device)
        self.model.zero_grad(set_to_none=True)
        kinks = Kinks(few) if CATALOGUE[self.name].kinks and self._call is self.model else None
        with self._attention(), kinks.seen(self.model) if kinks else contextlib.nullcontext():
            loss = self._backward().item()
        scale = self._scaler.get_scale()
        got = [one.grad.cpu() / scale for one in self.model.parameters() if one.grad is not None]
        self.model.zero_grad(set_to_none=True)
        self._inputs, self._targets = timed
        wide = [one.to(self._wide) if one.is_floating_point() else one for one in drawn]
        with kinks.taken(self._reference) if kinks else contextlib.nullcontext():
            said = self._reference(*wide)
        wanted = self._module.loss(said, aims.to(self._wide) if aims.is_floating_point() else aims)
        wanted.backward()
        expected = [one.grad for one in self._reference.parameters() if one.grad is not None]
        if len(got) != len(expected):
            return f"{len(got)} parameters have gradients, {len(expected)} were expected"
        allowed = self._allowed()
        of_vector = GRADIENTS * allowed
        if CATALOGUE[self.name].kinks and not (kinks and kinks.complete):
            of_vector = min(KINKS * allowed**0.5, MOST)
        norm, wanted_norm = norm_of(got), norm_of(expected)
        compared = {
            "loss": (abs(loss - wanted.item()) / abs(wanted.item()), allowed),
            "signs": (kinks.error if kinks else 0.0, allowed),
            "norm of the gradients": (abs(norm - wanted_norm) / wanted_norm, GRADIENTS * allowed),
            "gradients": (distance(got, expected), of_vector),
        }
        self._detail |= {"error": compared["gradients"][0], "allowed": of_vector, "gradient_norm": norm}
        self._detail["loss_error"] = compared["loss"][0]
        return next(filter(None, (_said(what, *found) for what, found in compared.items())), "")

    @contextlib.contextmanager
    def _attention(self) -> Iterator[None]:
        """Note which of torch's implementations of attention runs meanwhile."""
        from torch.utils._python_dispatch import TorchDispatchMode

        seen: dict[str, None] = {}

        class Names(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if func.__name__.startswith("scaled_dot_product_attention"):  # inference mode does not choose before
                    with self:
                        return func.decompose(*args, **(kwargs or {}))
                if found := _ATTENTION.match(func.__name__):
                    seen[found[1].removesuffix("_for_cpu").replace("_", "-")] = None
                return func(*args, **(kwargs or {}))

        if "heads" not in self._options or self._call is not self.model:
            yield
            return
        with Names():  # type: ignore[no-untyped-call]  # torch's class has no annotations
            yield
        self._detail["attention"] = ", ".join(seen) or "math"

    def detail(self) -> dict[str, Any]:
        """Return whose definition it is, how many parameters it has and the error that was found."""
        return self._detail


def unlike(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Say how an output is wrong at first sight; empty where it is not."""
    if got.shape != expected.shape:
        return f"the output has the shape {tuple(got.shape)}, {tuple(expected.shape)} was expected"
    if not got.isfinite().all():
        return f"{int((~got.isfinite()).sum())} of {got.numel()} outputs are NaN or infinite"
    if got.numel() > 1 and (got == got.flatten()[0]).all() and not (expected == expected.flatten()[0]).all():
        return f"all {got.numel()} outputs are {got.flatten()[0].item():g}"
    return ""


def distance(got: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """Return the norm of the difference over the norm of what was expected."""
    off = norm_of([one.double() - wanted.double() for one, wanted in zip(got, expected, strict=True)])
    return off / max(norm_of(expected), 1e-300)


def norm_of(tensors: list[torch.Tensor]) -> float:
    """Return the norm of all tensors together."""
    return float(sum(float(one.double().square().sum()) for one in tensors) ** 0.5)


def _said(what: str, error: float, allowed: float) -> str:
    # NaN is not within the bound either
    return "" if error <= allowed else f"{what}: relative error {error:.2g}, {allowed:.2g} is allowed"


def _slow(name: str, *, compiled: bool, device: torch.device) -> str:
    """Return the kind of first run that may take minutes."""
    import torch

    if CATALOGUE[name].images and device.type == "cuda" and torch.version.hip:
        return "miopen-find"
    return "torch-compile" if compiled else ""


def make(parameters: dict[str, Any], device: torch.device) -> NetworkRun:
    """Make a network."""
    return NetworkRun(parameters, device)
