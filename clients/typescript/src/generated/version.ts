// Generated from openapi.json by `make clients-generate`. Do not edit.

/** The version of the API document that the client was made from. */
export const API_VERSION = "0.1.0";
