// Entry: who is signed in, and which page the address names.

import { render, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { lookAgain, place, trouble } from "./core/place";
import { here, match } from "./core/router";
import { administers, isAdmin, leave, look, may, opened, session, stage } from "./core/session";
import { language, say } from "./core/text";
import { words } from "./core/words";
import { EditPage, NewPage } from "./resource/form";
import { ListPage } from "./resource/list";
import { MembersPage } from "./resource/members";
import { mayWith, type Resource } from "./resource/types";
import { customFields, webhooks } from "./resources/integration";
import {
  contactLists,
  globalVariables,
  listContacts,
  queues,
  queueUsers,
  quickMessages,
  tags,
  users,
  wrapupCategories,
  wrapupTypes,
} from "./resources/organization";
import { boards, productCategories, products } from "./resources/sales";
import { channels, companies, profiles } from "./resources/setup";
import { tokens } from "./resources/tokens";
import { Questions } from "./ui/dialog";
import { Button, LinkButton, Notices, Page, Trouble, Waiting } from "./ui/parts";
import { Revealed } from "./ui/reveal";
import { AccountPage, EnrolPage } from "./views/account";
import { AuditLogPage } from "./views/audit_log";
import { CompanyPage } from "./views/company";
import { ContactImportPage } from "./views/contact_import";
import { DeliveriesPage } from "./views/deliveries";
import { FieldOrderPage } from "./views/field_order";
import { Frame } from "./views/frame";
import { HomePage } from "./views/home";
import { InstallationPage } from "./views/installation";
import { Gate, SignInAgain, SignInPage } from "./views/sign_in";
import { isWelcome, WelcomePage } from "./views/welcome";

const RESOURCES: readonly Resource[] = [
  ...[tags, queues, wrapupTypes, wrapupCategories, quickMessages, globalVariables, products, productCategories],
  ...[boards, users, contactLists, customFields, webhooks, tokens, channels, profiles, companies],
];

interface Route {
  pattern: string;
  isFor: () => boolean;
  show: (given: Record<string, string>) => ComponentChildren;
}

/** The pages of a resource. */
const pagesOf = (resource: Resource, isFor = () => mayWith(resource, "GET")): Route[] => [
  { pattern: `/${resource.path}`, isFor, show: () => <ListPage of={resource} /> },
  { pattern: `/${resource.path}/new`, isFor: () => mayWith(resource, "POST"), show: () => <NewPage of={resource} /> },
  { pattern: `/${resource.path}/:id`, isFor, show: ({ id = "" }) => <EditPage of={resource} id={id} /> },
];

const ROUTES: Route[] = [
  { pattern: "/", isFor: () => true, show: () => <HomePage /> },
  { pattern: "/account", isFor: () => true, show: () => <AccountPage /> },
  { pattern: "/company", isFor: administers, show: () => <CompanyPage /> },
  { pattern: "/installation", isFor: isAdmin, show: () => <InstallationPage /> },
  { pattern: "/audit-log", isFor: () => isAdmin() || administers(), show: () => <AuditLogPage /> },
  { pattern: "/contacts/import", isFor: () => may("contacts", "POST"), show: () => <ContactImportPage /> },
  { pattern: "/custom-fields/order", isFor: () => may("customFields", "PUT"), show: () => <FieldOrderPage /> },
  { pattern: "/webhooks/:id/deliveries", isFor: () => may("webhooks", "GET"), show: ({ id = "" }) => <DeliveriesPage id={id} /> },
  { pattern: "/queues/:id/users", isFor: () => may("queues", "GET"), show: ({ id = "" }) => <MembersPage what={queueUsers} id={id} /> },
  { pattern: "/contact-lists/:id/contacts", isFor: () => may("campaigns", "GET"), show: ({ id = "" }) => <MembersPage what={listContacts} id={id} /> },
  ...RESOURCES.flatMap((resource) => pagesOf(resource)),
];

function Routed() {
  const { path, scope } = here.value;
  switch (place.value) {
    case "looking":
      return <Waiting />;
    case "unreachable":
      return (
        <Page title={say(words.product)}>
          <Trouble text={trouble.value} again={lookAgain} />
        </Page>
      );
    case "gone":
      return <Nothing text={say(words.notFound)} />;
    case "elsewhere":
      return <Elsewhere />;
  }
  // Another page, another company: nothing of the one before is left in it.
  return <div key={`${path} ${scope} ${opened.value?.id ?? ""}`}>{shownAt(path)}</div>;
}

/** The address of a company that is not theirs who has signed in. */
function Elsewhere() {
  const text = ["Sign in with an account of that company to see it.", "Entre com uma conta dessa empresa para vê-la.", "Inicie sesión con una cuenta de esa empresa para verla."] as const;
  return (
    <Page title={say(["This page belongs to another company", "Esta página pertence a outra empresa", "Esta página pertenece a otra empresa"])} lead={say(text)}>
      <div class="row">
        <LinkButton to="/" scope={null}>
          {say(words.toStart)}
        </LinkButton>
        <Button onClick={leave}>{say(["Use another account", "Usar outra conta", "Usar otra cuenta"])}</Button>
      </div>
    </Page>
  );
}

function shownAt(path: string): ComponentChildren {
  for (const { pattern, isFor, show } of ROUTES) {
    const given = match(pattern, path);
    if (given) return isFor() ? show(given) : <Nothing text={say(words.forbidden)} />;
  }
  return <Nothing text={say(words.notFound)} />;
}

function Nothing({ text }: { text: string }) {
  return (
    <Page title={text}>
      <LinkButton to="/" scope={place.value === "here" ? here.value.scope : null}>
        {say(words.toStart)}
      </LinkButton>
    </Page>
  );
}

function Panel() {
  useEffect(() => {
    document.documentElement.lang = language.value;
  }, [language.value]);
  if (isWelcome(here.value)) return <WelcomePage />;
  switch (stage.value) {
    case "loading":
      return <Waiting />;
    case "unreachable":
      return (
        <Gate title={say(words.product)}>
          <Trouble text={say(words.unreachable)} again={() => void look()} />
        </Gate>
      );
    case "open":
      return (
        <Frame>
          <Routed />
        </Frame>
      );
    case "enrol":
      return <EnrolPage />;
    default:
      return <SignInPage />;
  }
}

function Everything() {
  return (
    <>
      {/* Somebody else, and everything is made anew. */}
      <Panel key={`${session.value?.person?.kind ?? ""} ${session.value?.person?.id ?? ""}`} />
      <Questions />
      <Revealed />
      <SignInAgain />
      <Notices />
    </>
  );
}

render(<Everything />, document.getElementById("app")!);
if (!isWelcome(here.value)) void look();
