import type { IAuthenticateGeneric, ICredentialTestRequest, ICredentialType, INodeProperties, Icon } from "n8n-workflow";

/** The address of a Hotline service and a token of a company. */
export class HotlineApi implements ICredentialType {
  name = "hotlineApi";

  displayName = "Hotline API";

  icon: Icon = "file:../nodes/Hotline/hotline.svg";

  documentationUrl = "https://hotline-hq.github.io/hotline/clients/#n8n";

  properties: INodeProperties[] = [
    {
      displayName: "URL",
      name: "url",
      type: "string",
      default: "",
      required: true,
      placeholder: "https://support.example.com",
      description: "The address of the service, without /api/v1",
    },
    {
      displayName: "API Key",
      name: "apiKey",
      type: "string",
      typeOptions: { password: true },
      default: "",
      required: true,
      description: "A token of the company, with the permissions that the workflow needs and GET on channels, which the test asks for",
    },
  ];

  authenticate: IAuthenticateGeneric = {
    type: "generic",
    properties: { headers: { Authorization: "=Bearer {{$credentials.apiKey}}" } },
  };

  test: ICredentialTestRequest = {
    request: { baseURL: '={{$credentials.url.replace(/\\/+$/, "")}}', url: "/api/v1/channels", qs: { perPage: 1 } },
  };
}
