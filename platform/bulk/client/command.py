"""octavo-batch: run a file of requests on an Octavo, watch it, fetch what came out.

octavo-batch run REQUESTS.jsonl --output ANSWERS.jsonl
octavo-batch submit | watch | fetch | cancel ...        the same, a step at a time

Where and who: --url and --key, or OCTAVO_URL and OCTAVO_API_KEY. It needs nothing but Python.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from bulk.client.service import Service, ServiceError

DEFAULT_URL = "http://127.0.0.1:8000"
ENDPOINT = "/v1/chat/completions"
POLL_S = 1.0
BAR_WIDTH = 30
ENDED = ("completed", "failed", "expired", "cancelled")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all lines were answered; 1: not all, or something went wrong; 130: interrupted."""
    options = parser().parse_args(arguments)
    try:
        return act(options, sys.stderr)
    except (ServiceError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nThe batch goes on; watch or cancel it by its id.", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="octavo-batch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(made)
    return made


def add_arguments(made: argparse.ArgumentParser) -> None:
    made.add_argument("--url", default=os.environ.get("OCTAVO_URL") or DEFAULT_URL)
    made.add_argument("--key", default=os.environ.get("OCTAVO_API_KEY") or "", help="an API key")
    steps = made.add_subparsers(dest="step", required=True)
    for name in ("run", "submit"):
        step = steps.add_parser(name)
        step.add_argument("requests", type=Path, help="JSON lines: custom_id, method, url, body")
        step.add_argument("--endpoint", default=ENDPOINT)
        step.add_argument("--metadata", action="append", default=[], metavar="NAME=VALUE")
        if name == "run":
            _add_outputs(step)
    for name in ("watch", "fetch", "cancel"):
        step = steps.add_parser(name)
        step.add_argument("batch", help="its id")
        if name == "fetch":
            _add_outputs(step)


def _add_outputs(step: argparse.ArgumentParser) -> None:
    step.add_argument("--output", type=Path, required=True, help="answers go here")
    step.add_argument("--errors", type=Path, help="failed lines; default: OUTPUT with .errors")


def act(options: argparse.Namespace, screen: TextIO) -> int:
    """Raises ServiceError, OSError."""
    service = Service(options.url, options.key)
    if options.step == "cancel":
        print(service.cancel(options.batch)["status"])
        return 0
    if options.step in ("run", "submit"):
        batch = submit(service, options)
        print(batch["id"])
        if options.step == "submit":
            return 0
    else:
        batch = service.batch(options.batch)
    batch = watch(service, batch, screen)
    if options.step in ("run", "fetch"):
        fetch(service, batch, options)
    counts = batch.get("request_counts") or {}
    return 0 if batch["status"] == "completed" and not counts.get("failed") else 1


def submit(service: Service, options: argparse.Namespace) -> dict[str, Any]:
    metadata = dict(pair.partition("=")[::2] for pair in options.metadata)
    return service.create_batch(service.upload(options.requests), options.endpoint, metadata)


def watch(service: Service, batch: dict[str, Any], screen: TextIO) -> dict[str, Any]:
    """Until it has ended; a bar where there is somebody to look at it."""
    began = time.monotonic()
    while batch["status"] not in ENDED:
        _draw(screen, bar(batch, time.monotonic() - began), is_last=False)
        time.sleep(POLL_S)
        batch = service.batch(batch["id"])
    _draw(screen, bar(batch, time.monotonic() - began), is_last=True)
    for error in (batch.get("errors") or {}).get("data", []):
        where = f"line {error['line']}: " if error.get("line") else ""
        print(f"  {where}{error['message']}", file=screen)
    return batch


def bar(batch: dict[str, Any], seconds: float) -> str:
    counts = batch.get("request_counts") or {}
    total, failed = counts.get("total", 0), counts.get("failed", 0)
    done = counts.get("completed", 0) + failed
    filled = BAR_WIDTH * done // total if total else 0
    drawn = "#" * filled + "." * (BAR_WIDTH - filled)
    rate = f"{done / seconds:.1f}/s" if seconds >= POLL_S else ""
    problems = f", {failed} failed" if failed else ""
    return f"[{drawn}] {done}/{total}{problems} {rate} {batch['status']}"


def fetch(service: Service, batch: dict[str, Any], options: argparse.Namespace) -> None:
    """Each file appears whole or not at all."""
    errors = options.errors or options.output.with_name(options.output.name + ".errors")
    for file_id, path in (
        (batch.get("output_file_id"), options.output),
        (batch.get("error_file_id"), errors),
    ):
        if file_id is None:
            continue
        draft = path.with_name(f".{path.name}.part")
        with open(draft, "wb") as into:
            service.download(file_id, into)
        draft.replace(path)


def _draw(screen: TextIO, line: str, *, is_last: bool) -> None:
    if screen.isatty():
        screen.write(f"\r\x1b[K{line}" + ("\n" if is_last else ""))
    elif is_last:
        screen.write(f"{line}\n")
    screen.flush()


if __name__ == "__main__":
    sys.exit(main())
