"""What programs print: the same but for times and rounding, or that they failed."""

from __future__ import annotations

import pytest

from rocmend.port.verify.printed import difference, failure


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("sum 1.0\n", "sum 1.0001\n", True),
        ("sum 1.0\n", "sum 1.1\n", False),
        ("ok\ntime: 3.5 ms\n", "ok\ntime: 9.9 ms\n", True),
        ("PASS\n", "FAIL\n", False),
        ("a 1\n", "a 1\nb 2\n", False),
        ("x 1e-3 y -2\n", "x 0.001 y -2\n", True),
        ("x inf\n", "x nan\n", False),
        ("error 3e-8\n", "error 2e-7\n", True),
        ("found 100000\n", "found 100050\n", False),
        ("found 100000.0\n", "found 100050.0\n", True),
        ("latency 12\nsum -0.0\n", "latency 99\nsum 0.0\n", True),
    ],
)
def test_what_two_programs_print(before: str, after: str, same: bool) -> None:
    assert (difference(before, after) is None) is same


@pytest.mark.parametrize(
    "line",
    [
        "Block size = 32, ratio of valid elements = 0.000406, verify = FAIL",
        "FAIL",
        "Test FAILED",
        "Test FAILED 3.20 ms",
        "verification failed at index 0: expected 0 got 3",
        "Mismatch at i = 0",
        "3 of 10 tests failed",
        "0 passed, 3 failed",
        "0 passed 3 failed",
        "test 0 failed",
        "10.0 failed",
        "failures: 2",
        "Failed tests: 12",
        "mismatches = 7 (of 0)",
        "FAIL: 0 FAILED: 4",
        "Pass/Fail: FAIL",
        "result is incorrect!",
        "results do not match",
        "The result is NOT correct",
        "verify = false",
        "Passed: No",
        "CUDA error: an illegal memory access was encountered",
        "Error: results differ",
        "ERROR",
        "status: error!",
        "2 errors",
        "errors found: 5",
        "an error occurred",
        "wrong result: nan",
        "results mismatch: 0 3 5",
        "elements mismatch: 0 != 2 (expected)",
        "Error at index 0: 0.5 0.25",
    ],
)
def test_a_line_that_says_that_the_program_failed(line: str) -> None:
    assert failure(f"start\n  {line}  \nPASS\n") == line


@pytest.mark.parametrize(
    "line",
    [
        "PASS",
        "0 failed",
        "0 of 100 tests failed",
        "0/100 failed",
        "0.0% failed",
        "Failed: 0",
        "FAIL: 0",
        "FAIL=0 PASS=10",
        "failed tests: 0 / 10",
        "failed 0 times",
        "Number of mismatches: 0",
        "No mismatch",
        "no errors",
        "No errors found",
        "0 errors",
        "errors found: none",
        "Errors = 0",
        "error = 1e-7",
        "Max error: 0.25",
        "Max error at index 3: 0.25",
        "error: 3",
        "Error: max 0.5, mean 0.1",
        "relative error",
        "size error rate",
        "failure rate: 0.25",
        "CUDA error: no error",
        "did not fail",
        "without failures",
        "prints PASS or FAIL",
        "pass/fail",
        "Pass/Fail: PASS",
        "fail-safe mode",
        "Validation: no errors",
        "Correct: yes",
        "failover FAIL_COUNT",
    ],
)
def test_a_line_that_says_no_such_thing(line: str) -> None:
    assert failure(line) is None
