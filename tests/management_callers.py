"""Callers of the management API, as its tests know them."""

from typing import Any, NamedTuple

from django.test import Client

from api_keys.models import ApiKey
from api_keys.services import create_key
from tenants.models import Tenant


class Answer(NamedTuple):
    status: int
    json: Any
    headers: Any

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found


class Caller(NamedTuple):
    client: Client
    headers: dict[str, str]
    key: ApiKey | None
    tenant: Tenant | None

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        url = path if path.startswith("http") else f"/api/v1/{path}"
        named = {} if body is None else {"data": body, "content_type": "application/json"}
        response = getattr(self.client, method)(url, headers=self.headers, **named)
        is_json = response.headers.get("Content-Type", "") == "application/json"
        return Answer(response.status_code, response.json() if is_json else None, response.headers)

    def get(self, path: str) -> Answer:
        return self.call("get", path)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.call("post", path, {} if body is None else body)

    def patch(self, path: str, body: Any) -> Answer:
        return self.call("patch", path, body)

    def delete(self, path: str) -> Answer:
        return self.call("delete", path)


def holder(tenant: Tenant, name: str, scopes: list[str]) -> Caller:
    key, plaintext = create_key(tenant, name, scopes=scopes)
    return Caller(Client(), {"Authorization": f"Bearer {plaintext}"}, key, tenant)
