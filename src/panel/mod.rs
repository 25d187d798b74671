//! The server side of the panel: people sign in, and use `/panel/api/v1` with the same handlers as integrations use the
//! API, plus operations of their own. `docs/panel.md` describes their permissions.
//!
//! A session is a row that every request looks up. A valid session is never cached, so it ends everywhere at once.

mod account;
mod admission;
mod audit;
mod audit_list;
mod channels;
mod company;
mod cookie;
mod device;
mod emails;
mod extractors;
mod figures;
mod limits;
mod links;
mod operations;
pub mod pages;
mod profiles;
mod session;
mod sign_in;
mod site;
mod tokens;
mod users;
mod values;

use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};

pub use admission::{admit_in_company, company_of};
pub use audit::{audit_tokens, has_audited_operations};
pub use cookie::WithCookie;

use hotline_actors::keyed_locks::KeyedLocks;
use hotline_persistence::tables::people::sessions::SignedInPerson;

use self::limits::PeopleLimits;
use self::operations::Operations;
use crate::mail::{MailOptions, Mailer};
use crate::openapi::{Operation, PathEntry, Table};
use crate::web::admission::modules::PANEL_API;
use crate::web::response::methods::no_such_route;
use crate::web::response::schema::Schemas;

/// The settings of the panel.
#[derive(Clone, Debug, Default)]
pub struct PanelOptions {
    /// How links are e-mailed to people; `None`: the creator of a link passes it on.
    pub mail: Option<MailOptions>,
    /// Whether administrators of the installation must have a second factor.
    pub admins_need_second_factor: bool,
}

/// The state of the panel.
pub struct Panel {
    limits: PeopleLimits,
    mailer: Option<Mailer>,
    /// By [`limits::account_key`]: serializes its requests for a password reset, so that concurrent ones send one link
    /// per account.
    reset_locks: KeyedLocks<String>,
    admins_need_second_factor: bool,
    /// The audited operations.
    operations: Operations,
}

impl Panel {
    /// Creates the state; `paths` contains all operations for people.
    pub fn new<'a>(
        paths: impl IntoIterator<Item = &'a PathEntry>,
        mailer: Option<Mailer>,
        admins_need_second_factor: bool,
    ) -> Self {
        let operations = Operations::new(paths);
        let (limits, reset_locks) = (PeopleLimits::default(), KeyedLocks::default());
        Self { limits, mailer, reset_locks, admins_need_second_factor, operations }
    }

    /// Adds the installation's own requirement of a second factor for administrators.
    fn with_requirements(&self, mut signed_in: SignedInPerson) -> SignedInPerson {
        signed_in.needs_factor |= self.admins_need_second_factor && signed_in.person().is_admin();
        signed_in
    }

    /// Waits until the queued e-mails are sent, up to the timeout of one e-mail. The threads that serve requests must
    /// still run: database connections end with them, and a password reset needs one.
    pub async fn settle(&self) {
        if let Some(mailer) = &self.mailer {
            mailer.settle().await;
        }
    }

    /// Waits for e-mails that are being sent, up to the timeout of one e-mail, and refuses further ones.
    pub async fn close(&self) {
        if let Some(mailer) = &self.mailer {
            mailer.close().await;
        }
    }
}

