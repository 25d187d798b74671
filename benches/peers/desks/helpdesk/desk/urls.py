# The site is the help desk.

from django.urls import include, path

urlpatterns = [path("", include("helpdesk.urls", namespace="helpdesk"))]
