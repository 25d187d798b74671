# The help desk is at the root of the site.

from django.urls import include, path

urlpatterns = [path("", include("helpdesk.urls", namespace="helpdesk"))]
