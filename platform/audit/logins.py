"""Every login, failed login and logout of the console is on record."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from audit.origin import ANONYMOUS, user_actor
from audit.services import record


@receiver(user_logged_in, dispatch_uid="audit_logged_in")
def on_login(user: Any, **_: Any) -> None:
    name = user_actor(user.get_username())
    record(name, "session.login", name)


@receiver(user_logged_out, dispatch_uid="audit_logged_out")
def on_logout(user: Any, **_: Any) -> None:
    if user is not None:
        name = user_actor(user.get_username())
        record(name, "session.logout", name)


@receiver(user_login_failed, dispatch_uid="audit_login_failed")
def on_failed_login(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """A name that nobody has is not written down: people type passwords into that field. Nor are the further
    attempts of who is locked out (console/lockout.py): rows would be theirs to make.
    """
    if getattr(request, "is_locked_out", False):
        return
    users = get_user_model()
    name = str(credentials.get(users.USERNAME_FIELD, ""))
    is_known = users._default_manager.filter(**{users.USERNAME_FIELD: name}).exists()
    record(ANONYMOUS, "session.login_failed", user_actor(name) if is_known else "user:(unknown)")
