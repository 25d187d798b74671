//! How far somebody has come with signing in, as the panel shows it.

use std::collections::{BTreeMap, BTreeSet};

use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::sessions::{SessionState, Signed};
use hotline_persistence::tables::people::{Language, PersonId, called};
use serde::Serialize;
use utoipa::ToSchema;

use super::door;
use crate::app::App;
use crate::web::permissions::everything;

/// How far signing in has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SignInState {
    /// The password fits several memberships: sign in again and name one.
    Choose,
    /// The second factor must be given.
    SecondFactor,
    /// A second factor must be set up.
    Enrol,
    /// Done.
    Open,
}

/// How somebody has signed in, and what they may do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignIn {
    /// How far it has come.
    pub state: SignInState,
    /// The memberships to choose from; none but in the state `choose`.
    pub choices: Vec<Membership>,
    /// Who it is; none before the second factor is given.
    pub person: Option<SignedPerson>,
    /// Where they work; none of an administrator of the installation.
    pub company: Option<SignedCompany>,
    /// Methods, by module.
    #[schema(example = json!({"tickets": ["GET", "POST", "PUT"]}))]
    pub permissions: BTreeMap<String, BTreeSet<String>>,
    /// Whether they may do what administrators do.
    #[schema(example = false)]
    pub administers: bool,
    /// Whether they see the cards of others.
    #[schema(example = false)]
    pub sees_all_cards: bool,
    /// Whether they must have a second factor.
    #[schema(example = false)]
    pub second_factor_required: bool,
}

/// A membership that the e-mail and the password fit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The company; none: the installation.
    pub company_id: Option<CompanyId>,
    /// What it is called.
    #[schema(example = "Acme")]
    pub company_name: Option<String>,
    /// Whether it is the installation's administration.
    #[schema(example = false)]
    pub admin: bool,
}

/// Who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum PersonKind {
    /// A user of a company.
    User,
    /// An administrator of the installation.
    Admin,
}

impl PersonKind {
    /// The kind of a person.
    pub fn of(person: PersonId) -> Self {
        if person.is_admin() { Self::Admin } else { Self::User }
    }
}

/// A person who has signed in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedPerson {
    /// Whether a user or an administrator of the installation.
    pub kind: PersonKind,
    /// Their id, as a user or as an administrator.
    #[schema(example = 7)]
    pub id: i64,
    /// What they are called.
    #[schema(example = "Ana Souza")]
    pub name: String,
    /// What they sign in with.
    #[schema(example = "ana@example.com")]
    pub email: String,
    /// What the pages speak; none: what the browser does.
    pub language: Option<Language>,
    /// Whether they have a second factor.
    #[schema(example = false)]
    pub second_factor: bool,
}

/// Where a person works.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedCompany {
    /// The company.
    pub id: CompanyId,
    /// What it is called.
    #[schema(example = "Acme")]
    pub name: String,
    /// Where its days begin.
    #[schema(example = "America/Sao_Paulo")]
    pub time_zone: String,
}

impl SignIn {
    pub(super) fn choose(choices: Vec<Membership>) -> Self {
        Self {
            state: SignInState::Choose,
            choices,
            person: None,
            company: None,
            permissions: BTreeMap::new(),
            administers: false,
            sees_all_cards: false,
            second_factor_required: false,
        }
    }

    /// The state of a session.
    pub(super) fn of(app: &App, signed: &Signed) -> Self {
        let mut shown = Self::choose(Vec::new());
        shown.second_factor_required = signed.needs_factor;
        shown.state = match signed.state {
            SessionState::SecondFactor => {
                shown.state = SignInState::SecondFactor;
                return shown;
            }
            SessionState::Open if door::is_open(signed) => SignInState::Open,
            SessionState::Open => SignInState::Enrol,
        };
        let person = signed.person();
        shown.person = Some(SignedPerson {
            kind: PersonKind::of(person),
            id: person.id(),
            name: called(&signed.name, &signed.email).to_owned(),
            email: signed.email.clone(),
            language: signed.language,
            second_factor: signed.has_factor,
        });
        if let PersonId::User(company, _) = person {
            shown.company = app.engine.directory().company(company).map(|known| SignedCompany {
                id: company,
                name: known.company.name.clone(),
                time_zone: known.company.time_zone.clone(),
            });
        }
        shown.permissions = if person.is_admin() { everything() } else { signed.permissions.0.clone() };
        shown.administers = signed.administers;
        shown.sees_all_cards = signed.sees_all_cards;
        shown
    }
}
