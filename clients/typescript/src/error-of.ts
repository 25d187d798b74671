// The class of an error response. Apart from `errors.ts`, whose classes the generated ones extend.

import { ApiError, type ErrorParts } from "./errors.js";
import { ERRORS_BY_CODE, ERRORS_BY_STATUS } from "./generated/errors.js";

/** The error of a response, as the class of its code, else of its status. */
export function errorOf(parts: ErrorParts): ApiError {
  const known = ERRORS_BY_CODE[parts.code];
  // 408 has the code of 400: then the status says more.
  const Class = known?.status === parts.status ? known.error : (ERRORS_BY_STATUS[parts.status] ?? ApiError);
  return new Class(parts);
}
