"""A management-scoped API key as a way into the management API. No cache: the database knows best."""

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from api_keys.models import ApiKey
from api_keys.networks import is_within, parse_networks
from api_keys.scopes import Scope
from api_keys.secrets_format import parse_authorization
from api_keys.selectors import find_key, known_secret_of
from management.caller import KeyCaller
from tenants.models import TenantStatus


class ManagementKeyAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[KeyCaller, ApiKey] | None:
        header = request.META.get("HTTP_AUTHORIZATION")
        if header is None:
            return None
        key = usable_key(header)
        if Scope.MANAGEMENT.value not in key.scopes:
            raise PermissionDenied("This API key is not for management.")
        if key.tenant.status == TenantStatus.SUSPENDED:
            raise PermissionDenied("This account is suspended.")
        if not is_within(parse_networks(key.allowed_networks), request.META.get("REMOTE_ADDR", "")):
            raise PermissionDenied("This API key may not be used from this address.")
        return KeyCaller(key), key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def usable_key(header: str) -> ApiKey:
    presented = parse_authorization(header)
    key = None if presented is None else find_key(presented.public_id)
    if presented is None or key is None or not key.is_usable:
        raise AuthenticationFailed("Incorrect API key provided.")
    if not known_secret_of(key).is_known(presented.digest, timezone.now()):
        raise AuthenticationFailed("Incorrect API key provided.")
    return key
