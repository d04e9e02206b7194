"""Vectors like transformers', and to the bit the same in any batch, by any chunks, preempted or not."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from inference_engine.contract.codes import FinishReason
from inference_engine.contract.events import Accepted
from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.attention.select import choose_backend
from inference_engine.execution.embedding_runner import EmbeddingRunner
from inference_engine.execution.models.embedding_files import EmbeddingFiles, Pooling
from inference_engine.execution.models.families import UnsupportedModel
from inference_engine.execution.models.model_loading import load_model
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from matrix_threads import matrix_threads
from tiny_embedders import make_embedder, save_embedder, write
from tiny_models import VOCABULARY

pytestmark = pytest.mark.usefixtures("compiler")
LENGTHS = (1, 5, 16, 40, 63, 90)
TEXTS = [[(7919 * i * i + 31 * length + i) % VOCABULARY for i in range(length)] for length in LENGTHS]
TOLERANCE = 1e-3
COSINE_IN_BF16 = 0.9999

EMBEDDERS: dict[str, dict[str, Any]] = {
    "Qwen3, last token": {"family": "Qwen3", "mode": "lasttoken", "is_bare": True},
    "Qwen3, last token, with its head": {"family": "Qwen3", "mode": "lasttoken"},
    "Mistral, last token": {"family": "Mistral", "mode": "lasttoken", "is_bare": True},
    "Llama, mean": {"family": "Llama", "mode": "mean_tokens"},
    "Gemma 2, mean, of any length": {"family": "Gemma 2", "mode": "mean_tokens", "is_normalized": False},
    "Qwen2, mean": {"family": "Qwen2", "mode": "mean_tokens", "is_bare": True},
}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    with matrix_threads(1):
        yield


class Embedder:
    """The real scheduler and the real runner, stepped by hand."""

    def __init__(self, runner: EmbeddingRunner, **settings: Any) -> None:
        self.runner = runner
        defaults: dict[str, Any] = {
            "num_blocks": runner.num_blocks,
            "max_running": 8,
            "max_step_tokens": 256,
            "context_length": runner.model.context_length,
            "vocab_size": VOCABULARY,
            "cache_secret": b"embedder",
            "embeds": True,
        }
        self.scheduler = Scheduler(SchedulerConfig(**{**defaults, **settings}))
        self.requests: list[Request] = []
        self.vectors: dict[str, np.ndarray] = {}
        self._in_flight: list[tuple[StepPlan, StepResult]] = []

    def add(self, text: list[int], service_class: ServiceClass = ServiceClass.STANDARD) -> str:
        name = f"text-{len(self.requests)}"
        sampling = SamplingParams(seed=0, max_tokens=1)
        generate = Generate(
            request_id=name,
            prompt_ids=text,
            sampling=sampling,
            tenant_id="alice",
            service_class=service_class,
            embeds=True,
        )
        assert isinstance(self.scheduler.add(generate), Accepted)
        self.requests.append(self.scheduler.requests[name])
        return name

    def step(self) -> bool:
        plan = self.scheduler.plan()
        if plan is not None:
            self._in_flight.append((plan, self.runner.run(plan)))
        while len(self._in_flight) > (self.scheduler.config.lag if plan is not None else 0):
            for update in self.scheduler.apply(*self._in_flight.pop(0)):
                assert (update.finish, update.token_ids) == (FinishReason.STOP, [])
                self.vectors[update.request.request_id] = np.frombuffer(update.vector, "<f4")
        return self.scheduler.has_work()

    def run(self) -> None:
        while self.step():
            pass
        self.scheduler.check_integrity()

    def together(self, texts: Sequence[list[int]] = TEXTS) -> np.ndarray:
        """fp32 [texts, hidden]."""
        names = [self.add(text) for text in texts]
        self.run()
        return np.stack([self.vectors[name] for name in names])


def load(folder: Path, dtype: str = "float32") -> EmbeddingRunner:
    runner = EmbeddingRunner.load(
        folder, backend="cpu", dtype=dtype, num_blocks=64, max_running=8, max_step_tokens=256
    )
    assert runner.warm().varying == []
    return runner


def fresh(runner: EmbeddingRunner, num_blocks: int = 64) -> EmbeddingRunner:
    return EmbeddingRunner(runner.model, runner.backend, runner.limits, num_blocks=num_blocks)


@torch.inference_mode()
def reference(
    folder: Path,
    mode: str,
    *,
    is_normalized: bool = True,
    dtype: torch.dtype = torch.float32,
    texts: Sequence[list[int]] = TEXTS,
) -> np.ndarray:
    """What sentence-transformers computes, one text at a time."""
    model = AutoModel.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    states = [model(torch.tensor([text]), use_cache=False).last_hidden_state[0].float() for text in texts]
    vectors = torch.stack([each[-1] if mode == "lasttoken" else each.mean(0) for each in states])
    return (torch.nn.functional.normalize(vectors) if is_normalized else vectors).numpy()


def cosines(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    return (vectors * others).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(others, axis=1)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_vectors_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    """In bf16 these wild little models are themselves off, and nobody may be more so."""
    fields = {"is_normalized": True, **EMBEDDERS[name]}
    mode, is_normalized = fields["mode"], fields["is_normalized"]
    folder = save_embedder(tmp_path, **fields)
    wanted = reference(folder, mode, is_normalized=is_normalized)
    assert np.abs(Embedder(load(folder)).together() - wanted).max() <= TOLERANCE
    assert np.corrcoef(wanted)[0, 1:].max() < 0.99, "texts that can't be told apart show nothing"
    rounded = Embedder(load(folder, "bfloat16")).together()
    theirs = reference(folder, mode, is_normalized=is_normalized, dtype=torch.bfloat16)
    assert 1 - cosines(rounded, wanted).min() <= 1.5 * (1 - cosines(theirs, wanted).min())


def test_a_real_models_vectors_keep_their_direction_in_bf16(smollm2_dir: Path, tmp_path: Path) -> None:
    """Made to embed, both ways: one load serves."""
    for file in smollm2_dir.iterdir():
        (tmp_path / file.name).symlink_to(file)
    make_embedder(tmp_path, "mean_tokens")
    loaded = EmbeddingRunner.load(tmp_path, backend="cpu", dtype="bfloat16", num_blocks=64)
    texts = [[token_id * VOCABULARY for token_id in text] for text in TEXTS]
    for pooling in Pooling:
        model = replace(loaded.model, embedding=EmbeddingFiles(pooling, is_normalized=True, max_tokens=None))
        runner = EmbeddingRunner(model, loaded.backend, loaded.limits, num_blocks=64)
        found = Embedder(runner, vocab_size=model.vocab_size).together(texts)
        assert cosines(found, reference(tmp_path, pooling, texts=texts)).min() > COSINE_IN_BF16


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["Qwen3, last token", "Llama, mean", "Gemma 2, mean, of any length"])
def test_no_bit_depends_on_anything_else(name: str, dtype: str, tmp_path: Path) -> None:
    loaded = load(save_embedder(tmp_path, **EMBEDDERS[name]), dtype)
    is_mean = EMBEDDERS[name]["mode"] == "mean_tokens"
    cache = {"enable_prefix_cache": not is_mean}
    alone = np.concatenate([Embedder(fresh(loaded), **cache).together([text]) for text in TEXTS])
    for settings in ({}, {"lag": 1}, {"max_step_tokens": 9}, {"max_step_tokens": 9, "lag": 1}):
        found = Embedder(fresh(loaded), **settings, **cache).together()
        assert np.array_equal(found, alone), settings
    for index, lag in ((4, 0), (4, 1), (5, 0), (5, 1)):
        tight = Embedder(fresh(loaded, 7), lag=lag, max_step_tokens=20, **cache)
        assert np.array_equal(preempted(tight, TEXTS[index]), alone[index])


def preempted(engine: Embedder, text: list[int]) -> np.ndarray:
    """The vector of a text that stops half-way for a more urgent one, which needs nearly all blocks."""
    stopped = engine.add(text, ServiceClass.BULK)
    engine.step()
    engine.step()
    engine.add([VOCABULARY - 1, *TEXTS[-1]], ServiceClass.INTERACTIVE)
    engine.run()
    [request, _] = engine.requests
    assert request.num_preemptions == 1 and request.num_recomputed_tokens > 0
    return engine.vectors[stopped]


def test_the_prefix_cache_serves_the_last_token(tmp_path: Path) -> None:
    engine = Embedder(load(save_embedder(tmp_path, "Qwen3", "lasttoken")))
    first, again = engine.together(), engine.together()
    assert np.array_equal(first, again)
    assert [request.cached_tokens for request in engine.requests[len(TEXTS) :]] == [0, 0, 0, 32, 48, 80]


def test_a_text_may_fill_the_context_and_no_more(tmp_path: Path) -> None:
    engine = Embedder(load(save_embedder(tmp_path, "Llama", "mean_tokens")), context_length=90)
    assert engine.together([TEXTS[-1]]).shape == (1, 64)
    with pytest.raises(AssertionError):
        engine.add([*TEXTS[-1], 1])


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"architectures": ["BertModel"]}, "BertModel .* looks ahead"),
        ({"architectures": ["XLMRobertaModel"]}, "XLMRobertaModel .* looks ahead"),
        ({"is_causal": False}, "looks ahead"),
        ({"use_bidirectional_attention": True}, "looks ahead"),
        ({"auto_map": {"AutoModel": "x.Y"}}, "its own code"),
        ({"architectures": ["GPT2Model"]}, "GPT2Model .* proven exact"),
    ],
)
def test_what_is_not_served_is_named_at_the_load(config: dict[str, Any], reason: str, tmp_path: Path) -> None:
    folder = save_embedder(tmp_path, "Qwen3", "lasttoken", is_bare=True)
    given = json.loads((folder / "config.json").read_text())
    write(folder / "config.json", given | config)
    with pytest.raises(UnsupportedModel, match=reason):
        load(folder)


def test_weights_that_are_missing_are_never_made_up(tmp_path: Path) -> None:
    folder = save_embedder(tmp_path, "Qwen3", "lasttoken", is_bare=True)
    tensors = load_file(folder / "model.safetensors")
    save_file({f"encoder.{name}": value for name, value in tensors.items()}, folder / "model.safetensors")
    with pytest.raises(UnsupportedModel, match="its weights lack"):
        load(folder)


def test_layers_alone_generate_no_text(tmp_path: Path) -> None:
    folder = save_embedder(tmp_path, "Qwen3", "lasttoken", is_bare=True)
    (folder / "modules.json").unlink()
    with pytest.raises(UnsupportedModel, match="Qwen3Model"):
        load_model(folder, torch.float32, choose_backend("cpu"))
