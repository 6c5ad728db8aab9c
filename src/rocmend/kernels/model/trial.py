"""In a worker: compile what a case launches with one configuration, and estimate it."""

from __future__ import annotations

from typing import Any

from rocmend.kernels import registry
from rocmend.kernels import target as targets
from rocmend.kernels.compiled.build import compile_launch
from rocmend.kernels.compiled.measure import measure
from rocmend.kernels.compiled.record import record
from rocmend.kernels.model.estimate import Estimate, estimate
from rocmend.kernels.model.hardware import hardware
from rocmend.kernels.op import resolve
from rocmend.kernels.tuning import Config, forced
from rocmend.kernels.tuning.space import space_for


def estimate_configuration(request: dict[str, Any]) -> list[Estimate]:
    """Return the estimates of all launches of an op's cases.

    Args:
        request: ``op``, ``cases``, ``kernel`` and ``class`` of the record, its ``config`` (None for the one in use),
            ``target`` and ``product``.
    """
    op, gpu = registry.get(request["op"]), hardware(request["target"], request.get("product"))
    target = targets.by_name(request["target"], compute_units=gpu.compute_units)
    space = space_for(op.name, request["kernel"], request["class"], target)
    cases = {case.name: case for case in resolve(op.cases)()}
    config = Config(request["config"], "tried")
    found = []
    for name in request["cases"]:
        with forced(op.name, request["kernel"], config):
            launches = record(op, cases[name], target)
        for launch in launches:
            compiled = compile_launch(launch, target)
            trips = space.trips if space is not None and launch.config is config else ()
            found.append(estimate(compiled, measure(compiled), launch, gpu, trips))
    return found
