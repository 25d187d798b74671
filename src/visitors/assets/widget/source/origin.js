// What the page says of its visitor.

/** Whom an identity names, as far as a browser can read it; the door looks closer. */
export function subjectOf(identity) {
  try {
    const part = identity.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    const bytes = Uint8Array.from(atob(part), (character) => character.charCodeAt(0));
    return String(JSON.parse(new TextDecoder().decode(bytes)).sub);
  } catch {
    return String(identity);
  }
}

/** Where the visitor is, as far as the door takes it. */
export function page() {
  const cut = (text) => text.slice(0, 2000) || undefined;
  return { url: cut(location.href), title: cut(document.title.trim()), referrer: cut(document.referrer) };
}

export function utm() {
  const given = new URLSearchParams(location.search);
  const part = (name) => (given.get(`utm_${name}`) || "").trim().slice(0, 200) || undefined;
  return { source: part("source"), medium: part("medium"), campaign: part("campaign"), id: part("id") };
}
