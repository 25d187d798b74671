// What stands around every page: where one can go, who is signed in, in which company.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { place as shownPlace } from "../core/place";
import { go, here, href } from "../core/router";
import { administers, isAdmin, leave, may, opened, session, stage } from "../core/session";
import { say, type Text } from "../core/text";
import { Icon } from "../ui/icons";
import { Languages } from "../ui/languages";
import { channels, companies, profiles } from "../resources/setup";
import { tokens } from "../resources/tokens";
import { customFields, webhooks } from "../resources/integration";
import { boards, products } from "../resources/sales";
import { contactLists, globalVariables, queues, quickMessages, tags, users, wrapupTypes } from "../resources/organization";

interface Place {
  path: string;
  text: Text;
  isFor: () => boolean;
}

const of = (resource: { path: string; module: string; isFor?: () => boolean; words: { many: Text } }): Place => ({
  path: resource.path,
  text: resource.words.many,
  isFor: resource.isFor ?? (() => may(resource.module, "GET")),
});

const isInstallation = () => isAdmin() && !opened.value;

const GROUPS: { title: Text; places: Place[] }[] = [
  {
    title: ["Server", "Servidor", "Servidor"],
    places: [
      of(companies),
      { path: "installation", text: ["Health", "Saúde", "Salud"], isFor: isAdmin },
      { path: "audit-log", text: ["Audit log", "Auditoria", "Auditoría"], isFor: isInstallation },
    ],
  },
  {
    title: ["Customer service", "Atendimento", "Atención al cliente"],
    places: [of(channels), of(queues), of(users), of(profiles), of(wrapupTypes), of(quickMessages)],
  },
  {
    title: ["Contacts and sales", "Contatos e vendas", "Contactos y ventas"],
    places: [
      of(tags),
      of(contactLists),
      { path: "contacts/import", text: ["Import contacts", "Importar contatos", "Importar contactos"], isFor: () => may("contacts", "POST") },
      of(boards),
      of(customFields),
      of(globalVariables),
      of(products),
    ],
  },
  {
    title: ["Developers", "Desenvolvedores", "Desarrolladores"],
    places: [of(tokens), of(webhooks)],
  },
  {
    title: ["Company", "Empresa", "Empresa"],
    places: [
      { path: "company", text: ["Settings", "Configurações", "Ajustes"], isFor: administers },
      { path: "audit-log", text: ["Audit log", "Auditoria", "Auditoría"], isFor: () => administers() && !isInstallation() },
    ],
  },
];

/** What is reached from a page of the menu, and stands in no menu itself. */
const BELOW: Record<string, string[]> = { "wrapup-types": ["wrapup-categories"], products: ["product-categories"] };

export function Frame({ children }: { children: ComponentChildren }) {
  const isOpen = useSignal(false);
  const { path } = here.value;
  // From an address of somebody else's, the menu leads into one's own.
  const scope = shownPlace.value === "here" ? here.value.scope : null;
  // On a phone the menu lies over the page, and goes with the step it has led to.
  useEffect(() => {
    isOpen.value = false;
  }, [path]);
  const company = opened.value?.name ?? session.value?.company?.name;
  const shown = GROUPS.map(({ title, places }) => ({ title, places: places.filter(({ isFor }) => isFor()) })).filter(({ places }) => places.length);
  const isAt = (place: string) => [place, ...(BELOW[place] ?? [])].some((it) => path === `/${it}` || path.startsWith(`/${it}/`));
  const signOut = async () => {
    await leave();
    // Who signs in here next need not be of the same company.
    if (stage.value === "out") go(here.value.path, { replace: true, scope: null });
  };
  return (
    <div class="frame-of-all">
      <a class="skip" href="#main">
        {say(["Skip to content", "Pular para o conteúdo", "Saltar al contenido"])}
      </a>
      <header class="bar">
        <button type="button" class="bare menu" aria-expanded={isOpen.value} aria-controls="menu" onClick={() => (isOpen.value = !isOpen.value)}>
          <Icon name={isOpen.value ? "close" : "menu"} />
          <span class="unseen">{say(["Menu", "Menu", "Menú"])}</span>
        </button>
        <a class="brand" href={href("/", scope)} translate={false}>
          Hotline
        </a>
        {company && (
          <span class="company" dir="auto">
            {company}
          </span>
        )}
        {opened.value && (
          <button
            type="button"
            class="button small"
            onClick={() => go("/companies")}
          >
            {say(["All companies", "Todas as empresas", "Todas las empresas"])}
          </button>
        )}
        <span class="push" />
        <a class="bare account" href={href("/account", scope)} aria-label={`${say(["Your account", "Sua conta", "Su cuenta"])}: ${session.value?.person?.name}`} aria-current={path === "/account" ? "page" : undefined}>
          <Icon name="person" />
          <span dir="auto">{session.value?.person?.name}</span>
        </a>
        <button type="button" class="bare" onClick={signOut} aria-label={say(["Sign out", "Sair", "Cerrar sesión"])}>
          <Icon name="leave" />
        </button>
      </header>
      <nav id="menu" class={isOpen.value ? "open" : ""} aria-label={say(["Main menu", "Menu principal", "Menú principal"])}>
        {shown.map(({ title, places }) => (
          <section key={title[0]}>
            <h2>{say(title)}</h2>
            <ul>
              {places.map((place) => (
                <li key={place.path}>
                  <a href={href(`/${place.path}`, scope)} aria-current={isAt(place.path) ? "page" : undefined}>
                    {say(place.text)}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
        <Languages />
      </nav>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

