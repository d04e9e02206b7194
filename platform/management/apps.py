from django.apps import AppConfig


class ManagementConfig(AppConfig):
    name = "management"
    verbose_name = "Management"

    def ready(self) -> None:
        from management import schema  # noqa: F401  # tells drf-spectacular of our authentication
