import os
from pathlib import Path

import pytest
import torch

from inference_engine.execution.memory.kv_memory import (
    PoolBudget,
    allocate_prefaulted,
    allowed_memory,
    pool_blocks,
)

GIB = 2**30


class Machine:
    """A /proc and a /sys/fs/cgroup of our own making, with 8 GiB of memory."""

    def __init__(self, folder: Path, cgroup: str) -> None:
        self.proc, self.cgroup_root = folder / "proc", folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "meminfo").write_text("MemTotal:        8388608 kB\nMemFree:  1 kB\n")
        (self.proc / "self" / "cgroup").write_text(cgroup)

    def limit(self, file: str, text: str) -> None:
        path = self.cgroup_root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def allowed(self) -> int:
        return allowed_memory(self.proc, self.cgroup_root)


def test_cgroup_v2_takes_the_tightest_limit_on_the_way_up(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "0::/system/engine\n")
    machine.limit("system/engine/memory.max", "max\n")
    machine.limit("system/memory.max", f"{3 * GIB}\n")
    assert machine.allowed() == 3 * GIB


def test_cgroup_v2_inside_a_container_reads_the_root(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "0::/../../docker/abc\n")
    machine.limit("memory.max", f"{GIB}\n")
    assert machine.allowed() == GIB


def test_cgroup_v1_reads_the_memory_controller(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "5:cpu,cpuacct:/other\n4:memory:/engine\n")
    machine.limit("memory/engine/memory.limit_in_bytes", f"{2 * GIB}\n")
    machine.limit("memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert machine.allowed() == 2 * GIB


@pytest.mark.parametrize("text", ["max\n", "9223372036854771712\n"])
def test_no_limit_is_physical_memory(tmp_path: Path, text: str) -> None:
    machine = Machine(tmp_path, "0::/engine\n")
    machine.limit("engine/memory.max", text)
    assert machine.allowed() == 8 * GIB


def test_no_cgroups_at_all_is_physical_memory(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "")
    (machine.proc / "self" / "cgroup").unlink()
    assert machine.allowed() == 8 * GIB


def test_this_machine_has_an_answer() -> None:
    assert 2**26 < allowed_memory() <= 2**48


def test_pool_is_a_quarter_of_memory_where_that_is_less() -> None:
    assert pool_blocks(2**20, 1000, 8192, PoolBudget(allowed_bytes=4 * GIB)) == 1024


def test_pool_is_what_the_running_set_can_use_where_that_is_less() -> None:
    assert pool_blocks(2**10, 4, 100, PoolBudget(allowed_bytes=4 * GIB)) == 4 * 7


def test_overrides_win() -> None:
    assert pool_blocks(2**20, 4, 100, PoolBudget(num_blocks=10)) == 10
    assert pool_blocks(2**20, 4, 100, PoolBudget(pool_bytes=100 * 2**20)) == 100


def test_a_pool_without_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="can't hold one block"):
        pool_blocks(2**30, 4, 100, PoolBudget(allowed_bytes=2**30))


def test_allocation_maps_every_page_at_once() -> None:
    size = 64 * 2**20
    before = resident_bytes()
    tensor = allocate_prefaulted((size // 4,), torch.float32)
    assert resident_bytes() - before > 0.9 * size
    assert not tensor.any()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
