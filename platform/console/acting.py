"""Who acts on a page, and what its form changes."""

from typing import Any

from django.http import HttpRequest

from audit.origin import user_actor


def actor_of(request: HttpRequest) -> str:
    return user_actor(request.user.get_username())


def changes_of(form: Any) -> dict[str, Any]:
    return {name: form.cleaned_data[name] for name in form.changed_data}
