// The webhook of a trigger at the service: made, kept as the node says, and removed. Its secret is in the static data of the
// workflow, and is never shown.

import { randomUUID } from "node:crypto";
import type { IDataObject, IHookFunctions } from "n8n-workflow";
import { NodeApiError, NodeOperationError } from "n8n-workflow";
import { request } from "./request";

/** Attempts to get a secret, each of whose responses may be lost. */
const ROTATIONS_MAX = 3;

interface Webhook {
  id: number;
  url: string;
  types: string[];
  active: boolean;
  secret?: string | null;
}

function kept(context: IHookFunctions): IDataObject {
  return context.getWorkflowStaticData("node");
}

function wanted(context: IHookFunctions): { url: string; types: string[] } {
  const url = context.getNodeWebhookUrl("default");
  if (url === undefined) throw new NodeOperationError(context.getNode(), "n8n has no URL for this trigger");
  return { url, types: context.getNodeParameter("events", []) as string[] };
}

async function read(context: IHookFunctions, id: unknown): Promise<Webhook | undefined> {
  try {
    return (await request(context, { method: "GET", path: `/api/v1/webhooks/${encodeURIComponent(String(id))}` })).body.data as Webhook;
  } catch (error) {
    if (error instanceof NodeApiError && error.httpCode === "404") return undefined;
    throw error;
  }
}

/** Whether the webhook is there, active, as the node says, and with a secret that is known. */
export async function isRegistered(context: IHookFunctions): Promise<boolean> {
  const { webhookId, secret } = kept(context);
  if (webhookId === undefined || typeof secret !== "string") return false;
  const webhook = await read(context, webhookId);
  const { url, types } = wanted(context);
  const isSame = webhook?.url === url && [...webhook.types].sort().join() === [...types].sort().join();
  return isSame && webhook.active;
}

/** Makes the webhook inactive, keeps its secret, and enables it: the first event can be verified. */
export async function register(context: IHookFunctions): Promise<void> {
  const settings = wanted(context);
  const found = await existing(context, settings.url);
  let webhook: Webhook;
  if (found === undefined) {
    webhook = await write(context, "POST", "/api/v1/webhooks", { ...settings, active: false, description: description(context) });
  } else {
    webhook = { ...(await write(context, "PUT", `/api/v1/webhooks/${found.id}`, settings)), secret: null };
  }
  const secret = webhook.secret ?? (await rotated(context, webhook.id));
  Object.assign(kept(context), { webhookId: webhook.id, secret });
  await write(context, "PUT", `/api/v1/webhooks/${webhook.id}`, { active: true });
}

/** Removes the webhook; one that is gone already is removed. */
export async function unregister(context: IHookFunctions): Promise<void> {
  const data = kept(context);
  if (data.webhookId !== undefined) {
    try {
      await request(context, { method: "DELETE", path: `/api/v1/webhooks/${encodeURIComponent(String(data.webhookId))}` });
    } catch (error) {
      if (!(error instanceof NodeApiError) || error.httpCode !== "404") throw error;
    }
  }
  delete data.webhookId;
  delete data.secret;
}

/** A webhook of an activation that was cut off, or the one that is kept with other settings. */
async function existing(context: IHookFunctions, url: string): Promise<Webhook | undefined> {
  const { webhookId } = kept(context);
  const own = webhookId === undefined ? undefined : await read(context, webhookId);
  if (own !== undefined) return own;
  let cursor = "";
  do {
    const { body } = await request(context, { method: "GET", path: "/api/v1/webhooks", query: { cursor } });
    const found = (body.data as Webhook[]).find((one) => one.url === url);
    if (found !== undefined) return found;
    cursor = body.meta?.nextCursor ?? "";
  } while (cursor !== "");
  return undefined;
}

async function write(context: IHookFunctions, method: string, path: string, body: object): Promise<Webhook> {
  const made = { method, path, body: JSON.stringify(body), key: randomUUID() };
  return (await request(context, made)).body.data as Webhook;
}

/** A new secret. A response that was lost is repeated without it, and rotating once more gives another. */
async function rotated(context: IHookFunctions, id: number): Promise<string> {
  for (let attempt = 0; attempt < ROTATIONS_MAX; attempt++) {
    const made = { method: "POST", path: `/api/v1/webhooks/${id}/rotate-secret`, key: randomUUID() };
    const { secret } = (await request(context, made)).body.data as Webhook;
    if (typeof secret === "string") return secret;
  }
  throw new NodeOperationError(context.getNode(), `The secret of webhook ${id} was lost ${ROTATIONS_MAX} times: activate the workflow again`);
}

function description(context: IHookFunctions): string {
  return `n8n: ${context.getWorkflow().name ?? "workflow"}`.replace(/\s+/g, " ").slice(0, 255);
}
