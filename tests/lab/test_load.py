from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmend.core.errors import DataError, UsageError
from rocmend.lab.load import MAX_FILE_BYTES, line_of, load_experiment, parse_experiment
from rocmend.lab.plan import all_trials, make_plan
from rocmend.lab.trial import definition_of, spec_of

from .conftest import EXPERIMENT

EXAMPLES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "experiments"

Write = Callable[..., Path]


@pytest.mark.parametrize("name", ["local-demo", "strix-halo-load-hang", "rdna1-conv2d", "llama-two-backends"])
def test_examples_load_and_every_trial_is_another_run(name: str) -> None:
    experiment = load_experiment(EXAMPLES / f"{name}.toml")
    trials = all_trials(experiment)
    assert trials[0].id == "baseline"
    specs = [spec_of(experiment, item.settings, name="", here="h", out="o").identity() for item in trials]
    boots = [tuple(item.settings[f.name] for f in experiment.factor if f.kind.needs_boot) for item in trials]
    assert len(set(zip(specs, boots, strict=True))) == len(trials)
    assert len({item.definition for item in trials}) == len(trials)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('id = "made-up"', 'id = "Made Up"', "line 2, experiment.id: 'Made Up' is not a valid id"),
        ("question", "asks", "line 4, experiment.asks: unknown field"),
        ('title = "A made-up workload"', "title = 3", "line 3, experiment.title: Expected `str`, got `int`"),
        ('title = "A made-up workload"', "", "line 1, experiment: Object missing required field `title`"),
        ("silence_s = 3", "silence_s = -1", "limits: silence_s must be above 0"),
        ('kind = "env"', 'kind = "moon"', "line 17, factor[0].kind: there is no kind 'moon'"),
        ('baseline = "hang"', 'baseline = "stop"', "line 20, factor[0].baseline: 'stop' is not one of its values"),
        ('values = ["unset", "red"]', 'values = ["unset"]', "factor[1].values: expected two different values"),
        ('name = "colour"', 'name = "mode"', "line 23, factor[1].name: 'mode' is defined twice"),
        ('variable = "COLOUR"', 'variable = "A-B"', "factor[1].variable: 'A-B' is not a valid variable name"),
        ('variable = "COLOUR"', 'variable = "HF_TOKEN"', "factor[1].values: HF_TOKEN holds a secret"),
        ('COUNTER = "{here}/counter"', 'HF_TOKEN = "{colour}"', "env: HF_TOKEN is a secret and takes a factor's value"),
        (
            "[limits]",
            '[where]\nkind = "container"\nimage = "i"\nextra_args = ["-e", "HF_TOKEN=abcdef"]\n\n[limits]',
            "where.extra_args: hold a secret",
        ),
        (
            "[limits]",
            '[where]\nkind = "container"\nimage = "i"\noptions = ["root"]\n\n[limits]',
            "where: expected options of ptrace",
        ),
        ("[limits]", '[where]\nkind = "ssh"\nhost = "-oProxyCommand=x"\n\n[limits]', "expected a host's name"),
        ('variable = "COLOUR"', 'parameter = "x.y"', "factor[1].parameter: does not apply to the kind env"),
        ('kind = "env"\nvariable = "COLOUR"', 'kind = "flag"', "line 23, factor[1].name: nothing reads {colour}"),
        ("{here}/workload.py", "{there}/workload.py", "line 5, experiment.command: {there} is not a factor"),
        ('sets = { mode = "crash" }', 'sets = { mood = "crash" }', "line 42, strategy[2].sets: 'mood' is not a factor"),
        ('sets = { mode = "crash" }', 'sets = { mode = "bang" }', "strategy[2].sets: 'bang' is not a value of mode"),
        ('sets = { mode = "crash" }', 'sets = { mode = "hang" }', "strategy[2].sets: changes nothing"),
        ('sets = { mode = "crash" }', 'sets = { mode = "good" }', "strategy[2].sets: is the same trial as 'good'"),
        ('id = "crash"', 'id = "good"', "line 40, strategy[2].id: 'good' is defined twice"),
        ('id = "crash"', 'id = "baseline"', "strategy[2].id: 'baseline' is not a valid strategy id"),
        ("^answer: 42$", "^answer: (42$", "oracle.pattern: is not a regular expression"),
        ("([0-9]+)", "[0-9]+", "success[0].number: expected one group"),
        ("at_least = 50", "", "success[0].at_least: no bound is given"),
        ('number = "^speed', 'phase = "nowhere"\nnumber = "^speed', "success[0].phase: unknown phase 'nowhere'"),
        ('phases = "phases.toml"', 'phases = "absent"', "line 6, experiment.phases: unknown phase set 'absent'"),
        ('files = ["workload.py"]', 'files = ["absent"]', "experiment.files: there is no file 'absent'"),
        ("[limits]", '[where]\nkind = "moon"\n[limits]', "line 11, where.kind: 'moon' is not a place to run"),
        ("[limits]", '[where]\nkind = "container"\n[limits]', "line 10, where: "),
        ("[limits]", '[where]\nkind = "local"\nimage = "x"\n[limits]', "where.image: local has no such field"),
        ('kind = "output-matches"', 'kind = "guess"', "oracle.kind: there is no kind 'guess'"),
        ('files = ["workload.py"]', 'files = ["/etc/shadow"]', "experiment.files: '/etc/shadow' is an absolute path"),
        ('files = ["workload.py"]', 'files = ["/dev/zero"]', "experiment.files: '/dev/zero' is an absolute path"),
        ("[limits]", "[limits", "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_field(before: str, after: str, said: str, write: Write) -> None:
    with pytest.raises(DataError) as caught:
        load_experiment(write((before, after)))
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("before", "after", "known"),
    [
        ('kind = "env"', 'kind = "evn"', "build, env, firmware, flag, image, kernel-parameter, workload"),
        ('kind = "output-matches"', 'kind = "guess"', "exit-and-pattern, file-within, number-within, output-equals"),
        ("^answer: 42$", "(a)\\\\1", "no back references"),
    ],
)
def test_what_there_is_instead_is_said(before: str, after: str, known: str, write: Write) -> None:
    with pytest.raises(DataError) as caught:
        load_experiment(write((before, after)))
    assert known in caught.value.next_step


