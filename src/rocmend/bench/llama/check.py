"""Whether a back end computes what the processor computes: a short greedy generation, and perplexity on a short text.

llama-bench itself prints no output that could be judged, so the programs beside it are used, where they are there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rocmend.bench.llama.backends import CPU, Backend
from rocmend.bench.llama.build import Build, Help, Said, help_of, say
from rocmend.bench.llama.options import ALL_LAYERS, Chosen, batch_arguments, split_arguments
from rocmend.bench.session import Stop
from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict
from rocmend.runner.spec import Limits

TEXT = Path(__file__).with_name("check.txt")
PROMPT = "The planets of the solar system, in order of their distance from the sun, are"
TOKENS = 32
CONTEXT = 128
CHUNKS = 3
PERPLEXITY_TOLERANCE = 0.05
"""Largest difference from the processor's perplexity: other kernels round otherwise, which changes well below 1 %."""
_LOAD_BYTES_S = 50e6
_PERPLEXITY = re.compile(r"Final estimate: PPL = *([\w.+-]+)|\[\d+\](-?nan|-?inf)\b", re.IGNORECASE)
_REPEATED = re.compile(r"(\S{1,40})(?:\s*\1){7,}")


class Checked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a comparison with the processor showed.

    Attributes:
        verdict: ``pass``, ``wrong-output``, or how a program that generates failed on the back end.
        said: What was compared, and how it came out.
        text: What the back end generated.
        reference: What the processor generated.
        perplexity: The back end's.
        reference_perplexity: The processor's.
        log: Output of a program that failed.
    """

    verdict: Verdict
    said: str
    text: str = ""
    reference: str = ""
    perplexity: float | None = None
    reference_perplexity: float | None = None
    log: str = ""


class _Ran(msgspec.Struct, frozen=True):
    """A program's run: what it gave, or why it gave nothing."""

    verdict: Verdict
    reason: str = ""
    text: str = ""
    perplexity: float | None = None
    log: str = ""


class Checker:
    """Compares back ends of builds with the processor's output of the same build.

    Args:
        model: The model file.
        size_bytes: Of the model, for how long loading may take.
    """

    def __init__(self, model: Path, size_bytes: int) -> None:
        self.model, self._size = model, size_bytes
        self._references: dict[tuple[str, str], _Ran] = {}
        self._help: dict[Path, Help | None] = {}

    def check(self, build: Build, backend: Backend, chosen: Chosen, stop: Stop) -> Checked:
        """Compare a back end under some options with the processor."""
        generated = self._compare_text(build, backend, chosen, stop)
        if generated is not None and generated.verdict is not Verdict.PASS:
            return generated
        measured = self._compare_perplexity(build, backend, chosen, stop)
        found = [item for item in (generated, measured) if item is not None]
        if not found:
            return Checked(
                Verdict.PASS, "the output was not checked: no llama-completion, llama-cli or llama-perplexity beside it"
            )
        failed = next((item for item in found if item.verdict is not Verdict.PASS), None)
        if failed is not None:
            return failed
        first = generated or found[0]
        return msgspec.structs.replace(
            first,
            said="; ".join(item.said for item in found),
            perplexity=measured.perplexity if measured else None,
            reference_perplexity=measured.reference_perplexity if measured else None,
        )

    def _compare_text(self, build: Build, backend: Backend, chosen: Chosen, stop: Stop) -> Checked | None:
        program, options = self._program(build, "llama-completion", "llama-cli")
        if program is None or options is None or not options.has("-no-cnv", "--no-conversation"):
            return None
        name = program.name
        reference = self._reference(build, program, options, "text", stop)
        if reference.verdict is not Verdict.PASS:
            return Checked(Verdict.PASS, f"the text was not checked: {name} fails on the CPU, too ({reference.reason})")
        if fault := garbage(reference.text):
            return Checked(Verdict.PASS, f"the text was not checked: {fault} on the CPU, too", reference=reference.text)
        if backend.on_cpu:
            return Checked(Verdict.PASS, f"{name}: the CPU's text is the reference", text=reference.text)
        ran = self._generate(program, options, backend, chosen, stop)
        if ran.verdict is not Verdict.PASS:
            return Checked(ran.verdict, f"{name}: {ran.reason}", log=ran.log)
        verdict, said = compare_texts(ran.text, reference.text)
        return Checked(verdict, f"{name}: {said}{_other_batch(options, chosen)}", ran.text, reference.text)

    def _compare_perplexity(self, build: Build, backend: Backend, chosen: Chosen, stop: Stop) -> Checked | None:
        program, options = self._program(build, "llama-perplexity")
        if program is None or options is None:
            return None
        reference = self._reference(build, program, options, "perplexity", stop)
        expected = reference.perplexity
        if expected is None or not math.isfinite(expected):
            why = reference.reason or f"the CPU's is {expected}"
            return Checked(Verdict.PASS, f"perplexity was not checked: {why}")
        if backend.on_cpu:
            said = f"the CPU's perplexity {expected:.4g} is the reference"
            return Checked(Verdict.PASS, said, perplexity=expected, reference_perplexity=expected)
        ran = self._measure(program, options, backend, chosen, stop)
        if ran.perplexity is None:
            return Checked(ran.verdict, f"{program.name}: {ran.reason}", log=ran.log)
        verdict, said = compare_perplexities(ran.perplexity, expected)
        said += _other_batch(options, chosen)
        return Checked(verdict, said, perplexity=ran.perplexity, reference_perplexity=expected)

    def _program(self, build: Build, *names: str) -> tuple[Path | None, Help | None]:
        program = build.beside(*names)
        if program is None:
            return None, None
        if program not in self._help:
            try:
                self._help[program] = help_of(program)
            except UsageError:
                self._help[program] = None
        return program, self._help[program]

    def _reference(self, build: Build, program: Path, options: Help, what: str, stop: Stop) -> _Ran:
        key = (str(build.path), what)
        if key not in self._references:
            run = self._generate if what == "text" else self._measure
            env = (
                {} if options.has("-dev", "--device") else {"HIP_VISIBLE_DEVICES": "-1", "GGML_VK_VISIBLE_DEVICES": ""}
            )
            self._references[key] = run(program, options, Backend(CPU, "none", "", dict(env)), Chosen(), stop)
        return self._references[key]

    def _generate(self, program: Path, options: Help, backend: Backend, chosen: Chosen, stop: Stop) -> _Ran:
        argv = [*self._common(program, options, backend, chosen), "-p", PROMPT, "-n", str(TOKENS), "--temp", "0"]
        argv += ["-no-cnv" if options.has("-no-cnv") else "--no-conversation", "-c", "512"]
        argv += ["--no-display-prompt"] if options.has("--no-display-prompt") else []
        argv += ["-s", "1"] if options.has("-s") else []
        said = self._say(argv, backend, stop)
        if said.result.verdict is not Verdict.PASS:
            return _Ran(said.result.verdict, said.result.reason, log=_tail(said))
        return _Ran(Verdict.PASS, text="\n".join(said.out).removeprefix(PROMPT).strip())

    def _measure(self, program: Path, options: Help, backend: Backend, chosen: Chosen, stop: Stop) -> _Ran:
        argv = [*self._common(program, options, backend, chosen), "-f", str(TEXT), "-c", str(CONTEXT)]
        argv += ["--chunks", str(CHUNKS)] if options.has("--chunks") else []
        said = self._say(argv, backend, stop)
        found = [match for line in (*said.out, *said.err) for match in _PERPLEXITY.finditer(line)]
        if said.result.verdict is not Verdict.PASS:
            return _Ran(said.result.verdict, said.result.reason, log=_tail(said))
        if not found:
            return _Ran(Verdict.INFRA, "it printed no perplexity", log=_tail(said))
        return _Ran(Verdict.PASS, perplexity=_number(found[-1][1] or found[-1][2]))

    def _common(self, program: Path, options: Help, backend: Backend, chosen: Chosen) -> list[str]:
        argv = [str(program), "-m", str(self.model)]
        if layers := options.has("-ngl", "--gpu-layers", "--n-gpu-layers"):
            argv += [layers, "0" if backend.on_cpu else ALL_LAYERS]
        if device := options.has("-dev", "--device"):
            argv += [device, backend.device.replace("/", ",")]
        argv += split_arguments(options, chosen, ",")
        argv += batch_arguments(options, chosen)
        if chosen.flash_attention and options.choices("-fa"):
            argv += ["-fa", chosen.flash_attention]
        if chosen.threads:
            argv += ["-t", str(chosen.threads)]
        return argv

    def _say(self, argv: Sequence[str], backend: Backend, stop: Stop) -> Said:
        silence = 300.0 + self._size / _LOAD_BYTES_S
        limits = Limits(total_s=2 * silence, silence_s=silence)
        return say(f"output on {backend.name}", argv, backend.env, limits, stop)


