"""llama.cpp by build, back end and options: prompt processing and generation, over the depth of the context."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from rocmend.bench.calibration import Beginning, Calibration
from rocmend.bench.case import Case, Setting
from rocmend.bench.llama import calibrate
from rocmend.bench.llama.backends import Backend
from rocmend.bench.llama.build import Build
from rocmend.bench.llama.check import Checker
from rocmend.bench.llama.gguf import Model
from rocmend.bench.llama.options import Chosen, lacking
from rocmend.bench.llama.rows import test_name
from rocmend.bench.llama.session import LlamaSession, identity_of_model
from rocmend.bench.measure import Effort
from rocmend.bench.session import Session, Stop
from rocmend.bench.suite import Suite
from rocmend.core.errors import UsageError

STANDARD = Effort(block_s=2.0, least_blocks=6, most_blocks=8, sure=0.02, least_runs=1)
QUICK = Effort(block_s=0.5, least_blocks=3, most_blocks=3, least_runs=1)
"""Each block loads the model anew, so there are few of them; three give a wide
interval."""


class Way(msgspec.Struct, frozen=True):
    """How the model is run.

    Attributes:
        build: The build.
        backend: Its back end.
        chosen: Options.
    """

    build: Build
    backend: Backend
    chosen: Chosen

    @property
    def id(self) -> str:
        """The setting's id: ``rocm``, ``nightly/vulkan-radv,fa=on``."""
        name = f"{self.build.name}/{self.backend.name}" if self.build.name else self.backend.name
        label = self.chosen.label()
        return f"{name},{label}" if label else name


class Tests(msgspec.Struct, frozen=True):
    """Which tests are run.

    Attributes:
        prompts: Tokens of a prompt; each is a test of its own.
        generates: Tokens to generate; each is a test of its own.
        depths: Tokens that the context holds before.
    """

    prompts: tuple[int, ...] = (512,)
    generates: tuple[int, ...] = (128,)
    depths: tuple[int, ...] = (0,)

    def cases(self, model: Model) -> list[Case]:
        """Return a case for each test at each depth, prompts before generation."""
        pairs = [(prompt, 0) for prompt in self.prompts] + [(0, generate) for generate in self.generates]
        return [_case(model, prompt, generate, depth) for prompt, generate in pairs for depth in self.depths]


def _case(model: Model, prompt: int, generate: int, depth: int) -> Case:
    name = test_name(prompt, generate, depth)
    parameters = {
        "model": model.name,
        "model_id": identity_of_model(model.header_sha256, model.size_bytes),
        "architecture": model.architecture,
        "quantization": model.quantization,
        "size_bytes": model.size_bytes,
        "parameters": model.parameters,
        "prompt": prompt,
        "generate": generate,
        "depth": depth,
    }
    return Case(f"llama/{model.name}/{name.replace(' ', '')}", "llama", parameters, "tok/s", prompt + generate, name)


class Llama(Suite):
    """llama-bench under given builds, back ends and options.

    Args:
        model: What its header says.
        path: The model file.
        tests: Which tests.
        ways: How it is run; others are compared with the first.
        check: Compare what is generated with the processor's output.
        longest_s: Seconds that one start of llama-bench may take; 0 for a limit that follows from the model.
        sizes: Batch sizes that are tried for the ways that leave theirs to be found.
    """

    name = "llama"

    def __init__(  # noqa: PLR0913  it is made in one place
        self,
        model: Model,
        path: Path,
        tests: Tests,
        ways: Sequence[Way],
        *,
        check: bool = True,
        longest_s: float = 0.0,
        sizes: Sequence[int] = calibrate.SIZES,
    ) -> None:
        self.model, self._path, self._ways = model, path, {way.id: way for way in ways}
        self._cases = tests.cases(model)
        self._checker = Checker(path, model.size_bytes) if check else None
        self._longest_s, self._sizes = longest_s, sizes
        kind = " ".join(part for part in (model.architecture, model.quantization) if part)
        self.title = f"llama.cpp: {model.name}{f' ({kind})' if kind else ''}"

    def cases(self) -> list[Case]:
        """Return the tests."""
        return self._cases

    def settings(self) -> list[Setting]:
        """Return the ways."""
        return [_setting(way) for way in self._ways.values()]

    def begin(self, beginning: Beginning) -> None:
        """Find the batch sizes of the ways that leave them to be found.

        Raises:
            UsageError: No prompt is left to be measured.
        """
        if not any(self._ways[name].chosen.calibrated for name in beginning.settings):
            return
        read = [case.parameters for case in beginning.cases if case.parameters["prompt"]]
        if not read:
            raise UsageError(
                "--calibrate",
                "it finds what reads prompts fastest, and --select leaves none.",
                next_step="Leave --calibrate out, or select a prompt too: --select '*pp512'.",
            )
        depth = min(int(one["depth"]) for one in read)
        prompt = max(calibrate.PROMPT, *self._sizes, *(int(one["prompt"]) for one in read))
        room = self.model.context - depth
        case = _case(self.model, min(prompt, room) if room > 0 else prompt, 0, depth)
        for name in beginning.settings:
            way = self._ways[name]
            if not way.chosen.calibrated:
                continue
            found = beginning.found_before(name, case.id, self._sizes)
            if found is None:
                found = self._calibrated(way, case, beginning)
                if found is None:
                    return
                beginning.keep(found)
            self._ways[name] = _with(way, found.chosen)
            if found.quarantine:
                return

    def _calibrated(self, way: Way, case: Case, beginning: Beginning) -> Calibration | None:
        def opened(options: calibrate.Options, proves: bool) -> Session:
            return self._session(_with(way, options), beginning.stop, proves=proves)

        return calibrate.Calibrator(way.id, case, way.build, self._sizes, opened, beginning).find()

    def applies(self, case: Case, setting: Setting) -> str:
        """Say which option of the case the build does not have."""
        way = self._ways[setting.id]
        return lacking(way.build, way.chosen, int(case.parameters["depth"]))

    def open(self, setting: Setting, stop: Stop) -> Session:
        """Return what starts llama-bench for each block."""
        return self._session(self._ways[setting.id], stop, self._checker)

    def _session(self, way: Way, stop: Stop, checker: Checker | None = None, *, proves: bool = True) -> LlamaSession:
        size, longest_s = self.model.size_bytes, self._longest_s
        return LlamaSession(
            way.build, self._path, size, way.backend, way.chosen, checker, longest_s, stop, proves=proves
        )


def _with(way: Way, options: calibrate.Options) -> Way:
    """Return a way with other batch sizes."""
    return msgspec.structs.replace(way, chosen=msgspec.structs.replace(way.chosen, **options))


def _setting(way: Way) -> Setting:
    options: dict[str, object] = {"backend": way.backend.name, "device": way.backend.device}
    if way.build.name:
        options["build"] = way.build.name
    options |= msgspec.to_builtins(way.chosen)
    return Setting(way.id, dict(way.backend.env), options)
