// What a page may write, and what it may not.

import type { HotlineWebchat, HotlineWebchatAttributes } from "@hotline/webchat";

const widget: HotlineWebchat | undefined = window.HotlineWebchat;
export const isAccepted: Promise<boolean | undefined> | undefined = widget?.identify("eyJ…");
export const done: Promise<void>[] = widget ? [widget.open(), widget.close(), widget.logout()] : [];
addEventListener("hotline-webchat", (event) => void event.type);
export const element: HTMLElement | null = document.querySelector("hotline-webchat");

const attributes: HotlineWebchatAttributes = { identity: "eyJ…", open: "", in: "#chat" };
Object.assign(document.createElement("script").dataset, attributes);

// @ts-expect-error it may not exist yet
void HotlineWebchat.open();
// @ts-expect-error an identity is text
void widget?.identify({ sub: "c-1" });
// @ts-expect-error
void widget?.show();
