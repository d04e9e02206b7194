"""The engine as a process: it starts, or says why not, and serves."""

import asyncio
import signal
from pathlib import Path
from urllib.request import urlopen

from inference_engine.contract.events import Description
from inference_engine.contract.requests import Describe
from polling import until
from stand_ins.engine_process import engine_process, start_engine
from stand_ins.loop_under_test import generate
from stand_ins.tiny_model import END_ID


async def test_a_fake_engine_describes_its_model_and_generates_the_same_twice(
    arguments: list[str], address: str
) -> None:
    async with engine_process(*arguments, address=address) as engine, engine.gateway() as gateway:
        await gateway.send(Describe(), generate("a", max_tokens=10), generate("b", max_tokens=10))
        await gateway.wait_ended("a", "b")
        description = gateway.messages(Description)[0]
        assert (description.model, description.backend, description.end_ids) == ("tiny", "fake", [END_ID])
        assert gateway.tokens("a") == gateway.tokens("b")
        assert description.max_request_tokens == description.context_length == 512
        assert [line["stage"] for line in engine.lines if "stage" in line] == ["loading", "ready"]


async def test_bad_settings_are_named_in_one_line_and_have_an_exit_code(tmp_path: Path, address: str) -> None:
    engine = await start_engine("--model-dir", str(tmp_path), "--lag", "7", address=address)
    assert await engine.wait_exit() == 78
    engine = await start_engine("--fake", "--model-dir", str(tmp_path), address="0.0.0.0:7000")
    assert await engine.wait_exit() == 78


async def test_a_folder_without_a_model_is_a_logged_failure(tmp_path: Path, address: str) -> None:
    engine = await start_engine("--fake", "--model-dir", str(tmp_path / "nothing"), address=address)
    assert await engine.wait_exit() == 1
    assert engine.lines[-1]["event"] == "start_failed"


async def test_a_socket_in_an_open_folder_is_refused(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    engine = await start_engine(*arguments, address=f"unix:{tmp_path}/open/e.sock")
    assert await engine.wait_exit() == 78
    assert "open to others" in engine.lines[-1]["error"]


async def test_a_socket_that_another_engine_serves_is_not_taken_over(
    arguments: list[str], address: str
) -> None:
    async with engine_process(*arguments, address=address) as first:
        second = await start_engine(*arguments, address=address)
        assert await second.wait_exit() == 78
        async with first.gateway() as gateway:
            await gateway.send(generate("r"))
            await gateway.wait_ended("r")


async def test_a_stale_socket_is_no_obstacle(arguments: list[str], address: str) -> None:
    async with engine_process(*arguments, address=address) as first:
        first.send_signal(signal.SIGKILL)
        await first.wait_exit()
        assert socket_exists(address)
    async with engine_process(*arguments, address=address) as second, second.gateway() as gateway:
        await gateway.send(generate("r"))
        await gateway.wait_ended("r")


def socket_exists(address: str) -> bool:
    return Path(address.removeprefix("unix:")).exists()


async def test_metrics_are_served_on_loopback(arguments: list[str], address: str) -> None:
    async with (
        engine_process(*arguments, "--metrics-port", "0", address=address) as engine,
        engine.gateway() as gateway,
    ):
        await gateway.send(generate("r", max_tokens=12))
        await gateway.wait_ended("r")
        port = (await engine.wait_event("metrics"))["port"]
        told = {
            "octavo_engine_output_tokens_total 12.0",
            "octavo_engine_step_seconds_count 12.0",
            "octavo_engine_blocks_referenced 0.0",
        }
        await until(lambda: asyncio.to_thread(lambda: told <= set(metrics_at(port))))


def metrics_at(port: int) -> list[str]:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode()).splitlines()


async def test_settings_come_from_the_environment_too(arguments: list[str], address: str) -> None:
    async with (
        engine_process(*arguments, address=address, OCTAVO_MODEL_NAME="renamed") as engine,
        engine.gateway() as gateway,
    ):
        await gateway.send(Describe())
        await gateway.wait_for(lambda: gateway.messages(Description))
        assert gateway.messages(Description)[0].model == "renamed"
