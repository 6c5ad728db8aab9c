"""The tuning records that ``rocmend kernels explain`` names are those that the kernels are launched with."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import executor, registry, select
from rocmend.kernels.compiled.names import record_name
from rocmend.kernels.compiled.record import META, compiled_cases
from rocmend.kernels.explain import explain
from rocmend.kernels.op import resolve
from rocmend.kernels.suite.case import Case, Maker
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import observed

pytestmark = pytest.mark.cpu


def _case_records(op: str, case: Case, target_name: str) -> tuple[set[str], set[str]]:
    """Return the names of the records that a case's launches have, and of those that explain lists."""
    known, target = registry.get(op), by_name(target_name)
    function = resolve(known.functions[case.function or next(iter(known.functions))])
    call, recorder = case.make(Maker(META, 0)), executor.Recorder(target)
    with executor.using(recorder), select.prefer(*case.preferences), select.observed() as chosen:
        with observed() as asked:
            function(*call.args, **call.kwargs)
        explained = [explain(registry.get(name), problem, target, here=False) for name, problem, _ in chosen]
    names = {id(one.config): record_name(one) for one in asked}
    launched = {names[id(launch.config)] for launch in recorder.launches if id(launch.config) in names}
    listed = {f"{row.op}/{row.kernel}/{row.shape_class}@{row.target}" for found in explained for row in found.records}
    return launched, listed


@pytest.mark.parametrize(
    ("op", "target"),
    [
        (op.name, target)
        for op in registry.ops()
        for target in ("gfx1151", "gfx942", "sm90")
        if (op.name, target)
        != ("attention", "sm90")  # the alignment of tensors decides which head dimension is computed
    ],
)
def test_explain_lists_the_records_of_every_launch(op: str, target: str) -> None:
    for case in compiled_cases(registry.get(op)):
        if case.function == "attention_backward":  # its problem does not say that gradients are computed
            continue
        try:
            launched, listed = _case_records(op, case, target)
        except select.UnsupportedError:
            continue
        assert launched <= listed, case.name
