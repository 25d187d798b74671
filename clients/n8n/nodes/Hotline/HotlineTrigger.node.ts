import type { IDataObject, IHookFunctions, INodeType, INodeTypeDescription, IWebhookFunctions, IWebhookResponseData } from "n8n-workflow";
import { EVENTS } from "./generated/events";
import { isRegistered, register, unregister } from "./registration";
import { isSigned } from "./signature";

/** Starts a workflow for each event of the company, by a webhook that it makes, verifies and removes. */
export class HotlineTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: "Hotline Trigger",
    name: "hotlineTrigger",
    icon: "file:hotline.svg",
    group: ["trigger"],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: "Starts the workflow when something happens in Hotline",
    defaults: { name: "Hotline Trigger" },
    inputs: [],
    outputs: ["main"],
    credentials: [{ name: "hotlineApi", required: true }],
    webhooks: [{ name: "default", httpMethod: "POST", responseMode: "onReceived", path: "webhook" }],
    properties: [
      {
        displayName: "Event Names or IDs",
        name: "events",
        type: "multiOptions",
        options: EVENTS,
        default: [],
        description: "The events that start the workflow; all if none is chosen",
      },
      {
        displayName:
          "An event may come twice after a failure, with the same ID: a Remove Duplicates node by this ID lets each through once.",
        name: "notice",
        type: "notice",
        default: "",
      },
    ],
  };

  webhookMethods = {
    default: {
      async checkExists(this: IHookFunctions): Promise<boolean> {
        return await isRegistered(this);
      },
      async create(this: IHookFunctions): Promise<boolean> {
        await register(this);
        return true;
      },
      async delete(this: IHookFunctions): Promise<boolean> {
        await unregister(this);
        return true;
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const { secret } = this.getWorkflowStaticData("node");
    const { rawBody } = this.getRequestObject();
    const isOurs = typeof secret === "string" && Buffer.isBuffer(rawBody);
    if (!isOurs || !isSigned(secret, this.getHeaderData() as Record<string, unknown>, rawBody)) {
      this.getResponseObject().status(401).json({ error: "the signature is not valid" });
      return { noWebhookResponse: true };
    }
    const event = this.getBodyData();
    if (event.type === "webhook.test") return { webhookResponse: { received: true } };
    return { workflowData: [this.helpers.returnJsonArray([event as IDataObject])] };
  }
}
