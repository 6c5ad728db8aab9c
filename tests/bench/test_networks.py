"""The networks are what their names say, and a wrong one gets no figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.bench.networks import CATALOGUE, INFERENCE, TRAINING, items_of, options_of
from rocmend.bench.networks.build import defined, module_of, randomize
from rocmend.bench.suites.nn import PRESETS, SETTINGS, Networks, network_case, network_cases
from rocmend.bench.workloads import nn as workload
from rocmend.bench.workloads.nn import NetworkRun

pytestmark = pytest.mark.cpu
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(name: str, task: str = INFERENCE, dtype: str = "float32", **more: Any) -> NetworkRun:
    case = network_case(name, task, dtype, 4, tiny=True, definition="own")
    return workload.make({**case.parameters, **more}, CPU)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("resnet-18", 11_689_512),  # torchvision's documentation
        ("resnet-50", 25_557_032),
        ("vit-b-16", 86_567_656),
        ("bert-base-128", 109_482_240),  # transformers' BertModel, with its pooler
        ("unet-block", 10_524_480),  # down_blocks.0 of Stable Diffusion 1.5
        ("llm-decode", 596_049_920),  # Qwen3-0.6B, its embedding tied to the head
    ],
)
def test_networks_have_the_parameters_of_those_they_are_named_after(name: str, count: int) -> None:
    with torch.device("meta"):
        network = module_of(name).own(**options_of(name, tiny=False))
    assert sum(one.numel() for one in network.parameters()) == count


def test_bert_and_the_language_model_compute_what_transformers_does() -> None:
    transformers = pytest.importorskip("transformers")
    generator = torch.Generator().manual_seed(1)
    options = options_of("bert-base-128", tiny=True)
    bert, theirs = module_of("bert-base-128").own(**options), module_of("bert-base-128").library(**options)[0]
    small = options_of("llm-prompt", tiny=True)
    config = transformers.Qwen3Config(
        vocab_size=small["vocabulary"], hidden_size=small["hidden"], num_hidden_layers=small["layers"],
        num_attention_heads=small["heads"], num_key_value_heads=small["key_heads"], head_dim=small["head_dim"],
        intermediate_size=small["feedforward"], rope_theta=1e6, tie_word_embeddings=True, rms_norm_eps=1e-6,
    )  # fmt: skip
    llm, qwen = module_of("llm-prompt").own(**small), transformers.Qwen3ForCausalLM(config)
    names = {"self_attn.": "", "mlp.": "", "model.": "", "_proj": "", "embed_tokens": "words", "lm_head": "words",
             "input_layernorm": "attention_norm", "post_attention_layernorm": "norm", "q_norm": "query_norm",
             "k_norm": "key_norm"}  # fmt: skip
    parts = {"q": "query", "k": "key", "v": "value", "o": "out"}
    for ours, model in ((bert, theirs), (llm, qwen)):
        randomize(ours.eval(), generator)
        model.eval()
    with torch.no_grad():
        # both define their parameters in the same order
        for mine, other in zip(bert.parameters(), theirs.parameters(), strict=True):
            other.copy_(mine)
        own = dict(llm.named_parameters())
        for name, other in qwen.named_parameters():
            for text, instead in names.items():
                name = name.replace(text, instead)  # noqa: PLW2901  it becomes our name, step by step
            *path, part, weight = name.split(".")
            other.copy_(own[".".join([*path, parts.get(part, part), weight])])
        (tokens,) = module_of("bert-base-128").inputs(2, generator, **options)
        for one, two in zip(bert(tokens), theirs(tokens), strict=True):
            torch.testing.assert_close(one, two)
        (tokens,) = module_of("llm-prompt").inputs(2, generator, **small)
        torch.testing.assert_close(llm(tokens), qwen(tokens).logits[:, -1:])


def test_decoding_gives_what_the_whole_prompt_gives() -> None:
    options = options_of("llm-decode", tiny=True)
    network = module_of("llm-decode").own(**options).eval()
    randomize(network, torch.Generator().manual_seed(1))
    tokens = torch.arange(12).view(2, 6)
    cache = torch.full((2, options["layers"], 2, options["key_heads"], 6, options["head_dim"]), float("nan"))
    with torch.inference_mode():
        for number in range(6):
            last = network(tokens[:, number : number + 1], cache[:, :, :, :, : number + 1])
        torch.testing.assert_close(last, network(tokens))


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "bert-base-512"])
def test_every_network_passes_and_its_samples_differ(name: str) -> None:
    run = made(name)
    first = run.run()
    assert run.wrong() == ""
    outputs = [first] if isinstance(first, torch.Tensor) else list(first)
    # else one that heeds no input would pass
    assert any(workload.distance([one[:1]], [one[1:2]]) > 0.2 for one in outputs)
    assert run.detail()["error"] < run.detail()["allowed"] / 2
    assert run.detail().get("attention") == (None if name.startswith("resnet") else "flash")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["resnet-18", "llm-prompt"])
def test_a_training_step_passes_in_each_type(name: str, dtype: str) -> None:
    run = made(name, TRAINING, dtype)
    before = [one.detach().clone() for one in run.model.parameters()]
    run.run()
    assert any((one != two).any() for one, two in zip(before, run.model.parameters(), strict=True))
    assert run.wrong() == ""
    assert run.detail()["gradient_norm"] > 0
    run.run()


def _without_the_mask(run: NetworkRun) -> None:
    run.model.forward = lambda tokens: type(run.model).forward(run.model, tokens.flip(1))


def _nan(run: NetworkRun) -> None:
    next(run.model.parameters()).data.fill_(float("nan"))


def _constant(run: NetworkRun) -> None:
    for one in run.model.parameters():
        one.data.zero_()


def _one_weight_lost(run: NetworkRun) -> None:
    run.model.layers[1].down.weight.data.zero_()  # type: ignore[union-attr,index]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_without_the_mask, "relative error"),
        (_nan, "NaN or infinite"),
        (_constant, "outputs are 0"),
        (_one_weight_lost, "relative error"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_wrong_network_is_found(broken: Callable[[NetworkRun], None], said: str, dtype: str) -> None:
    run = made("llm-prompt", dtype=dtype)
    broken(run)
    run.run()
    assert said in run.wrong()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_signs_that_rounding_decides_fail_no_step(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = torch.Generator
    for seed in range(6):
        monkeypatch.setattr(torch, "Generator", lambda seed=seed: _Offset(plain(), 1000 * seed))
        run = made("resnet-18", TRAINING, dtype)
        run.run()
        assert run.wrong() == ""
        assert run.detail()["error"] < run.detail()["allowed"] / 2


class _Offset:
    """Makes a generator whose seeds are others."""

    def __init__(self, generator: Any, offset: int) -> None:
        self._generator, self._offset = generator, offset

    def manual_seed(self, seed: int) -> Any:
        return self._generator.manual_seed(seed + self._offset)


def test_a_gradient_that_is_off_by_a_thousandth_is_found() -> None:
    run = made("resnet-18", TRAINING)
    run.run()
    run.model.get_parameter("stem.0.weight").register_hook(lambda gradient: gradient * 1.001)
    assert "gradients: relative error" in run.wrong()


def test_a_wrong_gradient_is_found() -> None:
    run = made("llm-prompt", TRAINING, "float16")
    run.run()
    hook = run.model.layers[0].query.weight.register_hook(lambda gradient: -gradient)  # type: ignore[union-attr,index]
    assert "gradients: relative error" in run.wrong()
    hook.remove()


@pytest.mark.parametrize("task", [INFERENCE, TRAINING])
def test_a_batch_that_is_too_large_is_told_with_one_that_fits(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made("bert-base-128", task)
    forward = run.model.forward

    def limited(tokens: Any) -> Any:
        if len(tokens) > 1:
            raise torch.OutOfMemoryError("HIP out of memory. Tried to allocate 3 GiB")
        return forward(tokens)

    monkeypatch.setattr(run.model, "forward", limited)
    with pytest.raises(torch.OutOfMemoryError, match="out of memory with batch 4; batch 1 fits") as error:
        run.run()
    from rocmend.runner.torch_device import outcome_of

    assert outcome_of(error.value)["outcome"] == "oom"


def test_a_package_that_does_not_load_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def library(**_: Any) -> Any:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(module_of("resnet-18"), "library", library)
    assert defined("resnet-18", tiny=True)[1] == "rocmend"


def test_presets_name_what_there_is_and_units_count_tokens() -> None:
    cases = network_cases(PRESETS["full"].networks, PRESETS["full"].tasks, ("float16",), 32, own_batch=True)
    by_id = {case.id: case for case in cases}
    assert (by_id["nn/llm-prompt/inference/float16/b1"].work, items_of("llm-prompt")) == (512.0, 512)
    assert by_id["nn/resnet-50/training/float16/b32"].work == 32.0
    assert not any("llm-decode/training" in name for name in by_id)
    suite = Networks.__new__(Networks)
    assert suite.applies(by_id["nn/llm-prompt/inference/float16/b1"], SETTINGS["channels-last"])
    assert not suite.applies(by_id["nn/resnet-50/training/float16/b32"], SETTINGS["channels-last"])
    for preset in PRESETS.values():
        assert set(preset.networks) <= set(CATALOGUE)
        assert set(preset.settings) <= set(SETTINGS)
