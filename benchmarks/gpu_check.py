"""Check this machine's GPU: are the kernels right, does the engine run on it, and how close to its limits?

    python benchmarks/gpu_check.py --output gpu.json

Needs torch 2.11 (a CUDA build), triton 3.6 and transformers 5.17 or newer, and this repository; nothing else
has to be installed. Takes under five minutes. Exits with 0 if everything is right, 1 if something is wrong, 2
if there is no GPU. --dry-run runs all of it in miniature on the CPU, in Triton's interpreter.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NEEDED = {"torch": (2, 11), "triton": (3, 6), "transformers": (5, 17)}
RIGHT, WRONG, NO_GPU = 0, 1, 2


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("gpu_check.json"), help="where the figures go")
    parser.add_argument("--dry-run", action="store_true", help="in miniature, on the CPU")
    options = parser.parse_args()
    if options.dry_run:
        os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.path.insert(0, str(ROOT))
    missing = too_old()
    if missing:
        print(f"can't check: {missing}", file=sys.stderr)
        return NO_GPU
    import torch

    if not options.dry_run and not torch.cuda.is_available():
        print(
            f"there is no GPU here that torch {torch.__version__} can use: nothing checked", file=sys.stderr
        )
        return NO_GPU
    figures = check(torch.device("cpu" if options.dry_run else "cuda:0"))
    options.output.write_text(json.dumps(figures, indent=2) + "\n")
    print(
        json.dumps({"passed": figures["passed"], "seconds": figures["seconds"], "dry_run": options.dry_run})
    )
    return RIGHT if figures["passed"] else WRONG


def too_old() -> str:
    """What is missing or too old, in words; empty if nothing is."""
    from importlib.metadata import PackageNotFoundError, version

    for name, needed in NEEDED.items():
        try:
            found = tuple(int(part) for part in version(name).split("+")[0].split(".")[:2])
        except PackageNotFoundError:
            return f"{name} is not installed"
        if found < needed:
            return f"{name} is {version(name)}, needed is {'.'.join(map(str, needed))}"
    return ""


def check(device: Any) -> dict[str, Any]:
    """Every figure; `passed` says whether all of them are right. Speeds are reported, not judged."""
    started = time.monotonic()
    from benchmarks.gpu.stand_ins import install_stand_ins

    stood_in = install_stand_ins()
    from benchmarks.gpu import sizes

    size = sizes.of(device)
    floors = size.floors(device)
    kernels = size.check_kernels(device)
    models = size.check_models(device, floors)
    return {
        "machine": describe_machine(device),
        "stood_in_for": stood_in,
        "floors": {"bytes_per_s": floors.bytes_per_s, "bf16_flops_per_s": floors.flops_per_s},
        "kernels": kernels,
        "decode_attention": size.time_attention(device),
        "models": models,
        "passed": all(each["passed"] for each in kernels) and not any("failed" in each for each in models),
        "seconds": time.monotonic() - started,
    }


def describe_machine(device: Any) -> dict[str, str]:
    import torch
    import transformers
    import triton

    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "none (dry run)"
    versions = {
        "torch": torch.__version__,
        "triton": triton.__version__,
        "transformers": transformers.__version__,
    }
    return {"gpu": gpu, "python": platform.python_version(), **versions}


if __name__ == "__main__":
    sys.exit(main())