/// The paths outside a company: for signing in, links, a person's own account, and the installation. A path's scope is
/// its first segment.
#[rustfmt::skip] // One line per endpoint.
fn installation_paths(table: &mut Table<'_>) {
    table.tagged("session")
        .at("/session").get("getSignIn", session::show, "Get the current session").describe("Returns the state of the session, the person and their permissions.".to_owned())
            .post("signIn", session::create, "Sign in").describe("Signs in with e-mail and password and sets a session cookie. All failures return the same error. If several memberships match, they are returned to choose from.".to_owned())
            .delete("signOut", session::remove, "Sign out").describe("Ends the current session, if any.".to_owned())
        .at("/session/options").get("getSignInOptions", session::options, "Get the sign-in options").describe("Returns whether password resets by e-mail are available. Requires no session.".to_owned())
        .at("/session/second-factor").post("giveSecondFactor", session::enter_factor, "Enter the second factor").describe("Completes a sign-in in the state `secondFactor`. Each code can be used once; five wrong codes end the session.".to_owned());
    table.tagged("links")
        .at("/links/read").post("readLink", links::read, "Get an invitation or password reset").describe("Returns the owner of an invitation or a password reset, and when it expires.".to_owned())
        .at("/links/forgotten").post("requestReset", links::request_reset, "Request a password reset").describe("E-mails a link to reset the password, at most once every five minutes. The response does not reveal whether the account exists. Requires e-mail to be set up.".to_owned())
        .at("/links/use").post("useLink", links::redeem, "Set a password with a link").describe("Sets the password of the link's owner and ends all their sessions. The link cannot be used again.".to_owned());
    table.tagged("account")
        .at("/account").get("getAccount", account::show, "Get your account").describe("Returns the account of the signed-in person.".to_owned())
            .put("updateAccount", account::update, "Update your account").describe("Updates the given fields.".to_owned())
        .at("/account/password").put("changePassword", account::change_password, "Change your password").describe("Sets a new password and ends all other sessions.".to_owned())
        .at("/account/sessions").get("listOwnSessions", account::list_sessions, "List your sessions").describe("Lists all sessions of the signed-in person, most recently used first.".to_owned())
        // Before the path with an id, which would match it.
        .at("/account/sessions/end-others").post("endOtherSessions", account::end_other_sessions, "End your other sessions").describe("Ends all sessions except the current one.".to_owned())
        .at("/account/sessions/{sessionId}").delete("endOwnSession", account::end_session, "End one of your sessions").describe("Ends a session.".to_owned())
        .at("/account/second-factor").post("beginSecondFactor", account::begin_factor, "Set up a second factor").describe("Creates a secret for an authenticator app. It is enabled once it is confirmed with a code.".to_owned())
        .at("/account/second-factor/confirm").post("confirmSecondFactor", account::confirm_factor, "Confirm the second factor").describe("Enables the second factor with a first code, returns recovery codes, and ends all other sessions.".to_owned())
        .at("/account/second-factor/recovery-codes").post("renewRecoveryCodes", account::renew_codes, "Regenerate recovery codes").describe("Creates ten new codes and revokes the previous ones.".to_owned())
        .at("/account/second-factor/remove").post("removeSecondFactor", account::remove_factor, "Remove your second factor").describe("Removes the second factor. Fails if the company requires one.".to_owned());
    table.tagged("installation")
        .at("/companies").get("listCompanies", company::list, "List companies").describe("Lists all companies, ordered by id. For administrators of the installation.".to_owned())
            .post("createCompany", company::create, "Create a company").describe("Creates a company with the profiles Administrator, Supervisor and Agent.".to_owned())
        .at("/companies/{companyId}").get("getCompany", company::show, "Get a company").describe("Returns a company.".to_owned())
            .put("updateCompany", company::update, "Update a company").describe("Updates the given fields; `ratePerMinute: null` uses the installation's default.".to_owned())
        .at("/installation/figures").get("getFigures", figures::show, "Get the metrics of the installation").describe("Returns the metrics of `/metrics` as JSON.".to_owned())
        .at("/installation/audit-log").get("listInstallationAuditLog", audit_list::list_installation, "List the audit log of the installation").describe("Lists actions that do not belong to a company.".to_owned());
}

