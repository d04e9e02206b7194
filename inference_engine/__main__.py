"""`python -m inference_engine`: one model replica."""

import asyncio
import os
import sys

import structlog

from inference_engine.serving.addresses import AddressError
from inference_engine.serving.logs import configure_logs
from inference_engine.serving.process import serve
from inference_engine.serving.settings import SettingsError, read_settings
from inference_engine.serving.shutdown import ExitCode, die_with_parent

log = structlog.get_logger("inference_engine")


def main() -> ExitCode:
    parent = os.getppid()
    try:
        settings = read_settings(sys.argv[1:])
        configure_logs(settings.log_level)
    except SettingsError as error:
        print(f"inference_engine: {error}", file=sys.stderr)
        return ExitCode.BAD_SETTINGS
    if settings.die_with_parent:
        die_with_parent(parent)
    try:
        return asyncio.run(serve(settings))
    except AddressError as error:
        log.error("start_failed", error=str(error))
        return ExitCode.BAD_SETTINGS
    except Exception as error:  # the operator gets one line that says why
        log.exception("start_failed", error=str(error))
        return ExitCode.START_FAILED


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(
        code
    )  # a model still loading, or a loop stuck in a kernel, must not be torn down around its thread
