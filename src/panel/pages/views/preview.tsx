// How a webchat looks with what is typed: the widget's own style sheet, on the widget's own structure.

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { themed } from "../../../visitors/assets/widget/source/color.js";
import widget from "../../../visitors/assets/widget/source/style.css";
import type { Values } from "../core/drafts";
import { say, type Text } from "../core/text";
import { words } from "../core/words";
import { Icon } from "../ui/icons";

const said = {
  title: ["Preview", "Prévia", "Vista previa"],
  chat: ["Chat with us", "Fale conosco", "Chatea con nosotros"],
  greeting: ["Hi, how can we help?", "Olá, como podemos ajudar?", "Hola, ¿en qué podemos ayudarte?"],
  online: ["Online now", "Online agora", "En línea ahora"],
  question: ["Where is my order?", "Onde está meu pedido?", "¿Dónde está mi pedido?"],
  write: ["Write a message…", "Escreva uma mensagem…", "Escribe un mensaje…"],
  before: ["Before we begin", "Antes de começar", "Antes de empezar"],
  begin: ["Start the chat", "Iniciar o chat", "Empezar el chat"],
  number: ["Phone number", "Telefone", "Teléfono"],
} as const satisfies Record<string, Text>;

/** The widget stands in a corner of the page; here, of its frame. On a phone it takes all of either. */
const FRAMED = `
  .root { position: absolute !important; }
  .panel { position: absolute !important; animation: none !important; }
  @media (min-width: 480.02px) and (min-height: 460.02px) { .panel { width: 300px !important; height: 420px !important; } }
  @media (max-width: 480px), (max-height: 460px) { .root { inset: 0 !important; } .root .panel { height: auto !important; } }
`;

const COLOR = /^#[0-9a-f]{6}$/i;
/** What the widget takes where none is chosen. */
export const DEFAULT_COLOR = "#2563eb";

export function Preview({ values }: { values: Values }) {
  const frame = useRef<HTMLDivElement>(null);
  const color = COLOR.test(String(values.color)) ? String(values.color) : DEFAULT_COLOR;
  useEffect(() => {
    const host = frame.current;
    if (!host) return;
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [widget, themed(color), FRAMED].map((text) => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(text);
      return sheet;
    });
    render(<Widget values={values} />, root);
  }, [values, color]);
  return (
    <section class="card preview">
      <h2>{say(said.title)}</h2>
      <div class="frame" inert aria-hidden="true">
        <div ref={frame} />
      </div>
    </section>
  );
}

function Widget({ values }: { values: Values }) {
  const asked = Array.isArray(values.preChatFields) ? (values.preChatFields as string[]) : [];
  const labels: Record<string, Text> = { name: words.name, email: words.email, number: said.number };
  return (
    <div class={`root is-open ${values.position === "left" ? "at-left" : "at-right"}`}>
      <section class="panel">
        <header>
          <span class="mark">
            <Icon name="chat" />
          </span>
          <div class="titles">
            <h2>{String(values.title || "") || say(said.chat)}</h2>
            <p class="status">{say(said.online)}</p>
          </div>
        </header>
        <div class="main">
          {asked.length > 0 ? (
            <form class="form">
              <h3>{say(said.before)}</h3>
              {asked.map((name) => (
                <label key={name}>
                  {say(labels[name] ?? words.name)}
                  <input readOnly />
                </label>
              ))}
              <button type="button" class="primary">
                {say(said.begin)}
              </button>
            </form>
          ) : (
            <div class="transcript">
              <div class="log">
                <div class="list">
                  <div class="message theirs first last greeting">
                    <div class="bubble">
                      <p class="text">{String(values.greeting || "") || say(said.greeting)}</p>
                    </div>
                  </div>
                  <div class="message own first last">
                    <div class="bubble">
                      <p class="text">{say(said.question)}</p>
                    </div>
                  </div>
                </div>
              </div>
            </div>
          )}
        </div>
        {asked.length === 0 && (
          <footer>
            <form class="composer">
              <textarea readOnly rows={1} placeholder={say(said.write)} />
              <button type="button" class="send">
                <Icon name="up" />
              </button>
            </form>
          </footer>
        )}
      </section>
      <button type="button" class="launcher">
        <span class="closes">
          <Icon name="close" />
        </span>
      </button>
    </div>
  );
}
