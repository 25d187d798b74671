//! The service side of the panel: people sign in, and use `/panel/api/v1` with the same handlers as integrations use
//! the API, plus operations of their own. `docs/panel.md` describes their permissions.
//!
//! A session is a row that every request looks up. Nothing of it is held in memory, so it ends everywhere at once.

mod account;
mod audit;
mod audit_list;
mod channels;
mod company;
mod cookie;
mod device;
mod door;
mod figures;
mod letters;
mod limits;
mod links;
mod operations;
pub mod pages;
mod profiles;
mod session;
mod sign_in;
mod signed;
mod site;
mod tokens;
mod users;
mod values;

use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};

pub use audit::{concerns_tokens, of_tokens};
pub use cookie::WithCookie;
pub use door::{company_of, in_company};

use hotline_persistence::tables::people::sessions::Signed;
use tokio::sync::Mutex;

use self::limits::PeopleLimits;
use self::operations::Operations;
use crate::mail::{MailOptions, Mailer};
use crate::openapi::{At, Operation, Table};
use crate::web::methods::no_such_route;
use crate::web::modules::PANEL_API;
use crate::web::schema::Schemas;

/// The settings of the panel.
#[derive(Clone, Debug, Default)]
pub struct PanelOptions {
    /// How links are mailed to people; `None`: the creator of a link passes it on.
    pub mail: Option<MailOptions>,
    /// Whether administrators of the installation must have a second factor.
    pub admins_need_factor: bool,
}

/// The state of the panel.
pub struct Panel {
    limits: PeopleLimits,
    mailer: Option<Mailer>,
    /// Serializes requests for a link: someone who asks twice at the same time gets one mail for each of their links.
    reminding: Mutex<()>,
    admins_need_factor: bool,
    /// What the audit log keeps.
    operations: Operations,
}

impl Panel {
    /// With all operations for people.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a At>, mailer: Option<Mailer>, admins_need_factor: bool) -> Self {
        let operations = Operations::new(paths);
        Self { limits: PeopleLimits::default(), mailer, reminding: Mutex::default(), admins_need_factor, operations }
    }

    /// The person who has signed in, with the installation's requirements added.
    fn asked(&self, mut signed: Signed) -> Signed {
        signed.needs_factor |= self.admins_need_factor && signed.person().is_admin();
        signed
    }

    /// Waits until the requested mails have been created: this uses connections that end with the serving threads.
    pub async fn settle(&self) {
        if let Some(mailer) = &self.mailer {
            mailer.settle().await;
        }
    }

    /// Waits for mails being sent, up to the timeout of one mail.
    pub async fn close(&self) {
        if let Some(mailer) = &self.mailer {
            mailer.close().await;
        }
    }
}

