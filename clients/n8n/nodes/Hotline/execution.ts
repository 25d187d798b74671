// One operation for one item: its request from the form, and its records.

import { createHash } from "node:crypto";
import type { IDataObject, IExecuteFunctions } from "n8n-workflow";
import { type File, toForm } from "./form";
import type { Kind, Operation } from "./operation";
import { type ApiRequest, request } from "./request";
import { toList, toQuery, toValue, type ToTime } from "./values";

/** Records of a page; the most that a service allows by default. */
const PER_PAGE_MAX = 100;

/** The records that the operation gives for this item. */
export async function run(context: IExecuteFunctions, operation: Operation, item: number): Promise<IDataObject[]> {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, context.getNodeParameter(name, item)));
  if (operation.result === "page") return await listed(context, operation, path, item);
  const { body } = await request(context, await requestOf(context, operation, path, item), item);
  if (operation.result === "none") return [{ deleted: true }];
  const { data } = body;
  return (Array.isArray(data) ? data : [data ?? {}]) as IDataObject[];
}

/** An id in a path; an empty one would be another operation. */
function segment(name: string, value: unknown): string {
  const text = String(value ?? "").trim();
  if (text === "" || text === "0") throw new TypeError(`${name} must not be empty`);
  return encodeURIComponent(text);
}

async function listed(context: IExecuteFunctions, operation: Operation, path: string, item: number): Promise<IDataObject[]> {
  const isAll = context.getNodeParameter("returnAll", item, false) as boolean;
  const limit = isAll ? Infinity : (context.getNodeParameter("limit", item, 50) as number);
  const filters = valuesOf(context, "filters", operation.query, item);
  const query: Record<string, string> = { cursor: "", perPage: String(Math.min(limit, PER_PAGE_MAX)) };
  for (const [name, value] of Object.entries(filters)) {
    const text = toQuery(value);
    if (text !== undefined) query[name] = text;
  }
  const records: IDataObject[] = [];
  for (;;) {
    const { body } = await request(context, { method: "GET", path, query }, item);
    records.push(...((body.data ?? []) as IDataObject[]));
    const next = body.meta?.nextCursor;
    if (!next || records.length >= limit) return records.slice(0, limit);
    query.cursor = next;
  }
}

/** The fields of a collection that are given. */
function valuesOf(context: IExecuteFunctions, collection: string, kinds: Readonly<Record<string, Kind>>, item: number): IDataObject {
  const given = context.getNodeParameter(collection, item, {}) as IDataObject;
  const values: IDataObject = {};
  for (const [name, value] of Object.entries(given)) {
    const kind = kinds[name];
    if (kind !== undefined) values[name] = toValue(name, value, kind, timeOf(context, item)) as IDataObject;
  }
  return values;
}

/** A time without a zone is one of the workflow's. */
function timeOf(context: IExecuteFunctions, item: number): ToTime {
  return (value) => {
    const time = context.getWorkflowDataProxy(item).DateTime.fromISO(value, { zone: context.getTimezone() });
    if (!time.isValid) throw new TypeError(`${value} is not a time`);
    return time.toUTC().toISO() as string;
  };
}

async function requestOf(context: IExecuteFunctions, operation: Operation, path: string, item: number): Promise<ApiRequest> {
  const made: ApiRequest = { method: operation.method, path };
  const fields = bodyOf(context, operation, item);
  const files = fields.type === "media" && operation.id === "sendMessage" ? await filesOf(context, item) : [];
  if (operation.isKeyed) made.key = keyOf(context, operation, path, JSON.stringify(fields), item);
  if (files.length > 0) {
    const boundary = createHash("sha256").update(made.key ?? "").digest("hex").slice(0, 48);
    return { ...made, body: toForm(fields, files, boundary), contentType: `multipart/form-data; boundary=${boundary}` };
  }
  if (Object.keys(operation.body).length > 0) made.body = JSON.stringify(fields);
  return made;
}

function bodyOf(context: IExecuteFunctions, operation: Operation, item: number): IDataObject {
  const fields = valuesOf(context, "fields", operation.body, item);
  for (const name of [...operation.required, ...operation.prominent]) {
    const value = context.getNodeParameter(name, item, "");
    if (operation.prominent.includes(name) && (value === "" || value === null)) continue;
    fields[name] = toValue(name, value, operation.body[name] ?? "string", timeOf(context, item)) as IDataObject;
  }
  return fields;
}

async function filesOf(context: IExecuteFunctions, item: number): Promise<File[]> {
  const files: File[] = [];
  for (const name of toList(context.getNodeParameter("binaryFields", item, "data")) as string[]) {
    const { fileName, mimeType } = context.helpers.assertBinaryData(item, name);
    files.push({ content: await context.helpers.getBinaryDataBuffer(item, name), fileName: fileName ?? name, mimeType });
  }
  return files;
}

/** The same for another attempt of the node in the same execution, another for every other call. */
function keyOf(context: IExecuteFunctions, operation: Operation, path: string, body: string, item: number): string {
  const { idempotencyKey } = context.getNodeParameter("options", item, {}) as { idempotencyKey?: string };
  if (idempotencyKey) return idempotencyKey;
  const run = context.getWorkflowDataProxy(item).$runIndex as number;
  const call = [context.getInstanceId(), context.getExecutionId(), context.getNode().id, run, item, operation.id, path, body];
  return `n8n-${createHash("sha256").update(JSON.stringify(call)).digest("hex")}`;
}