/// The panel's own operations within a company, in the same table as the API's.
#[rustfmt::skip] // One line per endpoint.
pub fn company_paths(table: &mut Table<'_>) {
    table.tagged("company")
        .at("/company").get("getOwnCompany", company::show_own, "Get your company").describe("Returns the signed-in user's company.".to_owned())
            .put("updateOwnCompany", company::update_own, "Update your company").describe("Updates the given fields. For administrators of the company.".to_owned());
    table.tagged("tokens")
        .at("/tokens").get("listTokens", tokens::list, "List API tokens").describe("Lists the company's tokens, ordered by id, without their keys. For administrators of the company.".to_owned())
            .post("createToken", tokens::create, "Create an API token").describe("Creates a token and returns its key, which is shown only once.".to_owned())
        .at("/tokens/{tokenId}").get("getToken", tokens::show, "Get an API token").describe("Returns a token.".to_owned())
            .put("updateToken", tokens::update, "Update an API token").describe("Updates the given fields; `expiresAt: null` removes the expiry. A revoked token cannot be changed.".to_owned())
        .at("/tokens/{tokenId}/rotate").post("rotateToken", tokens::rotate, "Rotate the key of an API token").describe("Replaces the key and revokes the previous one immediately. Name, permissions, addresses and expiry stay the same.".to_owned())
        .at("/tokens/{tokenId}/revoke").post("revokeToken", tokens::revoke, "Revoke an API token").describe("Revokes a token permanently and immediately.".to_owned());
    table.tagged("channels").reopen("/channels")
            .post("createChannel", channels::create, "Create a channel").describe("Creates a channel. It is connected once it has all required settings.".to_owned())
        .at("/channels/{channelId}/setup").get("getChannelSetup", channels::show, "Get the setup of a channel").describe("Returns a channel with its settings and URLs, without its secrets.".to_owned())
            .put("updateChannel", channels::update, "Update a channel").describe("Updates the given fields. A new access token reconnects a channel in error.".to_owned())
        .at("/channels/{channelId}/identity-secret").post("rotateIdentitySecret", channels::rotate_secret, "Rotate the identity secret of a webchat").describe("Returns the new secret, which is shown only once. The previous secret stays valid until the next rotation, unless it is revoked.".to_owned());
    table.tagged("profiles").reopen("/profiles")
            .post("createProfile", profiles::create, "Create a permission profile").describe("Creates a profile; its name is unique in the company.".to_owned())
        .reopen("/profiles/{profileId}")
            .put("updateProfile", profiles::update, "Update a permission profile").describe("Updates the given fields, effective with its users' next requests. At least one profile must administer the company.".to_owned())
            .delete("deleteProfile", profiles::remove, "Delete a permission profile").describe("Deletes a profile. Fails while users have it. At least one profile must administer the company.".to_owned())
        .at("/profiles/{profileId}/setup").get("getProfileSetup", profiles::show, "Get the setup of a permission profile").describe("Returns a profile with its administrator rights and number of users.".to_owned());
    table.tagged("users")
        .at("/users/{userId}/invitation").post("inviteUser", users::invite, "Invite a user").describe("Creates a link to set a password, valid for 7 days, and revokes the previous link.".to_owned())
        .at("/users/{userId}/password-reset").post("resetUserPassword", users::reset_password, "Reset a user's password").describe("Creates a link to set a new password, valid for one hour, and revokes the previous link.".to_owned())
        .at("/users/{userId}/second-factor/remove").post("removeUserSecondFactor", users::remove_factor, "Remove a user's second factor").describe("For users who have lost their phone and recovery codes. Ends all their sessions.".to_owned());
    table.tagged("audit-log")
        .at("/audit-log").get("listAuditLog", audit_list::list, "List the audit log").describe("Lists audit entries, ordered by id; with `order=desc`, newest first. `search` matches actor, address and target. Entries are kept for 400 days.".to_owned());
}

/// The part of a path that its scope covers.
fn scope_of(path: &str) -> &str {
    path.get(1..).and_then(|rest| rest.find('/')).map_or(path, |end| &path[..=end])
}

/// The scopes that are open to anyone.
const OPEN_SCOPES: [&str; 2] = ["/session", "/links"];

/// The operations outside a company.
pub fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut table = Table::documenting_api(schemas, scope_of);
    installation_paths(&mut table);
    let operations = table.finish().into_iter().flat_map(|entry| entry.operations);
    operations.map(|operation| Operation { prefix: PANEL_API, ..operation }).collect()
}

/// The operations outside a company, with their handlers.
pub fn handlers() -> Vec<PathEntry> {
    let mut table = Table::for_serving(scope_of);
    installation_paths(&mut table);
    table.finish()
}

/// Registers the routes outside a company, and the fallback for all other paths of people.
pub fn configure(services: &mut ServiceConfig) {
    let mut paths = handlers();
    while let Some(scope) = paths.first().map(|entry| scope_of(&entry.path).to_owned()) {
        let (scope_paths, other_paths) =
            paths.into_iter().partition::<Vec<_>, _>(|entry| scope_of(&entry.path) == scope);
        paths = other_paths;
        let resources = scope_paths.into_iter().map(PathEntry::into_resource);
        let path = format!("{PANEL_API}{scope}");
        if OPEN_SCOPES.contains(&scope.as_str()) {
            let scope =
                web::scope(&path).wrap(from_fn(admission::admit_anyone)).default_service(web::to(no_such_route));
            services.service(resources.fold(scope, |scope, resource| scope.service(resource)));
        } else {
            let scope =
                web::scope(&path).wrap(from_fn(admission::admit_signed_in)).default_service(web::to(no_such_route));
            services.service(resources.fold(scope, |scope, resource| scope.service(resource)));
        }
    }
    // Without a session, an unknown path gets the same 401 as a known one, so routes cannot be probed.
    services.service(
        web::scope(PANEL_API).wrap(from_fn(admission::admit_signed_in)).default_service(web::to(no_such_route)),
    );
}
