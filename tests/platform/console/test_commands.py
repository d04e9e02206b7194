"""The commands that set up an installation: safe to repeat, secrets on stdout and once."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from api_keys.models import ApiKey
from api_keys.secrets_format import parse_authorization
from quotas.models import Limit
from tenants.models import Tenant

pytestmark = pytest.mark.usefixtures("transactional_db")


def run(*arguments: object) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(*(str(each) for each in arguments), stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue().strip()


def test_a_tenant_is_created_once() -> None:
    assert run("create_tenant", "Acme Corp", "--max-output-tokens", "5") == ("acme-corp", "")
    again = run("create_tenant", "Acme Corp", "--max-output-tokens", "9")
    assert again[0] == "acme-corp" and "exists already" in again[1]
    assert Tenant.objects.get().max_output_tokens == 5


def test_a_wrong_limit_is_a_clear_error() -> None:
    with pytest.raises(CommandError, match="greater than or equal to 1"):
        run("create_tenant", "Acme", "--max-output-tokens", "0")


def test_limits_are_set_changed_and_cleared() -> None:
    run("create_tenant", "Acme")
    run("create_key", "acme")
    key = ApiKey.objects.get()
    run("set_limit", "acme", "tokens_per_minute", "1000", "--burst", "100")
    run("set_limit", "acme", "concurrent", "4", "--key", key.public_id)
    run("set_limit", "acme", "concurrent", "8", "--model", "m")
    run("set_limit", "acme", "concurrent", "2", "--key", key.public_id)
    assert [(limit.scope, limit.value, limit.burst) for limit in Limit.objects.order_by("id")] == [
        ("tenant", 1000, 100),
        ("key", 2, None),
        ("model", 8, None),
    ]
    run("set_limit", "acme", "concurrent", "none", "--model", "m")
    assert Limit.objects.count() == 2
    for wrong in (["concurrent", "0"], ["concurrent", "many"], ["concurrent", "5", "--burst", "2"]):
        with pytest.raises(CommandError):
            run("set_limit", "acme", *wrong)


def test_a_key_is_printed_and_works() -> None:
    run("create_tenant", "Acme")
    plaintext, _ = run("create_key", "acme", "--name", "ci", "--expires-in-days", "3")
    presented = parse_authorization(f"Bearer {plaintext}")
    key = ApiKey.objects.get()
    assert presented is not None and presented.public_id == key.public_id
    assert key.name == "ci" and key.expires_at is not None


def test_a_key_for_nobody_is_a_clear_error() -> None:
    with pytest.raises(CommandError, match="no tenant 'nobody'"):
        run("create_key", "nobody")


def test_an_operator_gets_a_password_once() -> None:
    password, _ = run("create_operator", "--username", "alice")
    assert authenticate(username="alice", password=password).is_superuser  # type: ignore[union-attr]
    out, err = run("create_operator", "--username", "alice")
    assert out == "" and "exists already" in err
    assert authenticate(username="alice", password=password)
    new, _ = run("create_operator", "--username", "alice", "--new-password")
    assert authenticate(username="alice", password=new) and not authenticate(
        username="alice", password=password
    )
    assert User.objects.count() == 1
