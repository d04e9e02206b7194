"""What every experiment drives: a runner and what a scheduler has to know of its model."""

from dataclasses import dataclass
from typing import Any

from benchmarks.chat_work import ChatRequest
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.serving.runner import Runner


@dataclass(frozen=True, slots=True)
class Engine:
    runner: Runner
    vocab_size: int
    context_length: int

    def scheduler(self, **settings: Any) -> Scheduler:
        """settings: fields of SchedulerConfig that differ from its defaults."""
        own = {
            "num_blocks": self.runner.num_blocks,
            "max_running": 16,
            "context_length": self.context_length,
            "vocab_size": self.vocab_size,
            "cache_secret": b"benchmark",
            "enable_prefix_cache": False,
        }
        return Scheduler(SchedulerConfig(**{**own, **settings}))


def greedy(name: str, request: ChatRequest) -> Generate:
    sampling = SamplingParams(seed=0, temperature=0.0, max_tokens=request.max_tokens, ignore_eos=True)
    return Generate(request_id=name, prompt_ids=request.prompt_ids, sampling=sampling, tenant_id="benchmark")
