"""How the REST framework presents itself (settings.REST_FRAMEWORK, settings.SPECTACULAR_SETTINGS)."""

from typing import Any

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "management.authentication.ManagementKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["management.permissions.MayDoThis"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["management.strict_json.StrictJsonParser"],
    "DEFAULT_PAGINATION_CLASS": "management.pagination.NewestFirst",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "URL_FORMAT_OVERRIDE": None,  # ?format= is a query parameter like any other: unknown
    "EXCEPTION_HANDLER": "management.errors.answer_error",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Octavo management API",
    "DESCRIPTION": (
        "Tenants, keys, limits, usage and the audit trail. A management key sees its own tenant only; "
        "an operator's session sees every tenant."
    ),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "management.schema.add_error_answers",
    ],
}