/// Paths of the installation and of the person, in scopes by their first segment.
#[rustfmt::skip] // One line an endpoint.
fn beside_companies(table: &mut Table<'_>) {
    table.tagged("session")
        .at("/session").get("getSignIn", session::show, "Ask who has signed in").says("How far the session has come, who it is of, and what they may do.".to_owned())
            .post("signIn", session::create, "Sign in").says("Signs in with e-mail and password; the session is a cookie. Whatever is wrong is answered alike. Where both fit several memberships, they are answered to choose from.".to_owned())
            .delete("signOut", session::remove, "Sign out").says("Ends the session, if there is one.".to_owned())
        .at("/session/options").get("getSignInOptions", session::options, "Ask what signing in offers").says("Whether links to choose a password are sent by mail. For anybody.".to_owned())
        .at("/session/second-factor").post("giveSecondFactor", session::give_factor, "Give the second factor").says("Opens a session in the state `secondFactor`. A code is taken once; five wrong ones end the session.".to_owned());
    table.tagged("links")
        .at("/links/read").post("readLink", links::read, "Read a link").says("Whose an invitation or a reset is, and until when it is good.".to_owned())
        .at("/links/forgotten").post("requestReset", links::request, "Ask for a link by mail").says("Sends whoever signs in with this e-mail a link to choose a password, and answers alike whether there is anybody. Again after five minutes. Only where mail is set up.".to_owned())
        .at("/links/use").post("useLink", links::spend, "Choose a password by a link").says("Sets the password of who was given the link, uses it up, and ends all their sessions.".to_owned());
    table.tagged("account")
        .at("/account").get("getAccount", account::show, "Read one's own account").says("The account of who has signed in.".to_owned())
            .put("updateAccount", account::update, "Change one's own account").says("Changes the fields that are given.".to_owned())
        .at("/account/password").put("changePassword", account::change_password, "Change one's own password").says("Sets another password, and ends every other session.".to_owned())
        .at("/account/sessions").get("listOwnSessions", account::list_sessions, "List one's own sessions").says("Where one has signed in, the last used first; all of them.".to_owned())
        // Before the path with an id, which would match it.
        .at("/account/sessions/end-others").post("endOtherSessions", account::end_other_sessions, "End one's other sessions").says("Ends every session but the one that asks.".to_owned())
        .at("/account/sessions/{sessionId}").delete("endOwnSession", account::end_session, "End one of one's own sessions").says("Ends a session.".to_owned())
        .at("/account/second-factor").post("beginSecondFactor", account::begin_factor, "Begin a second factor").says("Makes a secret for an authenticator app. It is in force once a code of it was given.".to_owned())
        .at("/account/second-factor/confirm").post("confirmSecondFactor", account::confirm_factor, "Put the second factor in force").says("Takes the first code of the app, answers recovery codes, and ends every other session.".to_owned())
        .at("/account/second-factor/recovery-codes").post("renewRecoveryCodes", account::renew_codes, "Make other recovery codes").says("Makes ten codes; those before are good no longer.".to_owned())
        .at("/account/second-factor/remove").post("removeSecondFactor", account::remove_factor, "Give the second factor up").says("Takes it away; refused where the company asks for one.".to_owned());
    table.tagged("installation")
        .at("/companies").get("listCompanies", company::list, "List the companies").says("Every company, by id. For administrators of the installation, as all of these.".to_owned())
            .post("createCompany", company::create, "Create a company").says("Makes a company with the profiles Administrator, Supervisor and Agent.".to_owned())
        .at("/companies/{companyId}").get("getCompany", company::show, "Read a company").says("One company.".to_owned())
            .put("updateCompany", company::update, "Change a company").says("Changes the fields that are given; `ratePerMinute: null` is the installation's.".to_owned())
        .at("/installation/figures").get("getFigures", figures::show, "Read the figures of the installation").says("Everything that `/metrics` says, as JSON.".to_owned())
        .at("/installation/audit-log").get("listInstallationAuditLog", audit_list::list_installation, "List what administrators of the installation did").says("What was done to no company in particular.".to_owned());
}

