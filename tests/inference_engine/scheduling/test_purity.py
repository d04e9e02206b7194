"""The room is pure: it works where torch, Django and the rest of the engine are absent."""

import subprocess
import sys

from source_tree import ROOT

SCRIPT = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names | {"inference_engine", "msgspec"}:
            raise ImportError("blocked: " + name)
        return None

sys.meta_path.insert(0, Wall())
for absent in ("torch", "django"):
    try:
        __import__(absent)
    except ImportError:
        continue
    raise SystemExit(absent + " is not absent")

import importlib, pkgutil
import inference_engine.scheduling as room
for module in pkgutil.iter_modules(room.__path__):
    importlib.import_module(room.__name__ + "." + module.name)

from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
config = SchedulerConfig(num_blocks=4, max_running=1, context_length=50, vocab_size=9, cache_secret=b"s")
assert Scheduler(config).plan() is None
ours = {name for name in sys.modules if name.startswith("inference_engine.")}
rooms = {name.split(".")[1] for name in ours}
assert rooms == {"contract", "scheduling"}, rooms
impure = {"socket", "asyncio", "random", "threading", "subprocess"} & {
    name for module in ours for name in vars(sys.modules[module])
}
assert not impure, impure
print("pure")
"""


def test_the_room_needs_only_msgspec_and_the_contract():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "pure"), done.stderr
