"""The runner for devices, on the CPU: what it launches, leaves there and takes from there again."""

from pathlib import Path
from typing import Any

import pytest
import torch

from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.device.device_runner import DeviceRunner, HostSampledStep, LaunchedStep
from inference_engine.execution.model_runner import ModelRunner, RunnerLimits
from inference_engine.execution.models.model_loading import LoadedModel, load_model
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from inference_engine.serving.pipeline import LaunchingPipeline, OverlappedPipeline, make_pipeline
from launched_steps import Order, generate
from tiny_families import save_tiny
from tiny_models import save_tiny_llama

LIMITS = RunnerLimits(max_running=6, max_step_tokens=40)
GREEDY: list[Order] = [([3 + 7 * n, *range(5 * n, 9 * n + 4)], {"max_tokens": 12}) for n in range(5)]
MIXED: list[Order] = [
    *GREEDY[:3],
    (range(20), {"max_tokens": 9, "temperature": 1.0, "top_p": 0.9}),
    (range(7), {"max_tokens": 4, "frequency_penalty": 1.5}),
    ([5, 6, 7, 8] * 5, {"max_tokens": 8, "num_draft_tokens": 4}),
    (range(3), {"max_tokens": 5, "logprobs": 2, "min_tokens": 3}),
]


class Counting(DeviceRunner):
    """Remembers what kinds of step it launched."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.launched: list[type] = []
        self.num_waiting = self.most_waiting = 0

    def launch(self, plan: StepPlan) -> LaunchedStep | HostSampledStep:
        step = super().launch(plan)
        self.launched.append(type(step))
        return step


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_model(save_tiny_llama(tmp_path_factory.mktemp("llama")), torch.float32, ReferenceBackend())


@pytest.fixture
def expected(model: LoadedModel) -> dict[str, list[list[int]]]:
    def outputs(orders: list[Order]) -> list[list[int]]:
        return generate(ModelRunner(model, ReferenceBackend(), LIMITS, num_blocks=40), orders, lag=0)

    return {"greedy": outputs(GREEDY), "mixed": outputs(MIXED)}


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("kind", ["greedy", "mixed"])
def test_launched_steps_give_the_tokens_of_steps_run_one_by_one(
    kind: str, lag: int, is_recorded: bool, model: LoadedModel, expected: dict[str, list[list[int]]]
) -> None:
    runner = Counting(model, ReferenceBackend(), LIMITS, num_blocks=40)
    if is_recorded:
        with torch.inference_mode():
            runner.record_decodes()
    assert generate(runner, GREEDY if kind == "greedy" else MIXED, lag=lag) == expected[kind]
    assert (set(runner.launched) == {LaunchedStep}) == (kind == "greedy")
    assert LaunchedStep in runner.launched


def test_preemption_and_copies_work_on_a_device_too(
    model: LoadedModel, expected: dict[str, list[list[int]]]
) -> None:
    runner = DeviceRunner(model, ReferenceBackend(), LIMITS, num_blocks=9)
    assert generate(runner, GREEDY, lag=1) == expected["greedy"]


def test_a_step_may_be_launched_before_the_one_before_is_fetched(model: LoadedModel) -> None:
    """Its token is never known on the host in between: the pending one is read on the device."""
    runner = DeviceRunner(model, ReferenceBackend(), LIMITS, num_blocks=40)
    fetched: list[StepResult] = []
    original = LaunchedStep.result

    def noted(step: LaunchedStep) -> StepResult:
        fetched.append(original(step))
        return fetched[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaunchedStep, "result", noted)
        outputs = generate(runner, GREEDY[:1], lag=1)
    assert len(outputs[0]) == len(fetched) == 12


def test_logits_that_are_not_finite_fail_their_request(model: LoadedModel) -> None:
    class Broken(DeviceRunner):
        def _device_logits(self, *args: Any) -> torch.Tensor:
            return super()._device_logits(*args) * torch.nan

    runner = Broken(model, ReferenceBackend(), LIMITS, num_blocks=40)
    assert generate(runner, GREEDY[:2], lag=1) == [[], []]


def test_a_runner_that_launches_is_driven_without_a_thread(model: LoadedModel) -> None:
    launching = DeviceRunner(model, ReferenceBackend(), LIMITS, num_blocks=4)
    plain = ModelRunner(model, ReferenceBackend(), LIMITS, num_blocks=4)
    assert isinstance(make_pipeline(launching, 1), LaunchingPipeline)
    assert isinstance(make_pipeline(plain, 1), OverlappedPipeline)


def test_a_failed_launch_fails_its_own_step_only(model: LoadedModel) -> None:
    class FailsOnce(DeviceRunner):
        num_launches = 0

        def launch(self, plan: StepPlan) -> LaunchedStep | HostSampledStep:
            self.num_launches += 1
            if self.num_launches == 2:
                raise RuntimeError("no such luck")
            return super().launch(plan)

    runner = FailsOnce(model, ReferenceBackend(), LIMITS, num_blocks=40)
    pipeline = make_pipeline(runner, 1)
    plans = [StepPlan(number, []) for number in range(3)]
    done = [pipeline.advance(plan) for plan in plans] + [pipeline.advance(None)]
    assert done[0] is None
    assert [step.error is not None for step in done[1:] if step] == [False, True, False]


def test_experts_keep_a_model_from_being_recorded(tmp_path: Path) -> None:
    from inference_engine.execution.device.decode_graphs import can_be_recorded

    backend = ReferenceBackend()
    mixture = load_model(save_tiny("Mixtral", tmp_path / "m"), torch.float32, backend)
    dense = load_model(save_tiny("Gemma 2", tmp_path / "g"), torch.float32, backend)
    assert not can_be_recorded(mixture.module) and can_be_recorded(dense.module)
