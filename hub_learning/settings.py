"""Django's settings, from the environment. Importing them writes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hub_learning.environment import read_environment, stored_secret

BASE_DIR = Path(__file__).resolve().parents[1]
HUB = read_environment(os.environ, Path.cwd())

DEBUG = False
SECRET_KEY = HUB.secret_key or stored_secret(HUB.data_directory)
ALLOWED_HOSTS = [urlsplit(HUB.origin).hostname] if HUB.production else ["127.0.0.1", "localhost", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "hub_learning.apps.HubLearningConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "hub_learning.middleware.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "hub_learning.urls"
WSGI_APPLICATION = "hub_learning.wsgi.application"
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
            ],
        },
    }
]

DATABASES: dict[str, Any] = {"default": dict(HUB.database)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "hub_learning.Person"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
LOGIN_URL = "sign-in"
SESSION_COOKIE_NAME = "hub-session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HUB.production
CSRF_TRUSTED_ORIGINS = [HUB.origin] if HUB.production else []
# Messages to the person stand in the session, whose rows are erased like everything else; they carry no comment text.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

SECURE_REFERRER_POLICY = "same-origin"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HUB.production else None
SECURE_HSTS_SECONDS = 31_536_000 if HUB.production else 0
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
"""For forms. The API reads its own body and has its own limit."""

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"hub": {"()": "hub_learning.logs.CodesOnlyFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "hub"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    # SQL carries parameters, and parameters carry comment text.
    "loggers": {"django.db.backends": {"level": "WARNING"}},
}
