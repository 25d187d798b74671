// @ts-check
/// <reference types="@hotline/webchat" />
// The page's own script. Its types are in `@hotline/webchat`.

document.querySelector("#help")?.addEventListener("click", () => window.HotlineWebchat?.open());

document.querySelector("#log-out")?.addEventListener("click", async () => {
  // The next user of this browser must not find the conversation.
  await window.HotlineWebchat?.logout();
  document.cookie = "customer=; Max-Age=0; path=/";
  location.reload();
});
