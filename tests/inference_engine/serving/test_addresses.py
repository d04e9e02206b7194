"""Who can reach an engine: exposure rules, and mutual TLS on a real socket."""

import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from inference_engine.serving.addresses import AddressError, check_exposure
from polling import until
from requirements_of_tests import require
from stand_ins.engine_server import engine_server
from stand_ins.loop_under_test import generate


@pytest.mark.parametrize(
    "address", ["unix:/run/e.sock", "127.0.0.1:7000", "localhost:0", "[::1]:7000", "127.9.9.9:1"]
)
def test_on_host_addresses_need_no_tls(address: str) -> None:
    check_exposure(address, has_tls=False)


@pytest.mark.parametrize("address", ["0.0.0.0:7000", "[::]:7000", "10.0.0.1:7000", "engine.example:7000"])
def test_others_need_mutual_tls(address: str) -> None:
    with pytest.raises(AddressError, match="needs mutual TLS"):
        check_exposure(address, has_tls=False)
    check_exposure(address, has_tls=True)


@pytest.mark.parametrize(
    "address", ["unix:relative.sock", "unix:/" + "x" * 107, "", ":7000", "host:port", "host"]
)
def test_malformed_addresses_are_refused(address: str) -> None:
    with pytest.raises(AddressError):
        check_exposure(address, has_tls=True)


class Authority:
    """A certificate authority of one test, made by openssl."""

    def __init__(self, folder: Path, name: str) -> None:
        require(shutil.which("openssl"), "no openssl program")
        self._folder, self._name = folder, name
        self.cert = folder / f"{name}.pem"
        self._openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem",
        )  # fmt: skip

    def issue(self, name: str) -> tuple[Path, Path]:
        """(certificate, key) of `name`, valid for localhost."""
        self._openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{name}.key", "-out", f"{name}.csr",
        )  # fmt: skip
        self._openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{self._name}.pem", "-CAkey", f"{self._name}.key",
            "-CAcreateserial", "-days", "2", "-copy_extensions", "copyall", "-out", f"{name}.pem",
        )  # fmt: skip
        return self._folder / f"{name}.pem", self._folder / f"{name}.key"

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)


def client_credentials(authority: Authority, name: str | None) -> grpc.ChannelCredentials:
    root = authority.cert.read_bytes()
    if name is None:
        return grpc.ssl_channel_credentials(root_certificates=root)
    cert, key = authority.issue(name)
    return grpc.ssl_channel_credentials(
        root_certificates=root, private_key=key.read_bytes(), certificate_chain=cert.read_bytes()
    )


async def test_only_a_client_of_our_authority_gets_in(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    cert, key = ours.issue("engine")
    tls = {"address": "localhost:0", "tls_cert": cert, "tls_key": key, "tls_ca": ours.cert}
    async with engine_server(tmp_path, settings=tls) as engine:
        async with engine.gateway(credentials=client_credentials(ours, "gateway")) as gateway:
            await gateway.send(generate("r"))
            await gateway.wait_ended("r")
            assert len(gateway.tokens("r")) == 8
        stranger_cert, stranger_key = theirs.issue("stranger")
        stranger = grpc.ssl_channel_credentials(
            ours.cert.read_bytes(), stranger_key.read_bytes(), stranger_cert.read_bytes()
        )
        for credentials in (client_credentials(ours, None), stranger, None):
            async with engine.gateway(credentials=credentials) as gateway:
                await until(lambda each=gateway: each.has_ended)
                assert gateway.error is not None and gateway.frames == []
