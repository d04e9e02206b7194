"""The real model behind the real stream."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from inference_engine.contract.codes import FinishReason
from inference_engine.contract.events import Description, Finished
from inference_engine.contract.requests import Describe
from stand_ins.engine_process import EngineProcess, engine_process
from stand_ins.loop_under_test import generate
from stand_ins.raw_gateway import RawGateway

CEILING_S = 240.0
PROMPT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
async def engine(smollm2_dir: Path, tmp_path: Path) -> AsyncIterator[EngineProcess]:
    limits = ["--num-blocks", "400", "--max-running", "8", "--max-step-tokens", "64"]
    arguments = ["--model-dir", str(smollm2_dir), *limits]
    async with engine_process(*arguments, address=f"unix:{tmp_path}/e.sock", ceiling_s=CEILING_S) as engine:
        yield engine


async def test_it_answers_and_the_same_beside_others_whose_prompts_are_chunked(engine: EngineProcess) -> None:
    async with engine.gateway() as gateway:
        await gateway.send(Describe())
        await gateway.wait_for(lambda: gateway.messages(Description), ceiling_s=CEILING_S)
        description = gateway.messages(Description)[0]
        tokenizer = Tokenizer.from_str(description.tokenizer_json.decode())
        prompt = tokenizer.encode(PROMPT, add_special_tokens=False).ids
        await gateway.send(generate("solo", prompt, max_tokens=24, temperature=0.0))
        await gateway.wait_ended("solo", ceiling_s=CEILING_S)
        await gateway.send(
            generate("beside", prompt, max_tokens=24, temperature=0.0, tenant_id="bob"),
            *(generate(f"n{i}", prompt * (i + 2), seed=i, max_tokens=12) for i in range(4)),
        )
        await gateway.wait_ended("beside", *(f"n{i}" for i in range(4)), ceiling_s=CEILING_S)
        assert "Paris" in tokenizer.decode(gateway.tokens("solo"))
        if description.batch_invariant:
            assert gateway.tokens("beside") == gateway.tokens("solo")
        check_endings(gateway, len(prompt))


def check_endings(gateway: RawGateway, num_prompt: int) -> None:
    solo, longest = gateway.ending("solo"), gateway.ending("n3")
    assert isinstance(solo, Finished) and isinstance(longest, Finished)
    assert solo.reason in (FinishReason.STOP, FinishReason.LENGTH)
    assert solo.usage.prompt_tokens == num_prompt
    assert solo.usage.output_tokens == len(gateway.tokens("solo"))
    assert longest.timeline.num_chunks > longest.usage.output_tokens
