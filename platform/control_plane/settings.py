"""Django's settings. Whatever may differ between two installations is read from the environment here."""

from pathlib import Path

from console.navigation import UNFOLD
from control_plane.env import Environment, database
from control_plane.file_storage import files_storage
from control_plane.log_format import configure_structlog, logging_config
from control_plane.secret_key import secret_key_from_file
from management.rest_settings import REST_FRAMEWORK, SPECTACULAR_SETTINGS

__all__ = ["REST_FRAMEWORK", "SPECTACULAR_SETTINGS", "UNFOLD"]

env = Environment()

BASE_DIR = Path(__file__).resolve().parent.parent.parent
OCTAVO_HOME = Path(env.text("OCTAVO_HOME") or BASE_DIR / "var").absolute()

SECRET_KEY = env.text("OCTAVO_SECRET_KEY") or secret_key_from_file(OCTAVO_HOME / "secret_key")
DEBUG = False

# Where `make up` listens. The console answers on loopback only, whatever this says (control_plane/asgi.py).
OCTAVO_HOST = env.text("OCTAVO_HOST") or "127.0.0.1"
OCTAVO_PORT = env.integer("OCTAVO_PORT", 8000, minimum=1, maximum=65535)
ALLOWED_HOSTS = env.words("OCTAVO_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])

INSTALLED_APPS = [
    "unfold",
    "console",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "audit",
    "tenants",
    "usage",
    "conversations",
    "api_keys",
    "quotas",
    "admission",
    "rest_framework",
    "drf_spectacular",
    "management",
    "bulk",
]

MIDDLEWARE = [
    "audit.origin.OriginMiddleware",
    "bulk.http.entry.BulkMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "console.content_policy.ContentPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "control_plane.urls"
ASGI_APPLICATION = "control_plane.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": database(env.text("OCTAVO_DATABASE_URL", "DATABASE_URL"), OCTAVO_HOME / "db.sqlite3"),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["console.lockout.LockoutBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

STATIC_URL = "/static/"
# Served straight from the packages: nothing has to be collected before the console can start.
WHITENOISE_USE_FINDERS = True

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"

# The audit chain's head, outside the database: only ever added to.
OCTAVO_AUDIT_HEAD_FILE = env.text("OCTAVO_AUDIT_HEAD_FILE") or str(OCTAVO_HOME / "audit_head")

OCTAVO_LOG_LEVEL = (env.text("OCTAVO_LOG_LEVEL") or "INFO").upper()
configure_structlog()
LOGGING = logging_config(OCTAVO_LOG_LEVEL)

# Redis: counters, leases, the ledger's streams, the registry of replicas.
REDIS_URL = env.text("OCTAVO_REDIS_URL", "REDIS_URL") or f"unix://{OCTAVO_HOME / 'run' / 'redis.sock'}"
OCTAVO_REDIS_TIMEOUT_SECONDS = env.number("OCTAVO_REDIS_TIMEOUT_SECONDS", 1.0, minimum=0.05, maximum=30.0)

# Control messages between gateway processes; nothing that a client gets goes this way.
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "octavo:channels"},
    }
}

# Files and batches. The broker may be a Redis of its own.
OCTAVO_BROKER_URL = env.text("OCTAVO_BROKER_URL") or REDIS_URL
OCTAVO_BROKER_VISIBILITY_SECONDS = env.integer("OCTAVO_BROKER_VISIBILITY_SECONDS", 600, minimum=1)
OCTAVO_BULK_CHUNKS = env.integer("OCTAVO_BULK_CHUNKS", 2, minimum=1, maximum=1000)
OCTAVO_BULK_LEASE_SECONDS = env.number("OCTAVO_BULK_LEASE_SECONDS", 15.0, minimum=1.0, maximum=600.0)
OCTAVO_FILE_DAYS = env.integer("OCTAVO_FILE_DAYS", 30, minimum=0)
OCTAVO_FILE_BYTES_PER_TENANT = env.integer(
    "OCTAVO_FILE_BYTES_PER_TENANT", 10 * 10**9, minimum=1, maximum=10**15
)
OCTAVO_BATCHES_PER_TENANT = env.integer("OCTAVO_BATCHES_PER_TENANT", 32, minimum=1)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "files": files_storage(env, OCTAVO_HOME / "files"),
}
FILE_UPLOAD_TEMP_DIR = OCTAVO_HOME / "tmp"
FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)

# Mutual TLS with engines on other machines; the engine reads the same names.
OCTAVO_TLS_CERT = env.text("OCTAVO_TLS_CERT")
OCTAVO_TLS_KEY = env.text("OCTAVO_TLS_KEY")
OCTAVO_TLS_CA = env.text("OCTAVO_TLS_CA")

# Where it is set, /metrics asks for it; where not, /metrics answers on loopback only.
OCTAVO_METRICS_TOKEN = env.text("OCTAVO_METRICS_TOKEN")

# Admission.
OCTAVO_DEFAULT_OUTPUT_TOKENS = env.integer("OCTAVO_DEFAULT_OUTPUT_TOKENS", 1024, minimum=1)
OCTAVO_RATE_BURST_FRACTION = env.number("OCTAVO_RATE_BURST_FRACTION", 0.1, minimum=0.0, maximum=1.0)
OCTAVO_QUEUE_TIMEOUT_SECONDS = env.number("OCTAVO_QUEUE_TIMEOUT_SECONDS", 60.0, minimum=0.1, maximum=3600.0)
OCTAVO_SHED_WAITING = env.integer("OCTAVO_SHED_WAITING", 1024, minimum=1)
OCTAVO_LEDGER_DAYS = env.integer("OCTAVO_LEDGER_DAYS", 400, minimum=40)
OCTAVO_MAX_SOCKETS = env.integer("OCTAVO_MAX_SOCKETS", 10_000, minimum=1)
OCTAVO_SOCKET_ORIGINS = frozenset(
    origin.lower().rstrip("/") for origin in env.words("OCTAVO_SOCKET_ORIGINS", [])
)
OCTAVO_RESPONSE_DAYS = env.number("OCTAVO_RESPONSE_DAYS", 30.0, minimum=0.01, maximum=3650.0)
OCTAVO_LEASE_SECONDS = env.number("OCTAVO_LEASE_SECONDS", 10.0, minimum=1.0, maximum=300.0)
OCTAVO_LEASE_RENEWAL_SECONDS = env.number("OCTAVO_LEASE_RENEWAL_SECONDS", 0.5, minimum=0.05, maximum=60.0)
OCTAVO_UNKNOWN_KEY_SECONDS = env.number("OCTAVO_UNKNOWN_KEY_SECONDS", 5.0, minimum=0.0, maximum=300.0)
