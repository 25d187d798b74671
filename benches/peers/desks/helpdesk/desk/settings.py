# The settings of a Django site with django-helpdesk alone, as its documents ask for them in production; those that differ
# between runs are in the environment. Mail is made and dropped.

import os

SECRET_KEY = os.environ["DESK_SECRET_KEY"]
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "desk.urls"
WSGI_APPLICATION = "desk.wsgi.application"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.sites",
    "django.contrib.humanize",
    "helpdesk",
    "rest_framework",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "helpdesk",
        "USER": "helpdesk",
        "HOST": os.environ["DESK_DATABASE_HOST"],
        # A worker keeps its connection, as Django's documents recommend under load.
        "CONN_MAX_AGE": 600,
    },
}

SITE_ID = 1
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DEFAULT_FROM_EMAIL = "desk@peers.example"
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
LOGIN_URL = "helpdesk:login"
STATIC_URL = "/static/"
MEDIA_ROOT = os.environ["DESK_MEDIA"]
USE_TZ = True
TIME_ZONE = "UTC"
HELPDESK_TEAMS_MODE_ENABLED = False
