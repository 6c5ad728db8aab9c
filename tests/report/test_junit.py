from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.verdict import Verdict
from rocmend.report.junit import Case, render

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)  # control characters and lone surrogates too
CASES = st.lists(
    st.builds(Case, TEXT, TEXT, st.floats(), st.sampled_from(Verdict), TEXT, TEXT),
    max_size=5,
)
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def readable(text: str) -> str:
    """Return a text as the document should hold it."""
    return NOT_IN_XML.sub(lambda found: f"\\{'x' if found[0] < 'Ā' else 'u'}{ord(found[0]):02x}", text)


def parse(text: str) -> ET.Element:
    return ET.fromstring(text.encode())  # noqa: S314  our own text


@given(CASES, TEXT)
def test_whatever_a_trial_printed_is_read_back(cases: list[Case], name: str) -> None:
    top = parse(render(cases, name=name))
    (suite,) = top
    assert suite.get("name") == top.get("name") == readable(name)
    found = suite.findall("testcase")
    assert [(item.get("name"), item.get("classname")) for item in found] == [
        (readable(case.name), readable(case.classname)) for case in cases
    ]
    for item, case in zip(found, cases, strict=True):
        if case.verdict is Verdict.PASS:
            assert list(item) == []
            continue
        assert (item.findtext("system-out") or "") == readable(case.output)
        assert (item[0].text or "") == readable(case.message.partition("\n")[2])
        assert readable(case.message.partition("\n")[0]) in (item[0].get("message") or "")


@given(CASES)
def test_the_counts_are_those_of_the_elements(cases: list[Case]) -> None:
    top = parse(render(cases, name="probe"))
    for element in (top, top[0]):
        counted = {name: int(element.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped")}
        assert counted == {
            "tests": len(top.findall(".//testcase")),
            "failures": len(top.findall(".//failure")),
            "errors": len(top.findall(".//error")),
            "skipped": len(top.findall(".//skipped")),
        }


@pytest.mark.parametrize("verdict", Verdict)
def test_each_verdict_has_its_element(verdict: Verdict) -> None:
    (case,) = parse(render([Case("n", "c", 1.5, verdict, "why\nmore")], name="probe"))[0]
    assert case.get("time") == "1.500"
    expected = {
        Verdict.PASS: [],
        Verdict.INFRA: ["error"],
        Verdict.SKIPPED: ["skipped"],
        Verdict.UNSUPPORTED: ["skipped"],
    }.get(verdict, ["failure"])
    assert [part.tag for part in case] == expected
    if expected == ["skipped"]:
        assert case[0].attrib == {"message": f"{verdict}: why"}
    elif expected:
        assert case[0].attrib == {"message": "why", "type": verdict.value}
        assert case[0].text == "more"


def test_the_whole_document() -> None:
    cases = [
        Case("matmul", "float16", 0.0123, Verdict.PASS),
        Case("conv2d <3x3>", "float16", 2, Verdict.WRONG_OUTPUT, 'max error 3.2 > 0.01 & "nan"', "\x1b[31mred\r\n"),
    ]
    assert render(cases, name="rocmend probe", started_at="2026-03-01T10:00:00Z") == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<testsuites name="rocmend probe" tests="2" failures="1" errors="0" skipped="0" time="2.012">\n'
        '  <testsuite name="rocmend probe" tests="2" failures="1" errors="0" skipped="0" time="2.012"'
        ' timestamp="2026-03-01T10:00:00Z">\n'
        '    <testcase name="matmul" classname="float16" time="0.012"/>\n'
        '    <testcase name="conv2d &lt;3x3&gt;" classname="float16" time="2.000">\n'
        '      <failure message="max error 3.2 &gt; 0.01 &amp; &quot;nan&quot;" type="wrong-output"></failure>\n'
        "      <system-out>\\x1b[31mred&#13;\n</system-out>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"
    )


@pytest.mark.parametrize("time_s", [math.nan, math.inf, -1.0])
def test_a_time_that_is_none_is_left_out(time_s: float) -> None:
    top = parse(render([Case("a", "c", time_s, Verdict.PASS), Case("b", "c", 2.0, Verdict.PASS)], name="x"))
    assert [case.get("time") for case in top[0]] == [None, "2.000"]
    assert top.get("time") == "2.000"


def test_no_trials_are_a_document_too() -> None:
    top = parse(render([], name="x"))
    assert (top.get("tests"), top.get("time"), len(top[0])) == ("0", "0.000", 0)
