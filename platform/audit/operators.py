"""Every change of an operator is on record, whichever page or command makes it."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.dispatch import receiver

from audit.origin import current_actor, user_actor
from audit.services import record

WATCHED = (
    "username",
    "email",
    "first_name",
    "last_name",
    "is_active",
    "is_staff",
    "is_superuser",
    "password",
)
"""A password's hash is hidden in records; that it changed is not. The time of the last login is no change."""
_RELATIONS = {User.groups.through: "groups", User.user_permissions.through: "user_permissions"}


@receiver(pre_save, sender=User, dispatch_uid="audit_operator_before")
def remember(instance: User, **_: Any) -> None:
    found = User.objects.filter(pk=instance.pk).values(*WATCHED).first() if instance.pk else None
    instance.audit_before = found  # type: ignore[attr-defined]


@receiver(post_save, sender=User, dispatch_uid="audit_operator_saved")
def on_saved(instance: User, **_: Any) -> None:
    before: dict[str, Any] | None = instance.__dict__.pop("audit_before", None)
    now = {name: getattr(instance, name) for name in WATCHED}
    if before is None:
        record(current_actor(), "operator.create", _subject(instance), now)
        return
    changed = [name for name in WATCHED if now[name] != before[name]]
    if changed:
        after = {name: now[name] for name in changed}
        earlier = {name: before[name] for name in changed}
        record(current_actor(), "operator.update", _subject(instance), after, before=earlier)


@receiver(post_delete, sender=User, dispatch_uid="audit_operator_deleted")
def on_deleted(instance: User, **_: Any) -> None:
    before = {name: getattr(instance, name) for name in WATCHED}
    record(current_actor(), "operator.delete", _subject(instance), before=before)


@receiver(m2m_changed, sender=User.groups.through, dispatch_uid="audit_operator_groups")
@receiver(m2m_changed, sender=User.user_permissions.through, dispatch_uid="audit_operator_permissions")
def on_powers(
    sender: type[Model], instance: Any, action: str, model: type[Model], pk_set: set[int] | None, **_: Any
) -> None:
    """Permissions or groups given and taken, from either side of the relation."""
    if action not in {"post_add", "post_remove", "pre_clear"}:
        return
    what = _RELATIONS[sender]
    if isinstance(instance, User):
        others = [str(each) for each in model._default_manager.filter(pk__in=pk_set or ())]
        _record_powers(action, _subject(instance), what, others or ["all"])
    else:
        for user in User.objects.filter(pk__in=pk_set or ()):
            _record_powers(action, _subject(user), what, [str(instance)])


def _record_powers(action: str, subject: str, what: str, names: list[str]) -> None:
    given = action == "post_add"
    record(
        current_actor(), "operator.grant" if given else "operator.withdraw", subject, {what: sorted(names)}
    )


def _subject(user: User) -> str:
    return user_actor(user.get_username())
