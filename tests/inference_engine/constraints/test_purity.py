"""The room loads neither torch nor transformers nor Django: gateways' machines and tests need none."""

import subprocess
import sys

from source_tree import ROOT


def test_the_room_loads_no_torch() -> None:
    program = (
        "import sys; import inference_engine.constraints.compiling, inference_engine.constraints.masks;"
        "print(sorted({'torch', 'transformers', 'django', 'grpc'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
