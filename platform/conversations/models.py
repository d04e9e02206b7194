"""Responses that clients asked to be kept, and how one continues another."""

from django.db import models

from tenants.models import Tenant


class StoredResponse(models.Model):
    """Written once, when the response has ended. It belongs to its tenant and goes with it.

    The JSON is text: a database's own JSON refuses zero characters, which clients may send.
    """

    id = models.CharField(max_length=64, primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    model = models.CharField(max_length=200)
    body = models.TextField(help_text="The response object, as JSON.")
    input_items = models.TextField(help_text="What it answered, a JSON list; not what came before.")
    ancestors: "models.JSONField[list[str], list[str]]" = models.JSONField(
        default=list, help_text="Ids of the responses before it in its conversation, the first one first."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(help_text="A response that is continued lives as long as what follows.")

    class Meta:
        default_permissions = ()  # what customers said is not for the console
        indexes = (models.Index(fields=["expires_at"], name="response_expiry"),)

    def __str__(self) -> str:
        return self.id
