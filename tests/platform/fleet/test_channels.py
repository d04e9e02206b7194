"""How engines are dialled."""

import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from fleet.channels import TlsFiles, dial, is_loopback
from fleet.failures import SessionFailed
from fleet.fleet import Fleet
from fleet.session import SessionOptions
from inference_engine.contract.events import Finished
from polling import until
from requirements_of_tests import require
from stand_ins.scripted_engine import ScriptedEngine


@pytest.mark.parametrize("address", ["127.0.0.1:5", "[::1]:5", "localhost:5"])
async def test_loopback_is_dialled_in_the_clear(address: str) -> None:
    assert is_loopback(address)
    await dial(address, None).close()


@pytest.mark.parametrize("address", ["10.0.0.1:5", "engine.example:5", "0.0.0.0:5", "localhost.example:5"])
async def test_other_machines_need_mutual_tls(address: str) -> None:
    with pytest.raises(SessionFailed):
        dial(address, None)


def certificate(folder: Path) -> TlsFiles:
    """One self-signed certificate for both sides."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    require(shutil.which("openssl"), "no openssl to make a certificate with")
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    command = ["openssl", *options.split(), "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return TlsFiles(cert=cert, key=key, authorities=cert)


async def test_an_engine_behind_mutual_tls(redis, socket_folder: Path, generate) -> None:
    tls = certificate(socket_folder)
    engine = ScriptedEngine(socket_folder)
    credentials = grpc.ssl_server_credentials(
        [(tls.key.read_bytes(), tls.cert.read_bytes())],
        root_certificates=tls.authorities.read_bytes(),
        require_client_auth=True,
    )
    port = await engine.start_secure(credentials)
    await engine.publish(redis, address=f"localhost:{port}")
    stranger = Fleet(redis, poll_interval_s=0.02)
    fleet = Fleet(redis, poll_interval_s=0.02, session_options=SessionOptions(tls=tls))
    await stranger.start()
    await fleet.start()
    try:
        await until(fleet.is_ready)
        events = [event async for event in fleet.route("scripted").generate(generate())]
        assert type(events[-1]) is Finished
        assert not stranger.is_ready()
    finally:
        await fleet.stop()
        await stranger.stop()
        await engine.stop()
