# Makes the queue and two members of the staff: an agent, and the account of a program that brings customers' messages in.
# Prints the queue, and the session that each is signed in with, as JSON.

import json

import django

django.setup()

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sites.models import Site

from helpdesk.models import Queue


def signed_in(name):
    user = get_user_model().objects.create_user(name, f"{name}@peers.example", is_staff=True)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return session.session_key


Site.objects.update_or_create(pk=1, defaults={"domain": "peers.example", "name": "Desk"})
queue = Queue.objects.create(title="Support", slug="support", email_address="support@peers.example", allow_public_submission=True)
print(json.dumps({"queue": queue.pk, "agent": signed_in("agent"), "relay": signed_in("relay")}))
