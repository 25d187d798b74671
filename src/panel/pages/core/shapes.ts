// The shapes of records, under the names that the pages use.

import type { Method, Of, Query } from "./client";

/** A record that something else names. */
export interface Named {
  id: number;
  name: string;
}

/** Where the records are that can be chosen. */
export interface Source {
  path: string;
  query?: Query;
}

export type Permissions = Record<string, Method[]>;

/** With what the document says less of: which methods there are. */
type Permitting<T> = Omit<T, "permissions"> & { permissions: Permissions };

export type SignIn = Permitting<Of<"SignIn">>;
export type LinkTarget = Of<"PersonLink">;
export type Link = Of<"Link">;
export type Account = Of<"Account">;
export type OwnSession = Of<"OwnSession">;
export type Company = Of<"Company">;
export type Token = Permitting<Of<"Token">>;
export type NewToken = { token: Token; key: string };
export type ChannelSetup = Of<"ChannelSetup">;
export type Template = Of<"Template">;
export type ProfileSetup = Permitting<Of<"ProfileSetup">>;
export type AuditEntry = Of<"AuditEntry">;
export type Figures = Of<"Figures">;
