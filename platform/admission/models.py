"""What the door itself must not forget."""

from django.db import models


class Maintenance(models.Model):
    """One row while a maintenance is on, none while not."""

    THE_ONE = 1

    message = models.TextField(help_text="What clients are told.")
    began_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.message
