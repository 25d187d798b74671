//! The state of a sign-in, as the panel shows it.

use std::collections::{BTreeMap, BTreeSet};

use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::sessions::{SessionState, SignedInPerson};
use hotline_persistence::tables::people::{Language, PersonId, display_name};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::admission::permissions::everything;

/// The state of a sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SignInState {
    /// The password fits several memberships: sign in again and choose one.
    Choose,
    /// The second factor must be entered.
    SecondFactor,
    /// A second factor must be set up.
    Enrol,
    /// The person is signed in.
    Open,
}

/// The state of a sign-in, and the person's permissions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignIn {
    /// The state of the sign-in.
    pub state: SignInState,
    /// The memberships to choose from, in the state `choose`.
    pub choices: Vec<Membership>,
    /// The person; `null` before the second factor.
    pub person: Option<SignedPerson>,
    /// The person's company; `null` for an administrator of the installation.
    pub company: Option<SignedCompany>,
    /// Allowed methods, by module.
    #[schema(example = json!({"tickets": ["GET", "POST", "PUT"]}))]
    pub permissions: BTreeMap<String, BTreeSet<String>>,
    /// Whether the person has administrator rights.
    #[schema(example = false)]
    pub administers: bool,
    /// Whether the person sees cards assigned to others.
    #[schema(example = false)]
    pub sees_all_cards: bool,
    /// Whether a second factor is required.
    #[schema(example = false)]
    pub second_factor_required: bool,
}

/// A membership that matches the e-mail and password.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The company's id; `null` for the installation.
    pub company_id: Option<CompanyId>,
    /// The company's name; `null` for the installation.
    #[schema(example = "Acme")]
    pub company_name: Option<String>,
    /// Whether the membership is that of an administrator of the installation.
    #[schema(example = false)]
    pub admin: bool,
}

/// The kind of person.
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

/// A signed-in person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedPerson {
    /// A user or an administrator of the installation.
    pub kind: PersonKind,
    /// The user's or administrator's id.
    #[schema(example = 7)]
    pub id: i64,
    /// The person's name.
    #[schema(example = "Ana Souza")]
    pub name: String,
    /// E-mail address for signing in.
    #[schema(example = "ana@example.com")]
    pub email: String,
    /// The panel's language; `null` for the browser's.
    pub language: Option<Language>,
    /// Whether the person has a second factor.
    #[schema(example = false)]
    pub second_factor: bool,
}

/// The company of a signed-in person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedCompany {
    /// The company's id.
    pub id: CompanyId,
    /// The company's name.
    #[schema(example = "Acme")]
    pub name: String,
    /// The company's time zone.
    #[schema(example = "America/Sao_Paulo")]
    pub time_zone: String,
}

impl SignIn {
    /// The sign-in with a password that matches several memberships.
    pub(super) fn choose(choices: Vec<Membership>) -> Self {
        Self { choices, ..Self::without_person(SignInState::Choose) }
    }

    fn without_person(state: SignInState) -> Self {
        Self {
            state,
            choices: Vec::new(),
            person: None,
            company: None,
            permissions: BTreeMap::new(),
            administers: false,
            sees_all_cards: false,
            second_factor_required: false,
        }
    }

    /// The sign-in of a session.
    pub(super) fn of(app: &App, session: &SignedInPerson) -> Self {
        let state = match session.state {
            SessionState::SecondFactor => SignInState::SecondFactor,
            SessionState::Open if session.is_open() => SignInState::Open,
            SessionState::Open => SignInState::Enrol,
        };
        let mut sign_in = Self { second_factor_required: session.needs_factor, ..Self::without_person(state) };
        if state == SignInState::SecondFactor {
            return sign_in;
        }
        let person = session.person();
        sign_in.person = Some(SignedPerson {
            kind: PersonKind::of(person),
            id: person.id(),
            name: display_name(&session.name, &session.email).to_owned(),
            email: session.email.clone(),
            language: session.language,
            second_factor: session.has_factor,
        });
        if let PersonId::User(company, _) = person {
            sign_in.company = app.engine.directory().company(company).map(|organization| SignedCompany {
                id: company,
                name: organization.company.name.clone(),
                time_zone: organization.company.time_zone.clone(),
            });
        }
        sign_in.permissions = if person.is_admin() { everything() } else { session.permissions.0.clone() };
        sign_in.administers = session.administers;
        sign_in.sees_all_cards = session.sees_all_cards;
        sign_in
    }
}
