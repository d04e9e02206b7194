import pytest

from inference_engine.scheduling.block_pool import BlockPool
from inference_engine.scheduling.kv_tables import KVTables
from inference_engine.scheduling.prefix_index import PrefixIndex
from inference_engine.scheduling.request import Request
from inference_engine.simulation.scheduler_driver import main


def test_a_run_reports_no_broken_invariant_and_that_it_saw_something(capsys):
    assert main(["--steps", "1500", "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["lag=0", "lag=1"]
    for line in lines:
        figures = dict(part.split("=") for part in line.split())
        assert figures["broken_invariants"] == "0"
        for name in ("num_preemptions", "num_aborted", "num_failed", "num_refused", "cached_prompt_tokens"):
            assert int(figures[name]) > 0, name


def put_back_at_once(self: BlockPool, blocks: list[int]) -> None:
    for block in reversed(blocks):
        self.ref_counts[block] -= 1
        if not self.ref_counts[block]:
            self._put_back(block)


def hash_without_tenant(self: PrefixIndex, request, index: int) -> bytes:
    return bytes(str(request.ids_between(0, (index + 1) * 16)), "ascii")


def hash_without_prefix(self: PrefixIndex, request, index: int) -> bytes:
    return bytes(request.tenant_id + str(request.ids_between(index * 16, index * 16 + 16)), "ascii")


@pytest.mark.parametrize(
    ("owner", "name", "sabotage", "lag"),
    [
        (BlockPool, "release", put_back_at_once, "1"),
        (PrefixIndex, "hash_of", hash_without_tenant, "0"),
        (PrefixIndex, "hash_of", hash_without_prefix, "0"),
        (PrefixIndex, "forget", lambda self, block: None, "0"),
        (Request, "can_be_preempted", property(lambda self: True), "0"),
        (KVTables, "num_missing", lambda self, request: 1, "0"),
    ],
)
def test_a_scheduler_with_a_bug_is_found_out(monkeypatch, capsys, owner, name, sabotage, lag):
    monkeypatch.setattr(owner, name, sabotage)
    assert main(["--steps", "3000", "--lag", lag]) == 1
    assert "broken_invariants=1" in capsys.readouterr().err
