# Generated from openapi.json by `make clients-generate`. Do not edit.

API_VERSION = "0.1.0"
"""The version of the API document that the client was made from."""
