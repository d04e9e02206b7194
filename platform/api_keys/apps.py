from django.apps import AppConfig


class ApiKeysConfig(AppConfig):
    name = "api_keys"
    verbose_name = "API keys"
