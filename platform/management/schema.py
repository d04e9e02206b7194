"""What the OpenAPI document says beyond the views: how to authenticate, and the one shape of errors."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": "string", "nullable": True},
                "code": {"type": "string"},
            },
        }
    },
}
_ALWAYS = {
    "400": "The request can't be understood or a field is wrong; `param` names it.",
    "401": "No usable key and no session.",
    "403": "The caller may not do this.",
    "404": "Not there, or another tenant's.",
    "405": "The path does not take this method.",
    "406": "No answer in the form asked for.",
    "503": "The database can't be asked; try again.",
}
_WITH_BODY = {"415": "The body is not JSON."}


class ManagementKeyScheme(OpenApiAuthenticationExtension):
    target_class = "management.authentication.ManagementKeyAuthentication"
    name = "managementKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key with the management scope.",
        }


def add_error_answers(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Every operation can end in each of these."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    for path in result["paths"].values():
        for operation in path.values():
            answers = _ALWAYS | (_WITH_BODY if "requestBody" in operation else {})
            for status, description in answers.items():
                operation["responses"].setdefault(status, _error_answer(description))
    return result


def _error_answer(description: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": description, "content": content}
