# Generated from openapi.json by `make clients-generate`. Do not edit.