def _other_batch(options: Help, chosen: Chosen) -> str:
    """Say that a program could not be given the batch size that is measured."""
    asked = (
        ("-ub", chosen.ubatch, options.has("-ub", "--ubatch-size")),
        ("-b", chosen.batch, options.has("-b", "--batch-size")),
    )
    without = [f"{name} {size}" for name, size, has in asked if size and not has]
    return f" (without {' and '.join(without)}, which it has no option for)" if without else ""


def garbage(text: str) -> str:
    """Say why a generated text cannot be a model's answer; empty where it may be one."""
    if not text.strip():
        return "nothing was generated"
    if match := _REPEATED.search(text):
        return f"one piece of text is repeated all the time ({match[1][:20]!r})"
    if len(text) >= 8 and sum(char in "�?@!#" for char in text) > 0.8 * len(text):
        return "the text is noise"
    return ""


def compare_texts(text: str, reference: str) -> tuple[Verdict, str]:
    """Compare what a back end generated with what the processor did.

    Two back ends round differently, so their texts may part after some words; a right one begins as the reference does.
    """
    if fault := garbage(text):
        return Verdict.WRONG_OUTPUT, f"{fault}, where the CPU generates {reference[:60]!r}"
    words, expected = text.split(), reference.split()
    pairs = zip(words, expected, strict=False)
    same = next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(words), len(expected)))
    if not same:
        return Verdict.WRONG_OUTPUT, f"it begins with {text[:40]!r}, where the CPU generates {reference[:40]!r}"
    if text == reference:
        return Verdict.PASS, "the same text as on the CPU"
    return Verdict.PASS, f"the first {same} of {len(expected)} words are the CPU's"


def compare_perplexities(perplexity: float, reference: float) -> tuple[Verdict, str]:
    """Compare a back end's perplexity with the processor's."""
    if not math.isfinite(perplexity):
        return Verdict.WRONG_OUTPUT, f"the perplexity is {perplexity}, the CPU's is {reference:.4g}"
    difference = perplexity / reference - 1
    said = f"the perplexity is {perplexity:.4g}, the CPU's {reference:.4g} ({difference * 100:+.2f} %)"
    return (Verdict.PASS if abs(difference) <= PERPLEXITY_TOLERANCE else Verdict.WRONG_OUTPUT), said


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _tail(said: Said) -> str:
    return "\n".join((*said.out, *said.err))[-4000:]
