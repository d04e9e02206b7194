"""Flags over variables over defaults, and what contradicts itself."""

from pathlib import Path

import pytest

from inference_engine.contract.requests import ServiceClass
from inference_engine.serving.settings import SettingsError, read_settings

NEEDED = ["--model-dir", "/models/m", "--address", "unix:/run/e.sock"]


def test_defaults_are_the_plan_s() -> None:
    settings = read_settings(NEEDED, {})
    assert settings.model_dir == Path("/models/m")
    assert (settings.max_step_tokens, settings.prefill_budget, settings.effective_lag) == (512, 80, 0)
    assert (settings.fake, settings.fake_step_ms, settings.fake_token_us) == (False, 10.0, 0.0)
    assert settings.prefix_cache and settings.redis_url is None


def test_a_flag_wins_over_its_variable_and_that_over_the_default() -> None:
    environment = {"OCTAVO_MAX_RUNNING": "8", "OCTAVO_PREFIX_CACHE": "off", "OCTAVO_FAKE": "true"}
    assert read_settings(NEEDED, environment).max_running == 8
    settings = read_settings([*NEEDED, "--max-running", "4", "--no-fake"], environment)
    assert (settings.max_running, settings.prefix_cache, settings.fake) == (4, False, False)


def test_variables_shared_with_other_processes() -> None:
    environment = {
        "OCTAVO_MODEL_DIR": "/models/m",
        "OCTAVO_ENGINE_ADDRESS": "unix:/run/e.sock",
        "REDIS_URL": "redis://plain",
        "OCTAVO_ENGINE_THREADS": "2",
    }
    settings = read_settings([], environment)
    assert (settings.redis_url, settings.threads) == ("redis://plain", 2)
    assert read_settings([], {**environment, "OCTAVO_REDIS_URL": "redis://own"}).redis_url == "redis://own"


def test_targets_are_seconds_by_class() -> None:
    environment = {"OCTAVO_GAP_TARGETS_MS": "interactive=50, standard=200"}
    settings = read_settings([*NEEDED, "--ttft-targets-ms", "interactive=1500"], environment)
    assert settings.gap_targets == {ServiceClass.INTERACTIVE: 0.05, ServiceClass.STANDARD: 0.2}
    assert settings.ttft_targets == {ServiceClass.INTERACTIVE: 1.5}
    assert read_settings(NEEDED, {}).gap_targets == {}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SettingsError, match="--model-dir, --address"):
        read_settings([], {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lag", "2"], "lag is 0 or 1"),
        (["--policy", "lottery"], "policy is one of fair, fcfs, priority"),
        (["--max-running", "0"], "max_running must be at least 1"),
        (["--max-running", "many"], "max_running: 'many' is not a valid int"),
        (["--max-running", "512"], "more than max_running"),
        (["--kv-bytes", "1000", "--num-blocks", "10"], "exclude each other"),
        (["--tls-cert", "c.pem"], "needs all of"),
        (["--address", "0.0.0.0:7000"], "needs mutual TLS"),
        (["--address", "nowhere"], "expected unix:/path or host:port"),
        (["--log-level", "loud"], "log_level"),
        (["--gap-targets-ms", "urgent=5"], "gap_targets_ms: 'urgent=5' is not a class and its milliseconds"),
        (["--gap-targets-ms", "bulk"], "gap_targets_ms: 'bulk' is not a class"),
        (["--ttft-targets-ms", "bulk=-1"], "ttft_targets_ms: 'bulk=-1': a target is more than 0"),
        (["--ttft-targets-ms", "bulk=nan"], "more than 0"),
        (["--ttft-targets-ms", "bulk=1,bulk=2"], "bulk has two targets"),
        (["--fake-step-ms", "-1"], "fake_step_ms"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read_settings([*NEEDED, *arguments], {})


def test_a_bad_boolean_variable_is_named() -> None:
    with pytest.raises(SettingsError, match="fake: 'perhaps' is not a valid bool"):
        read_settings(NEEDED, {"OCTAVO_FAKE": "perhaps"})


def test_the_replica_s_name_is_given_or_made_from_host_and_address() -> None:
    assert read_settings([*NEEDED, "--replica-id", "one"], {}).effective_replica_id == "one"
    assert read_settings(NEEDED, {}).effective_replica_id.endswith(":unix:/run/e.sock")
