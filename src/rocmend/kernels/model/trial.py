"""In a worker: compile what a case launches with one configuration, and estimate it."""

from __future__ import annotations

import contextlib
from typing import Any

from rocmend.kernels import registry
from rocmend.kernels import target as targets
from rocmend.kernels.compiled.build import compile_launch
from rocmend.kernels.compiled.measure import measure
from rocmend.kernels.compiled.record import record
from rocmend.kernels.model.estimate import Estimate, estimate
from rocmend.kernels.model.hardware import hardware
from rocmend.kernels.op import resolve
from rocmend.kernels.tuning import Config, forced, observed
from rocmend.kernels.tuning.space import space_for


def estimate_configuration(request: dict[str, Any]) -> list[Estimate]:
    """Return the estimates of all launches of an op's cases.

    Args:
        request: ``op``, ``cases``, ``kernel`` and ``class`` of the record, ``config`` in its place, ``target`` and
            ``product``. Without a ``config`` the records in use are taken.
    """
    op, gpu = registry.get(request["op"]), hardware(request["target"], request.get("product"))
    target = targets.by_name(request["target"], compute_units=gpu.compute_units)
    cases = {case.name: case for case in resolve(op.cases)()}
    config = Config(request["config"], "tried") if request.get("config") is not None else None
    found = []
    for name in request["cases"]:
        with contextlib.ExitStack() as stack:
            asked = stack.enter_context(observed())
            if config is not None:
                stack.enter_context(forced(op.name, request["kernel"], config))
            launches = record(op, cases[name], target)
        spaces = {id(one.config): space_for(one.op, one.kernel, one.shape_class, target) for one in asked}
        if config is not None:
            spaces[id(config)] = space_for(op.name, request["kernel"], request["class"], target)
        for launch in launches:
            compiled = compile_launch(launch, target)
            space = spaces.get(id(launch.config))
            found.append(estimate(compiled, measure(compiled), launch, gpu, space.trips if space is not None else ()))
    return found
