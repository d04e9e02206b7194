"""manage.py apply_config: a diff first, all or nothing, and nothing to do the second time."""

from io import StringIO
from pathlib import Path

import pytest
import redis
from django.core.management import CommandError, call_command

from api_keys.models import ApiKey
from api_keys.services import create_key
from audit.models import AuditRecord
from quotas.models import Limit
from quotas.services import set_limit
from tenants.models import Tenant
from tenants.services import create_tenant
from tenants.shards import epoch_key

FILE = """\
version: 1
tenants:
  - slug: acme
    weight: 2
    allowed_models: [m]
    limits:
      - {kind: requests_per_minute, value: 60, burst: 5}
      - {kind: concurrent, value: 4, model: m}
  - slug: new-corp
    name: New Corp
    status: suspended
    limits:
      - {kind: tokens_per_day, value: 1000}
"""
DIFFERENCES = [
    "~ tenant acme: weight 1.0 -> 2.0",
    "~ tenant acme: allowed_models None -> ['m']",
    "~ limit acme requests_per_minute: 30 -> 60 (burst 5)",
    "+ limit acme concurrent of m: 4",
    "- limit acme tokens_per_month: 9",
    "+ tenant new-corp: name 'New Corp', status 'suspended'",
    "+ limit new-corp tokens_per_day: 1000",
]


@pytest.fixture
def acme(any_database: str, store: redis.Redis) -> Tenant:
    tenant = create_tenant("Acme")
    set_limit(tenant, "requests_per_minute", 30)
    set_limit(tenant, "tokens_per_month", 9)
    set_limit(tenant, "concurrent", 2, key=create_key(tenant, "k")[0])
    create_tenant("Not in the file", weight=7.0)
    return tenant


def apply(path: Path, text: str = FILE, *, dry_run: bool = False) -> list[str]:
    file, out = path / "octavo.yaml", StringIO()
    file.write_text(text)
    call_command("apply_config", str(file), dry_run=dry_run, stdout=out)
    return out.getvalue().splitlines()


def state() -> list[object]:
    tenants = list(Tenant.objects.order_by("pk").values())
    return [*tenants, *Limit.objects.order_by("pk").values(), AuditRecord.objects.count()]


def test_a_dry_run_says_everything_and_changes_nothing(
    acme: Tenant, tmp_path: Path, store: redis.Redis
) -> None:
    before, epoch = state(), store.get(epoch_key(acme.pk))
    assert apply(tmp_path, dry_run=True) == [*DIFFERENCES, "7 differences; dry run, nothing was changed"]
    assert (state(), store.get(epoch_key(acme.pk))) == (before, epoch)


def test_it_is_applied_once(acme: Tenant, tmp_path: Path, store: redis.Redis) -> None:
    assert apply(tmp_path) == DIFFERENCES
    acme.refresh_from_db()
    assert (acme.name, acme.weight, acme.allowed_models) == ("Acme", 2.0, ["m"])
    assert store.get(epoch_key(acme.pk)) == str(acme.policy_epoch).encode()
    assert Tenant.objects.get(slug="new-corp").status == "suspended"
    assert Tenant.objects.get(slug="not-in-the-file").weight == 7.0
    limits = Limit.objects.filter(tenant=acme).values_list("scope", "kind", "model", "value", "burst")
    assert set(limits) == {
        ("tenant", "requests_per_minute", "", 60, 5),
        ("model", "concurrent", "m", 4, None),
        ("key", "concurrent", "", 2, None),
    }
    after = state()
    assert apply(tmp_path) == ["no differences"]
    assert state() == after
    assert AuditRecord.objects.filter(actor="command line").count() == 6


def test_keys_have_limits_and_networks_too(acme: Tenant, tmp_path: Path) -> None:
    key = ApiKey.objects.get(tenant=acme)
    text = f"""\
version: 1
tenants:
  - slug: acme
    keys:
      - id: {key.public_id}
        allowed_networks: [10.0.0.0/8]
        limits:
          - {{kind: tokens_per_day, value: 500}}
"""
    assert apply(tmp_path, text) == [
        f"~ key acme {key.public_id}: allowed_networks None -> ['10.0.0.0/8']",
        f"+ limit acme tokens_per_day of key {key.public_id}: 500",
        f"- limit acme concurrent of key {key.public_id}: 2",
    ]
    assert apply(tmp_path, text) == ["no differences"]
    assert Limit.objects.filter(tenant=acme, key=None).count() == 2
    for old, new, said in (
        (key.public_id, "elsewhere", "line 5: tenants[0].keys[0].id: acme has no key elsewhere"),
        ("10.0.0.0/8", "ten", "line 6: tenants[0].keys[0].allowed_networks: "),
        ("value: 500}", "value: 500, model: m}", "line 8: tenants[0].keys[0].limits[0].model: "),
    ):
        with pytest.raises(CommandError) as caught:
            apply(tmp_path, text.replace(old, new))
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: New Corp", "name: Acme", "line 10: tenants[1].name: "),
        ("value: 1000}", "value: 1000, burst: 3}", "line 13: tenants[1].limits[0].burst: "),
        ("status: suspended", "features: [magic]", "line 11: tenants[1].features: "),
        ("status: suspended", "time_zone: Mars/Olympus", "line 11: tenants[1].time_zone: "),
        ("kind: tokens_per_day", "kind: days", "line 13: tenants[1].limits[0].kind: "),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_error_changes_nothing(
    acme: Tenant, tmp_path: Path, old: str, new: str, said: str, dry_run: bool
) -> None:
    before = state()
    with pytest.raises(CommandError) as caught:
        apply(tmp_path, FILE.replace(old, new), dry_run=dry_run)
    assert said in str(caught.value) and "nothing was changed" in str(caught.value)
    assert state() == before


def test_a_file_that_is_not_there(any_database: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("apply_config", str(tmp_path / "nothing.yaml"))
