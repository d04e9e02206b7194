"""What really gets loaded: import rules read the source, these look at a fresh interpreter's sys.modules."""

from pathlib import Path

import pytest

from source_tree import ROOT, run_python

PLATFORM = ROOT / "platform"
LOADED = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"

# Only the standard library, msgspec and the engine itself can be imported.
ALMOST_NOTHING = """
import sys
allowed = set(sys.stdlib_module_names) | {"inference_engine", "msgspec"}
class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"walled off: {name}")
sys.meta_path.insert(0, Wall())
"""


def scheduling_modules() -> list[str]:
    folder = ROOT / "inference_engine" / "scheduling"
    return [
        f"inference_engine.scheduling.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"
    ]


def test_scheduling_and_contract_work_with_nothing_else_installed() -> None:
    names = scheduling_modules()
    assert len(names) > 3
    output = run_python(
        f"{ALMOST_NOTHING}import importlib\nfor name in {names!r}: importlib.import_module(name)\n{LOADED}",
        ROOT,
    )
    assert "torch" not in output.split()


def test_the_wall_of_the_test_above_stands() -> None:
    with pytest.raises(AssertionError, match="walled off: django"):
        run_python(f"{ALMOST_NOTHING}import django", ROOT)


@pytest.mark.parametrize(
    "module",
    [
        "inference_engine",
        "inference_engine.contract.wire",
        "inference_engine.serving.settings",
        "inference_engine.simulation.fake_runner",
        "inference_engine.execution.models.model_files",
    ],
)
def test_importing_the_engine_loads_no_torch(module: str) -> None:
    loaded = run_python(f"import {module}\n{LOADED}", ROOT).split()
    assert not {"torch", "transformers", "django"} & set(loaded)


def test_the_gateway_loads_no_torch_and_no_transformers(tmp_path: Path) -> None:
    loaded = run_python(f"import control_plane.asgi\n{LOADED}", ROOT, PLATFORM).split()
    assert "django" in loaded
    assert not {"torch", "transformers"} & set(loaded)


def test_what_set_up_and_doctor_load_comes_with_python() -> None:
    program = f"{ALMOST_NOTHING}allowed.add('operations')\nimport operations.set_up, operations.doctor\n"
    assert "operations" in run_python(program + LOADED, PLATFORM).split()
