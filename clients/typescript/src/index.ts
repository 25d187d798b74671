export { Hotline } from "./client.js";
export { List, type Page } from "./list.js";
export { UPLOAD_BYTES_MAX, type Contents, type Upload } from "./files.js";
export { type ListenOptions } from "./events.js";
export { type VerifyOptions, type WebhookHeaders } from "./webhooks.js";
import { verify } from "./webhooks.js";
export {
  ApiConnectionError,
  ApiError,
  ApiTimeoutError,
  EventGap,
  HotlineError,
  SecretLost,
  WebhookVerificationError,
} from "./errors.js";
export * from "./generated/errors.js";
export type * from "./generated/types.js";
export { OPERATIONS } from "./generated/operations.js";
export { API_VERSION } from "./generated/version.js";
export { VERSION } from "./version.js";
export type {
  CallOptions,
  ClientOptions,
  ConditionalOptions,
  ConditionalWriteOptions,
  RateLimit,
  ResponseInfo,
  WriteOptions,
} from "./options.js";

/** Verification of requests to a webhook, for a receiver without a client. */
export const webhooks = { verify };
