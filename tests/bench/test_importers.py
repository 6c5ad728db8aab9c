"""Others' results are read from each format of each generation; what cannot be read is named with its line."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.bench.imported import evidence, find, keep, pivot
from rocmend.bench.importers.importer import Document, importer_of, importers
from rocmend.bench.llama.output import FORMATS
from rocmend.bench.llama.rows import Row, parse_test
from rocmend.bench.records import measured_of
from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

FIELDS: dict[str, Any] = {
    "build_commit": "abc1234", "build_number": 5000, "cpu_info": "Test CPU", "gpu_info": "AMD Radeon Test",
    "backends": "ROCm", "model_filename": "/home/someone/models/test-7b-Q4_0.gguf", "model_type": "llama 7B Q4_0",
    "model_size": 3825807360, "model_n_params": 6738415616, "n_batch": 2048, "n_ubatch": 512, "n_threads": 16,
    "type_k": "f16", "type_v": "f16", "n_gpu_layers": 99, "use_mmap": False, "flash_attn": True, "n_prompt": 0,
    "n_gen": 128, "n_depth": 8192, "test_time": "2025-11-02T10:00:00Z", "avg_ns": 4000000000, "stddev_ns": 1000,
    "avg_ts": 32.0, "stddev_ts": 0.25,
}  # fmt: skip
SAMPLES = {"samples_ns": [3900000000, 4000000000, 4100000000], "samples_ts": [32.8, 32.0, 31.2]}
OLD = {key: value for key, value in FIELDS.items() if key not in {"backends", "n_depth", "flash_attn"}}
OLD |= {"cuda": True, "opencl": False, "metal": False, "gpu_blas": True, "blas": True}


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _written(kind: str, fields: dict[str, Any]) -> str:
    names = list(fields)
    values = [_text(value) for value in fields.values()]
    if kind == "jsonl":
        return json.dumps(fields | SAMPLES) + "\n"
    if kind == "json":
        return json.dumps([fields | SAMPLES], indent=2)
    if kind == "csv":
        return ",".join(names) + "\n" + ",".join(f'"{value}"' for value in values) + "\n"
    columns = ",\n".join(f"  {name} TEXT" for name in names)
    rows = ", ".join(f"'{value}'" for value in values)
    return (
        f"CREATE TABLE IF NOT EXISTS test (\n{columns}\n);\n\nINSERT INTO test ({', '.join(names)}) VALUES ({rows});\n"
    )


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "sql"])
@pytest.mark.parametrize("fields", [FIELDS, OLD], ids=["new", "old"])
def test_a_row_is_read_in_each_format_of_each_generation(kind: str, fields: dict[str, Any]) -> None:
    document = Document(f"results.{kind}", _written(kind, fields))
    importer = importer_of(document)
    assert importer is not None
    assert importer.id == f"llama-bench-{kind}"
    (entry,), problems = importer.read(document)
    assert problems == []
    row = entry.row
    assert row is not None
    assert entry.model == "test-7b-Q4_0"
    assert (row.test, row.rate, row.spread) == ("tg128 @ d8192" if "n_depth" in fields else "tg128", 32.0, 0.25)
    assert (row.backends, row.build) == ("ROCm" if "backends" in fields else "CUDA", "abc1234 (5000)")
    assert row.seconds == ((3.9, 4.0, 4.1) if kind.startswith("json") else ())
    assert "someone" not in msgspec.json.encode(entry).decode()


MARKDOWN = """ggml_cuda_init: found 1 ROCm devices (Total VRAM: 65536 MiB):
  Device 0: AMD Radeon Test, gfx1151 (0x1151), VMM: no, Wave Size: 32, VRAM: 65536 MiB
| model                  |       size |     params | backend | ngl | fa | mmap |            test |           t/s |
| ---------------------- | ---------: | ---------: | ------- | --: | -: | ---: | --------------: | ------------: |
| llama 7B Q4_0          |   3.56 GiB |     6.74 B | ROCm    |  99 |  1 |    0 |           pp512 | 900.50 ± 1.25 |
| llama 7B Q4_0          |   3.56 GiB |     6.74 B | ROCm    |  99 |  1 |    0 |  tg128 @ d8192  |  nan ± 0.00   |