def test_a_file_that_is_absent_or_huge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load_experiment(tmp_path / "absent.toml")
    huge = tmp_path / "huge.toml"
    huge.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(DataError):
        load_experiment(huge)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_loads_or_is_refused_in_words(folder: Path, data: st.DataObject) -> None:
    raw = EXPERIMENT.encode()
    at = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(at, min(len(raw), at + 40)))
    damaged = raw[:at] + data.draw(st.binary(max_size=12)) + raw[end:]
    with contextlib.suppress(DataError):
        assert make_plan(parse_experiment(damaged, folder / "experiment.toml"))


@given(st.text(max_size=300), st.text(max_size=40))
def test_line_of_is_total(text: str, path: str) -> None:
    assert 0 <= line_of(text, path) <= len(text.splitlines())


def test_the_definition_follows_the_contents_and_not_the_folder(write: Write, tmp_path: Path) -> None:
    experiment = load_experiment(write())
    trial = experiment.baseline
    before = definition_of(experiment, trial)
    moved = tmp_path / "moved"
    (tmp_path / "experiment").rename(moved)
    assert definition_of(load_experiment(moved / "experiment.toml"), trial) == before
    (moved / "workload.py").write_text("print('answer: 42')")
    assert definition_of(load_experiment(moved / "experiment.toml"), trial) != before
    text = (moved / "experiment.toml").read_text().replace("at_least = 50", "at_least = 60")
    (moved / "experiment.toml").write_text(text)
    assert len({before, definition_of(load_experiment(moved / "experiment.toml"), trial)}) == 2


def test_a_value_becomes_arguments_as_a_shell_would_split_it(write: Write) -> None:
    path = write(
        ('"{here}/workload.py"]', '"{here}/workload.py", "{colour}", "--x={colour}"]'),
        ('kind = "env"\nvariable = "COLOUR"\nvalues = ["unset", "red"]', 'kind = "flag"\nvalues = ["", "-a \'b c\'"]'),
        ('baseline = "unset"', 'baseline = ""'),
        ('colour = "red"', "colour = \"-a 'b c'\""),
    )
    experiment = load_experiment(path)
    argv = [
        spec_of(experiment, item.settings, name="", here="H", out="").command.argv[1:]  # type: ignore[union-attr]
        for item in all_trials(experiment)
        if item.id in {"good", "red"}
    ]
    assert argv == [("H/workload.py", "--x="), ("H/workload.py", "-a", "b c", "--x=-a 'b c'")]