/// The panel's own operations within a company, in the same table as the API's.
#[rustfmt::skip] // One line an endpoint.
pub fn of_company(table: &mut Table<'_>) {
    table.tagged("company")
        .at("/company").get("getOwnCompany", company::show_own, "Read one's own company").says("The company one works in.".to_owned())
            .put("updateOwnCompany", company::update_own, "Change one's own company").says("Changes the fields that are given. For administrators of the company.".to_owned());
    table.tagged("tokens")
        .at("/tokens").get("listTokens", tokens::list, "List API tokens").says("The company's tokens, by id; never their keys. For administrators of the company, as all of these.".to_owned())
            .post("createToken", tokens::create, "Create an API token").says("Makes a token and answers its key, once.".to_owned())
        .at("/tokens/{tokenId}").get("getToken", tokens::show, "Read an API token").says("One token.".to_owned())
            .put("updateToken", tokens::update, "Change an API token").says("Changes the fields that are given; `expiresAt: null` lets it work for ever. A revoked one stays as it is.".to_owned())
        .at("/tokens/{tokenId}/rotate").post("rotateToken", tokens::rotate, "Give an API token another key").says("The key before is dead at once; name, permissions, addresses and expiry stay.".to_owned())
        .at("/tokens/{tokenId}/revoke").post("revokeToken", tokens::revoke, "Revoke an API token").says("Ends a token for good, and at once.".to_owned());
    table.tagged("channels").again("/channels")
            .post("createChannel", channels::create, "Create a channel").says("Makes a channel; it is connected once it has all its type needs.".to_owned())
        .at("/channels/{channelId}/setup").get("getChannelSetup", channels::show, "Read how a channel is set up").says("The channel with its settings and where it is reached; never its secrets.".to_owned())
            .put("updateChannel", channels::update, "Change a channel").says("Changes what is given. A channel in error is connected again by a new access token.".to_owned())
        .at("/channels/{channelId}/identity-secret").post("rotateIdentitySecret", channels::rotate_secret, "Give a webchat another identity secret").says("Answers the secret, once. The one before stays good until the next is made, unless it is revoked.".to_owned());
    table.tagged("profiles").again("/profiles")
            .post("createProfile", profiles::create, "Create a permission profile").says("Makes a profile; its name is unique in the company.".to_owned())
        .again("/profiles/{profileId}")
            .put("updateProfile", profiles::update, "Change a permission profile").says("Changes the fields that are given, for its users' next requests. One profile goes on to administer the company.".to_owned())
            .delete("deleteProfile", profiles::remove, "Delete a permission profile").says("Deletes a profile that no user has. One stays that administers the company.".to_owned())
        .at("/profiles/{profileId}/setup").get("getProfileSetup", profiles::show, "Read how a permission profile is set up").says("The profile with whether it administers the company, and how many users have it.".to_owned());
    table.tagged("users")
        .at("/users/{userId}/invitation").post("inviteUser", users::invite, "Make an invitation").says("A link by which the user chooses a password, good for 7 days; the link before is not any more.".to_owned())
        .at("/users/{userId}/password-reset").post("resetUserPassword", users::reset, "Make a link to reset a password").says("A link by which the user chooses another password, good for an hour; the link before is not any more.".to_owned())
        .at("/users/{userId}/second-factor/remove").post("removeUserSecondFactor", users::remove_factor, "Take a user's second factor away").says("For who has lost their phone and their recovery codes; the user is signed in nowhere any more.".to_owned());
    table.tagged("audit-log")
        .at("/audit-log").get("listAuditLog", audit_list::list, "List what administrators did").says("Who did what, when and from where, by id: with `order=desc` the newest first. `search` looks into who it was, from where, and what it was done to. Entries are kept for 400 days.".to_owned());
}

/// The part of a path that its scope covers.
fn scope_of(path: &str) -> &str {
    path.get(1..).and_then(|rest| rest.find('/')).map_or(path, |end| &path[..=end])
}

/// The scopes that are open to anyone.
const OPEN: [&str; 2] = ["/session", "/links"];

/// The operations outside a company.
pub fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut table = Table::of_api(schemas, scope_of);
    beside_companies(&mut table);
    let operations = table.finish().into_iter().flat_map(|at| at.operations);
    operations.map(|operation| Operation { below: PANEL_API, ..operation }).collect()
}

/// The same operations with their handlers.
pub fn served() -> Vec<At> {
    let mut table = Table::served(scope_of);
    beside_companies(&mut table);
    table.finish()
}

/// Registers the routes outside a company, and the fallback for all other paths of people.
pub fn configure(services: &mut ServiceConfig) {
    let mut paths = served();
    while let Some(scope) = paths.first().map(|at| scope_of(&at.path).to_owned()) {
        let (of_scope, others) = paths.into_iter().partition::<Vec<_>, _>(|at| scope_of(&at.path) == scope);
        paths = others;
        let resources = of_scope.into_iter().map(At::into_resource);
        let path = format!("{PANEL_API}{scope}");
        if OPEN.contains(&scope.as_str()) {
            let door = web::scope(&path).wrap(from_fn(door::anybody)).default_service(web::to(no_such_route));
            services.service(resources.fold(door, |door, resource| door.service(resource)));
        } else {
            let door = web::scope(&path).wrap(from_fn(door::signed_in)).default_service(web::to(no_such_route));
            services.service(resources.fold(door, |door, resource| door.service(resource)));
        }
    }
    // Without a session every path answers 401, so routes cannot be probed.
    services.service(web::scope(PANEL_API).wrap(from_fn(door::signed_in)).default_service(web::to(no_such_route)));
}
