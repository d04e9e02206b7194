"""What is made of settings and model files, and that the torch-free half stays so."""

import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from inference_engine.contract.events import Embedding
from inference_engine.contract.limits import MAX_FRAME_BYTES
from inference_engine.contract.requests import Constraint, ConstraintKind
from inference_engine.execution.environment import prepare_environment
from inference_engine.execution.models.model_files import ModelFiles, load_model_files
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.serving.settings import Settings
from inference_engine.serving.startup import Loaded, StartupError, describe, load_runner, make_scheduler
from stand_ins.engine_process import ROOT
from stand_ins.loop_under_test import CEILING_S, generate
from stand_ins.tiny_model import CONTEXT_LENGTH, END_ID, VOCAB_SIZE, tiny_model_dir
from tiny_embedders import make_embedder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(model_dir=tiny_model_dir(tmp_path / "tiny"), address="unix:/run/e.sock", fake=True)


def test_a_fake_has_room_for_its_running_set_unless_told_otherwise(settings: Settings) -> None:
    files = load_model_files(settings.model_dir)
    stages: list[str] = []
    loaded = load_runner(settings, files, lambda stage, done, total: stages.append(stage))
    assert loaded.runner.num_blocks * 16 >= settings.max_running * CONTEXT_LENGTH
    small = load_runner(replace(settings, num_blocks=5), files, lambda stage, done, total: None)
    assert small.runner.num_blocks == 5
    assert stages == ["loading"]


def test_the_description_tells_the_largest_request_and_what_it_is_called(settings: Settings) -> None:
    files = load_model_files(settings.model_dir)
    renamed = replace(settings, num_blocks=5, model_name="renamed")
    description = describe(renamed, files, load_runner(renamed, files, lambda stage, done, total: None))
    assert (description.model, description.max_request_tokens) == ("renamed", 80)
    assert (description.end_ids, description.backend) == ([END_ID], "fake")
    assert description.tokenizer_json == files.tokenizer_json and len(description.fingerprint) == 64


def test_a_description_that_could_not_be_sent_stops_the_start(settings: Settings) -> None:
    files = replace(load_model_files(settings.model_dir), tokenizer_json=os.urandom(MAX_FRAME_BYTES))
    with pytest.raises(StartupError, match="too large"):
        describe(settings, files, load_runner(settings, files, lambda stage, done, total: None))


def test_the_scheduler_gets_the_model_s_limits_and_a_secret_of_its_own(settings: Settings) -> None:
    files = load_model_files(settings.model_dir)
    first, second = (make_scheduler(settings, files, 10).config for _ in range(2))
    assert (first.context_length, first.end_ids) == (CONTEXT_LENGTH, frozenset([END_ID]))
    assert first.cache_secret != second.cache_secret and len(first.cache_secret) == 32


def test_the_policy_is_the_one_that_was_set(settings: Settings) -> None:
    files = load_model_files(settings.model_dir)
    assert make_scheduler(settings, files, 10).config.policy == "fair"
    assert make_scheduler(replace(settings, policy="fcfs"), files, 10).config.policy == "fcfs"


def test_a_fake_engine_never_imports_torch() -> None:
    program = "import sys, inference_engine.serving.process; print('torch' in sys.modules)"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights behind a real tokenizer. Torch is imported here, once its environment is set."""
    prepare_environment(threads=2)
    from tiny_models import save_tiny_llama

    folder = tiny_model_dir(tmp_path_factory.mktemp("small"))
    names = ("tokenizer.json", "tokenizer_config.json")
    kept = {name: (folder / name).read_bytes() for name in names}
    save_tiny_llama(folder, vocab_size=VOCAB_SIZE, eos_token_id=END_ID, num_hidden_layers=1)
    for name, content in kept.items():
        (folder / name).write_bytes(content)
    return folder


def small_settings(folder: Path, **fields: object) -> Settings:
    limits = {"max_running": 2, "max_step_tokens": 8, "num_blocks": 8, "threads": 1, "backend": "reference"}
    return Settings(model_dir=folder, address="unix:/run/e.sock", **{**limits, **fields})


def load(settings: Settings, **changes: object) -> tuple[Loaded, list[str]]:
    stages: list[str] = []
    files = replace(load_model_files(settings.model_dir), **changes)
    return load_runner(settings, files, lambda stage, done, total: stages.append(stage)), stages


def test_a_model_serves_constraints_once_their_compiler_stands_ready(small_model: Path) -> None:
    loaded, stages = load(small_settings(small_model, grammar_threads=1))
    assert stages[0] == "loading" and stages[-1] == "grammars"
    assert loaded.compiler is not None
    try:
        constraint = Constraint(kind=ConstraintKind.REGEX, source="a|b")
        matcher = loaded.compiler.compile(generate("r", constraint=constraint)).result(CEILING_S)
        assert matcher.vocabulary.size == VOCAB_SIZE
    finally:
        loaded.compiler.close()


def test_constraints_can_be_turned_off(small_model: Path) -> None:
    loaded, stages = load(small_settings(small_model, grammar_threads=0))
    assert loaded.compiler is None and "grammars" not in stages


def test_a_tokenizer_that_can_t_be_read_costs_the_constraints_only(small_model: Path) -> None:
    unreadable = json.dumps({"model": {"type": "Mystery"}}).encode()
    loaded, _ = load(small_settings(small_model), tokenizer_json=unreadable)
    assert loaded.compiler is None and loaded.runner.num_blocks == 8
    without_end, _ = load(small_settings(small_model), end_ids=[])
    assert without_end.compiler is None


def embedder(settings: Settings, hidden_size: int) -> ModelFiles:
    folder = settings.model_dir
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": hidden_size}))
    return load_model_files(make_embedder(folder, "mean_tokens"))


def test_a_fake_for_embeddings_says_so_and_gives_vectors(settings: Settings) -> None:
    files = embedder(settings, 6)
    loaded = load_runner(settings, files, lambda stage, done, total: None)
    assert describe(settings, files, loaded).embedding == Embedding(size=6, is_normalized=True)
    scheduler = make_scheduler(settings, files, loaded.runner.num_blocks)
    assert not scheduler.config.enable_prefix_cache, "a mean needs every row"
    one, again, other = (_fake_vector(scheduler, loaded, name, [5 + (name == "c")]) for name in "abc")
    assert one == again != other
    numbers = struct.unpack("<6f", one)
    assert sum(number * number for number in numbers) == pytest.approx(1)


def _fake_vector(scheduler: Scheduler, loaded: Loaded, name: str, prompt: list[int]) -> bytes:
    scheduler.add(structs.replace(generate(name, prompt=prompt), embeds=True))
    plan = scheduler.plan()
    assert plan is not None
    [update] = scheduler.apply(plan, loaded.runner.run(plan))
    return update.vector


def test_vectors_that_fit_into_no_frame_are_refused_at_the_start(settings: Settings) -> None:
    files = embedder(settings, 100_000)
    loaded = load_runner(settings, files, lambda stage, done, total: None)
    with pytest.raises(StartupError, match="max_running can be 20"):
        describe(settings, files, loaded)


def test_embeddings_are_refused_on_a_gpu(settings: Settings) -> None:
    with pytest.raises(StartupError, match="GPU"):
        load_runner(replace(settings, fake=False, device="cuda"), embedder(settings, 6), lambda *_: None)
