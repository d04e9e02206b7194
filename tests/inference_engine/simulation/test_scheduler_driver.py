import json
import random
from dataclasses import fields

import pytest

from inference_engine.scheduling import kv_tables, reclaim
from inference_engine.scheduling.block_pool import BlockPool
from inference_engine.scheduling.bulk_restraint import BulkRestraint, Restrained
from inference_engine.scheduling.config import SchedulerConfig
from inference_engine.scheduling.drafting import verified
from inference_engine.scheduling.drafting.drafter import Drafter
from inference_engine.scheduling.kv_tables import Found
from inference_engine.scheduling.policies import POLICIES
from inference_engine.scheduling.prefix_index import PrefixIndex
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import ScheduledChunk
from inference_engine.simulation.scheduler_driver import draw_config, main


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_run_reports_no_broken_invariant_and_that_it_saw_something(capsys, policy):
    assert main(["--steps", "6000", "--seed", "3", "--policy", policy]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["lag=0", "lag=1"]
    told = json.loads(last)
    assert told["violations"] == 0 and told["steps"] >= 6000
    for line in lines:
        figures = dict(part.split("=") for part in line.split())
        assert figures["broken_invariants"] == "0"
        for name in ("preemptions", "aborted", "failed", "refused", "recomputed_tokens", "forks"):
            assert int(figures[f"num_{name}"]) > 0, name
        assert int(figures["cached_prompt_tokens"]) > 0
        assert 0 < int(figures["num_accepted_tokens"]) < int(figures["num_drafted_tokens"])


def test_every_setting_is_drawn_but_those_that_hold_the_world_still():
    draw = random.Random(1)
    configs = [draw_config(draw, lag, policy) for lag in (0, 1) for policy in POLICIES for _ in range(20)]
    still = {
        field.name
        for field in fields(SchedulerConfig)
        if all(getattr(one, field.name) == getattr(configs[0], field.name) for one in configs)
    }
    assert still == {"context_length", "vocab_size", "cache_secret", "max_waiting", "end_ids", "embeds"}


def put_back_at_once(self: BlockPool, blocks: list[int]) -> int:
    for block in blocks:
        self.ref_counts[block] -= 1
        if not self.ref_counts[block]:
            self._put_back(block)
    return sum(not self.ref_counts[block] for block in blocks)


def hash_without_tenant(self: PrefixIndex, request, index: int) -> bytes:
    return bytes(str(request.ids_between(0, (index + 1) * 16)), "ascii")


def hash_without_prefix(self: PrefixIndex, request, index: int) -> bytes:
    return bytes(request.tenant_id + str(request.ids_between(index * 16, index * 16 + 16)), "ascii")


def fork_without_copy(request: Request, leader: Request) -> Found:
    num_tokens = min(leader.num_computed, request.num_known - 1)
    return Found(leader.block_table[: num_tokens // 16], None, num_tokens)


def fork_with_a_shared_tail(request: Request, leader: Request) -> Found:
    num_tokens = min(leader.num_computed, request.num_known - 1)
    return Found(leader.block_table[: num_tokens // 16 + 1], None, num_tokens)


def confirm_wrong_drafts(chunk: ScheduledChunk, num_taken: int) -> int:
    """What was computed behind a wrong draft counts as well, as far as tokens are known."""
    return confirm_drafts(chunk, min(num_taken + 1, chunk.request.num_known - chunk.start))


def draft_without_blocks(self: Drafter, request: Request, count: int) -> int:
    return count


def draft_beyond_places(
    self: Drafter, decodes: list[Request], step: int
) -> tuple[list[Request], list[ScheduledChunk]]:
    running, self._roster.running = self._roster.running, {}
    try:
        return draft(self, decodes, step)
    finally:
        self._roster.running = running


def bulk_that_drafts(
    self: BulkRestraint, decodes: list[Request], prefills: list[Request]
) -> Restrained | None:
    restrained = hold_back(self, decodes, prefills)
    if restrained is None:
        return None
    return restrained._replace(decodes=restrained.decodes + restrained.bulk_decodes, bulk_decodes=[])


confirm_drafts, draft, hold_back = verified._confirm, Drafter.draft, BulkRestraint.hold_back


@pytest.mark.parametrize(
    ("owner", "name", "sabotage", "lag"),
    [
        (BlockPool, "release", put_back_at_once, "1"),
        (PrefixIndex, "hash_of", hash_without_tenant, "0"),
        (PrefixIndex, "hash_of", hash_without_prefix, "0"),
        (PrefixIndex, "forget", lambda self, block: None, "0"),
        (Request, "can_be_preempted_for", lambda self, other: True, "0"),
        (reclaim, "_num_reserved", lambda request, found: 1, "0"),
        (kv_tables, "_fork", fork_without_copy, "0"),
        (kv_tables, "_fork", fork_with_a_shared_tail, "0"),
        (verified, "_confirm", confirm_wrong_drafts, "0"),
        (Drafter, "_room", draft_without_blocks, "0"),
        (Drafter, "draft", draft_beyond_places, "0"),
        (BulkRestraint, "hold_back", lambda self, decodes, prefills: None, "0"),
        (BulkRestraint, "hold_back", bulk_that_drafts, "0"),
    ],
)
def test_a_scheduler_with_a_bug_is_found_out(monkeypatch, capsys, owner, name, sabotage, lag):
    monkeypatch.setattr(owner, name, sabotage)
    assert main(["--steps", "30000", "--lag", lag]) == 1
    captured = capsys.readouterr()
    assert "broken_invariants=1" in captured.err
    assert json.loads(captured.out.splitlines()[-1])["violations"] == 1
