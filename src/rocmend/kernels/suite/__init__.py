"""Check an op against its reference, wherever its kernels can be carried out."""

from rocmend.kernels.suite.case import Call, Case, Maker, Size, size_of, sizes
from rocmend.kernels.suite.compare import Comparison, compare
from rocmend.kernels.suite.run import CaseResult, cases_of, run_case

__all__ = [
    "Call",
    "Case",
    "CaseResult",
    "Comparison",
    "Maker",
    "Size",
    "cases_of",
    "compare",
    "run_case",
    "size_of",
    "sizes",
]