build: abc1234 (5000)
"""


def test_a_log_with_a_table_gives_the_device_and_names_the_line_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "test-7b__rocm7__fa1.log").write_text(MARKDOWN)
    found = find([tmp_path])
    (item,) = found.results
    assert item.entry.row is not None
    assert (item.entry.model, item.column) == ("test-7b", "rocm7 fa1")
    assert (item.entry.row.rate, item.entry.row.parameters, item.entry.row.build) == (
        900.5,
        6740000000,
        "abc1234 (5000)",
    )
    (problem,) = found.problems
    assert problem.text.startswith("line 6: t/s is 'nan")


KILLED = "\u2716 [rocm6] big-00001-of-00003__fa1 __longctx65536 failed (exit 137)\n"
LOST = """ggml_vulkan: Found 1 Vulkan devices:
terminate called after throwing an instance of 'vk::DeviceLostError'
\u2716 [vulkan] some-model__fa1 failed (exit 0)
"""


STACK = """ggml_cuda_init: found 1 ROCm devices:
/src/ggml-rpc.cpp:690: the remote server crashed
/lib/libggml-base.so.0(ggml_print_backtrace+0x1eb) [0x7f]
"""


@pytest.mark.parametrize(
    ("text", "verdict", "model"),
    [(KILLED, Verdict.OOM, "big"), (LOST, Verdict.CRASH, "some-model"), (STACK, Verdict.CRASH, "a")],
)
def test_a_failed_run_is_kept_as_failed_whatever_its_exit_status(
    tmp_path: Path, text: str, verdict: Verdict, model: str
) -> None:
    (tmp_path / "a.log").write_text(text)
    (item,) = find([tmp_path / "a.log"]).results
    assert (item.entry.verdict, item.entry.model, item.entry.row) == (verdict, model, None)


def test_a_campaign_says_which_image_and_host_its_results_are_from(tmp_path: Path) -> None:
    (tmp_path / "run_metadata.txt").write_text("host: box1\nkernel: 6.99\n")
    manifest = {"campaign_id": "c", "model_provenance": {"test-7b-Q4_0": {"image_digest": "sha256:00"}}}
    (tmp_path / "campaign_manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "a.jsonl").write_text(_written("jsonl", FIELDS))
    (tmp_path / "curve_summary.csv").write_text(
        "model,toolbox,series,starting_depth,ending_context,n_prompt,n_gen,n_batch,n_ubatch,avg_ts,stddev_ts,samples_ts\n"
        'test-7b-Q4_0-00001-of-00002,box,generation,0,128,0,128,2048,512,32.5,0.1,"[32.0, 33.0]"\n'
        "test-7b-Q4_0,box,generation,0,128,0,many,2048,512,32.5,0.1,[]\n"
    )
    found = find([tmp_path])
    assert [item.entry.facts for item in found.results] == [
        {"host": "box1", "kernel": "6.99", "image_digest": "sha256:00"}
    ] * 2
    summary = found.results[1].entry.row
    assert summary is not None
    assert summary.seconds == (4.0, 128 / 33)
    assert [problem.text for problem in found.problems] == ["line 3: n_gen is 'many', expected a whole number"]


def test_results_of_one_test_stand_side_by_side_under_what_differs(tmp_path: Path) -> None:
    rows = [FIELDS | {"flash_attn": on, "avg_ts": rate} for on, rate in ((False, 30.0), (True, 33.0))]
    (tmp_path / "a.jsonl").write_text("".join(_written("jsonl", row) for row in rows))
    ((tests, columns, cells),) = pivot(find([tmp_path]).results).values()
    assert tests == ["tg128 @ d8192"]
    assert columns == ["ROCm AMD Radeon Test fa=0", "ROCm AMD Radeon Test fa=1"]
    assert cells["tg128 @ d8192", columns[1]].entry.row is not None


def test_published_results_of_a_campaign_are_read_with_their_failures(tmp_path: Path) -> None:
    run = {"model_clean": "m", "env": "rocm7", "fa": True, "test": "pp512", "tps_mean": 90.5, "tps_std": 0.5}
    failed = {"model_clean": "m", "env": "rocm6", "fa": False, "error": True, "error_type": "load"}
    whole = {"meta": {"llamacpp_builds": []}, "runs": [run, failed, {"test": "?"}]}
    (tmp_path / "results.json").write_text(json.dumps(whole))
    found = find([tmp_path])
    assert [(item.column, item.entry.verdict.value) for item in found.results] == [
        ("rocm7 fa1", "pass"),
        ("rocm6", "crash"),
    ]
    assert [problem.text[:9] for problem in found.problems] == ["result 3:"]


def test_equal_results_of_two_folders_stand_in_two_columns(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test-7b__rocm7__longctx8192.log").write_text(MARKDOWN)
    ((_, columns, _),) = pivot(find([tmp_path]).results).values()
    assert columns == ["rocm7 one", "rocm7 two"]


def test_others_results_are_evidence_of_their_own_kind_and_kept_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_written("jsonl", FIELDS))
    results = find([tmp_path / "a.jsonl"]).results
    with Store.open(tmp_path / "evidence.sqlite") as store:
        assert (keep(store, results, "g"), keep(store, results, "h")) == ((1, 0), (0, 1))
        assert list(store.query(kind="bench")) == []
        (row,) = store.query(kind="imported")
    measured = measured_of(row.evidence)
    assert (measured.figure, row.evidence.machine) == (32.0, "")
    assert row.evidence.started_at.startswith("2025-11-02")
    assert evidence(results[0], "x").detail["measured"]["prepared"]["detail"]["imported"]["file"] == "a.jsonl"


def test_a_file_that_is_not_there_or_holds_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no"):
        find([tmp_path / "none"])
    (tmp_path / "notes.txt").write_text("nothing of the kind")
    (tmp_path / "empty.md").write_text("| model | test | t/s |\n| --- | --- | --- |\n")
    found = find([tmp_path])
    assert found.unknown == ("notes.txt",)
    assert [problem.text for problem in found.problems] == ["is llama-bench's table, and holds no result"]


def test_a_list_that_was_cut_off_gives_what_is_whole() -> None:
    text = json.dumps([FIELDS | SAMPLES, FIELDS | SAMPLES], indent=2)
    rows, problems = FORMATS["json"](text[: len(text) - 200])
    assert len(rows) == 1
    assert "not whole" in problems[0]


HOSTILE = [
    '{"n_prompt": NaN}',
    '{"n_prompt": ' + "[" * 5000,
    '{"n_prompt": 1, "n_gen": 0, "avg_ts": 1e999}',
    '{"n_prompt": 1, "n_gen": 0, "avg_ts": -1}',
    '{"n_prompt": 1, "n_gen": 0, "avg_ts": true}',
    '{"n_prompt": 1, "n_gen": 0, "avg_ts": 1, "samples_ns": ["x"]}',
    '{"n_prompt": 1, "n_gen": 0, "avg_ts": 1, "samples_ns": {"a": 1}}',
    '{"n_prompt": "1' + "0" * 5000 + '", "n_gen": 0, "avg_ts": 1}',
    '{"n_prompt": 1e400, "n_gen": 0}',
    '{"n_prompt": 0, "n_gen": 0, "avg_ts": 1}',
    '{"n_prompt": 1, "n_gen": 0, "avg_ts": 1, "model_type": {}}',
]


@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_line_is_named_and_the_next_is_read(line: str) -> None:
    rows, problems = FORMATS["jsonl"](f"{line}\n{_written('jsonl', FIELDS)}")
    assert len(rows) == 1
    assert len(problems) == 1
    assert problems[0].startswith("line 1: ")
    assert len(problems[0]) < 300


_FINITE = st.floats(min_value=1e-3, max_value=1e6, allow_nan=False)


@given(
    rate=_FINITE, spread=_FINITE, prompt=st.integers(0, 9999), depth=st.integers(0, 1 << 20), name=st.text(max_size=40)
)
def test_what_is_written_is_read_back(rate: float, spread: float, prompt: int, depth: int, name: str) -> None:
    fields = FIELDS | {"avg_ts": rate, "stddev_ts": spread, "n_prompt": prompt, "n_depth": depth, "model_type": name}
    for kind in ("jsonl", "json"):
        (row,), problems = FORMATS[kind](_written(kind, fields))
        assert problems == []
        assert (row.rate, row.spread, row.prompt, row.depth, row.model) == (rate, spread, prompt, depth, name)


@given(kind=st.sampled_from(sorted(FORMATS)), data=st.data())
def test_damage_loses_rows_and_never_the_reader(kind: str, data: st.DataObject) -> None:
    whole = MARKDOWN if kind == "md" else _written(kind, FIELDS) * 2
    text = list(whole)
    for _ in range(data.draw(st.integers(0, 6))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.characters())
    rows, problems = FORMATS[kind]("".join(text)[: data.draw(st.integers(0, len(text)))])
    assert all(isinstance(row, Row) and math.isfinite(row.rate) and row.rate > 0 for row in rows)
    assert all(len(problem) < 400 for problem in problems)


PREFIXES = (
    "",
    "| model | test | t/s |\n",
    '{"n_prompt": 1, "bench_raw":',
    '{"meta": {"toolboxes":',
    "build_commit,n_prompt\n",
)


@given(text=st.text(max_size=300), name=st.text(max_size=30))
def test_any_text_is_read_or_not_known(text: str, name: str) -> None:
    for prefix in PREFIXES:
        document = Document(name, prefix + text)
        importer = importer_of(document)
        if importer is not None:
            entries, problems = importer.read(document)
            assert all(entry.row is not None or entry.verdict is not Verdict.PASS for entry in entries)
            assert all(isinstance(problem, str) for problem in problems)


@given(st.text(max_size=40))
def test_a_tests_name_is_read_or_refused(text: str) -> None:
    try:
        prompt, generate, depth = parse_test(text)
    except ValueError:
        return
    assert prompt or generate or depth


def test_importers_have_names_of_their_own_and_titles() -> None:
    found = importers()
    assert len({item.id for item in found}) == len(found) >= 9
    assert all(item.title for item in found)


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 65536,
        "-\n" * 32768,
        "[\n" * 32768,
        "{\n" * 32768,
        "| model |" * 8000,
        "INSERT INTO test (a) VALUES (" + "'" * 200_001 + ");",
        '{"' * 30000,
    ],
    ids=["newlines", "dashes", "brackets", "braces", "cells", "quotes", "names"],
)
def test_no_text_keeps_the_reader_busy(text: str) -> None:
    begin = time.process_time()
    importer = importer_of(Document("a.log", text))
    if importer is not None:
        importer.read(Document("a.log", text))
    for read in FORMATS.values():
        read(text)
    assert time.process_time() - begin < 5
