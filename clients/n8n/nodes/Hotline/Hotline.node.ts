import type { IExecuteFunctions, INodeExecutionData, INodeType, INodeTypeDescription } from "n8n-workflow";
import { NodeOperationError } from "n8n-workflow";
import { run } from "./execution";
import { OPERATIONS } from "./generated/operations";
import { PROPERTIES } from "./generated/properties";

/** Reads and changes messages, tickets, contacts, cards and campaigns. */
export class Hotline implements INodeType {
  description: INodeTypeDescription = {
    displayName: "Hotline",
    name: "hotline",
    icon: "file:hotline.svg",
    group: ["output"],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: "Messages, tickets, contacts, cards and campaigns of Hotline",
    defaults: { name: "Hotline" },
    inputs: ["main"],
    outputs: ["main"],
    usableAsTool: true,
    credentials: [{ name: "hotlineApi", required: true }],
    properties: PROPERTIES,
  };

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const results: INodeExecutionData[] = [];
    for (let item = 0; item < this.getInputData().length; item++) {
      const name = `${this.getNodeParameter("resource", item)}.${this.getNodeParameter("operation", item)}`;
      const operation = OPERATIONS[name];
      try {
        if (operation === undefined) throw new NodeOperationError(this.getNode(), `There is no operation ${name}`, { itemIndex: item });
        for (const json of await run(this, operation, item)) results.push({ json, pairedItem: { item } });
      } catch (error) {
        if (!this.continueOnFail()) {
          if (error instanceof TypeError) throw new NodeOperationError(this.getNode(), error, { itemIndex: item });
          throw error;
        }
        results.push({ json: { error: (error as Error).message }, pairedItem: { item } });
      }
    }
    return [results];
  }
}
