"""Language models through ``rocmend.mlx`` and mlx_lm: a prompt, or tokens generated after it.

It needs what ``rocmend.mlx`` needs in the interpreter that runs it: mlx_lm and rocmend's own dependencies.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rocmend.bench.workload import Workload

if TYPE_CHECKING:
    import torch

PROMPT, GENERATION = "prompt", "generation"
CHECKED_TOKENS = 8
ROUNDING = 8e-3
"""Relative error that is allowed of a product after another in bfloat16, times the root of how many there are."""
PRODUCTS = 7
"""Products of a layer."""
EXPERTS = 0.5
"""Allowed where there are experts: rounding may choose another one for a token."""
STEPS = 20
"""Decode steps whose time on the CPU is taken."""

_kept: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]] = {}
"""The model of this process: a prompt and a generation at each depth use the same one."""
_copied: list[float | None] = []
"""Bandwidth of a copy, measured once in a process."""


def make(parameters: dict[str, Any], device: torch.device) -> ModelRun:
    """Make a model ready at a depth."""
    os.environ["ROCMEND_MLX_DEVICE"] = "gpu" if device.type == "cuda" else "cpu"
    from rocmend.mlx import launch

    launch.prepare(children=False)
    return ModelRun(parameters, device)


class ModelRun(Workload):
    """A model with ``depth`` tokens in its cache, which takes a prompt; or with the prompt, too, and generates.

    Args:
        parameters: ``model`` (a folder or a name of the hub) or ``shape``, ``layers`` (0 for all), ``task``, ``depth``,
            ``prompt`` and ``generate`` (tokens).
        device: Where it runs.
    """

    def __init__(self, parameters: dict[str, Any], device: torch.device) -> None:
        import mlx.core

        from rocmend.mlx.programs import speed

        self.slow = "triton" if device.type == "cuda" else ""
        self._speed, self._mx = speed, mlx.core
        if not _copied:  # before the model is there: it takes memory of its own
            _copied.append(speed.copy_gb_s())
        self._generates = parameters["task"] == GENERATION
        self._model, self._config = _model(parameters)
        depth, length, self._count = (int(parameters[name]) for name in ("depth", "prompt", "generate"))
        self._prompt = self._mx.random.randint(0, 1000, (length,))
        self._cache = speed.filled(self._model, depth)
        self._before = speed.bytes_of_the_cache(self._cache) if depth else 0
        if self._generates:
            self._last(self._prompt[:-1], 0)
        self._mx.eval([one.state for one in self._cache])
        self._saved = _saved(self._cache)
        self._after, self._detail = self._before, dict[str, Any]()

    def run(self) -> Any:
        """Take the prompt, or compute as many steps as tokens are to be generated."""
        _rewind(self._cache, self._saved)
        if self._generates:  # the step of the prompt's last token, and one for each token
            return self._last(self._prompt[-1:], self._count - 1)
        return self._last(self._prompt, 0)

    def _last(self, prompt: Any, count: int) -> Any:
        """Take tokens and generate as many; return the last logarithms of probabilities, None of none."""
        steps = self._speed.generating.generate_step
        last = None
        for token, logarithms in steps(prompt, self._model, max_tokens=count, prompt_cache=self._cache):
            int(token)
            last = logarithms
        return last

    def wrong(self) -> str:
        """Compare a few tokens taken at once with the same taken one by one: other kernels compute them."""
        import torch

        self._after = self._speed.bytes_of_the_cache(self._cache)
        tokens = self._prompt[:CHECKED_TOKENS] if self._prompt.size > 1 else self._mx.array([1, 2, 3])
        whole = self._model(tokens[None], cache=self._speed.filled(self._model, 0))[0, -1]
        cache = self._speed.filled(self._model, 0)
        for number in range(tokens.size):
            single = self._model(tokens[None, number : number + 1], cache=cache)[0, -1]
        _rewind(self._cache, self._saved)
        last = self._last(self._prompt[-1:], 1)
        several = [torch.tensor(one.astype(self._mx.float32).tolist()) for one in (whole, single, last)]
        for one in several:
            if one.isnan().any():
                return f"{int(one.isnan().sum())} of {one.numel()} logits are NaN"
            if (one == one[0]).all():
                return f"all {one.numel()} logits are {one[0].item():g}"
        at_once, by_one = several[:2]
        error = float((at_once - by_one).norm() / by_one.norm())
        self._detail |= {"error": error, "allowed": self._allowed()}
        if error <= self._allowed():
            return ""
        return f"tokens at once and one by one differ by {error:.2g} of the logits, {self._allowed():.2g} is allowed"

    def _allowed(self) -> float:
        if any("expert" in name and value for name, value in self._config.items()):
            return EXPERTS
        return float(ROUNDING * (PRODUCTS * len(self._model.layers)) ** 0.5)

    def detail(self) -> dict[str, Any]:
        """Return what a token must read, how fast memory is copied, and how steps are computed."""
        about = self._speed.about()
        found = {
            "weight_bytes": self._speed.bytes_of_a_token(self._model, self._config),
            "copy_gb_s": _copied[0],
            "executed": self._speed.executed(),
            "versions": about["versions"],
        }
        if self._generates:
            # in the middle of the generation
            found["cache_bytes"] = round(self._after - (self._after - self._saved_bytes()) / 2)
            found |= self._speed.steps(self._model, STEPS)
        return {**self._detail, **found}

    def _saved_bytes(self) -> int:
        _rewind(self._cache, self._saved)
        return int(self._speed.bytes_of_the_cache(self._cache))


def _model(parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the model and its configuration; the same one as before where it is asked for again."""
    from rocmend.mlx.programs import speed

    model, shape, layers = (parameters.get(name) for name in ("model", "shape", "layers"))
    key = (model, shape, layers)
    if key not in _kept:
        _kept.clear()
        if shape:
            config = speed.CONFIGS[shape] | ({"num_hidden_layers": layers} if layers else {})
            _kept[key] = speed.build(config), config
        else:
            _kept[key] = speed.load(str(model))
    return _kept[key]


_TRIMMABLE = ("KVCache", "QuantizedKVCache")
"""Caches that can be cut back to any length; of others the content is kept."""


def _saved(cache: Any) -> list[Any]:
    """Return what ``_rewind`` needs to bring a cache back to where it is."""
    return [
        _saved(one.caches)
        if hasattr(one, "caches")
        else one.offset
        if type(one).__name__ in _TRIMMABLE
        else (_copy(one.state), getattr(one, "meta_state", None))
        for one in cache
    ]


def _rewind(cache: Any, saved: list[Any]) -> None:
    for one, was in zip(cache, saved, strict=True):
        if hasattr(one, "caches"):
            _rewind(one.caches, was)
        elif type(one).__name__ in _TRIMMABLE:
            one.trim(one.offset - was)
        else:
            one.state = _copy(was[0])
            if was[1] is not None:
                one.meta_state = was[1]


def _copy(state: Any) -> Any:
    """Return a state with arrays of its own: caches write into theirs."""
    import mlx.core
    import mlx.utils

    array: Any = mlx.core.array
    return mlx.utils.tree_map(lambda one: array(one) if isinstance(one, array) else one, state)
