//! Opening a session, with the contact of a verified visitor or with a new contact.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_actors::engine::{Identified, VisitorTurn};
use hotline_actors::tickets::AttachedChanges;
use hotline_actors::webchat::NewSession;
use hotline_actors::{FieldError, clock};
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::{self, ContactRow, Visitor, Vouched};
use hotline_persistence::tables::events::current;
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{ChannelId, CompanyId, ContactId, SessionId, key};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::Session;
use crate::api::contacts::check_channel;
use crate::app::App;
use crate::web::values::{Email, ExternalId, Name, Number, TruncatedText};
use crate::web::{ApiError, ApiResult, Body, Caller, Confidential, Created, Fields, Idempotency, Input, Reply};

/// How often the visitor's contact is looked up again because it was deleted meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// The prefix of a visitor's token.
pub(crate) const TOKEN_PREFIX: &str = "vt_";

/// The body of `POST /webchat/sessions`.
pub struct OpenSession {
    channel_id: ChannelId,
    contact_id: Option<ContactId>,
    arrival: Arrival,
}

impl Input for OpenSession {
    fn name() -> Cow<'static, str> {
        "SessionOpen".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let channel_id = fields.required("channelId");
        let contact_id = fields.optional("contactId");
        let arrival = Arrival::read(fields)?;
        Some(Self { channel_id: channel_id?, contact_id, arrival })
    }
}

/// The visitor, and where they come from.
pub struct Arrival {
    visitor: Visitor,
    page: Option<Value>,
    utm: Option<Value>,
}

impl Input for Arrival {
    fn name() -> Cow<'static, str> {
        "VisitorSessionOpen".into()
    }
    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut visitor = fields.object("visitor", read_visitor).unwrap_or_default();
        let page = fields.object("page", |fields| {
            let url = fields.optional::<TruncatedText>("url").map(|text| text.0);
            let title = fields.optional::<TruncatedText>("title").map(|text| text.0);
            let referrer = fields.optional::<TruncatedText>("referrer").map(|text| text.0);
            Some((url.clone(), json!({"url": url, "title": title, "referrer": referrer})))
        });
        let utm = fields.object("utm", |fields| {
            let mut part = |name| fields.optional::<TruncatedText>(name).map(|text| text.0);
            Some([part("source"), part("medium"), part("campaign"), part("id")])
        });
        let (url, page) = page.unzip();
        visitor.source_url = url.flatten();
        let utm = utm.map(|[source, medium, campaign, id]| {
            visitor.utm_source.clone_from(&source);
            visitor.utm_medium.clone_from(&medium);
            visitor.utm_campaign.clone_from(&campaign);
            visitor.utm_id.clone_from(&id);
            json!({"source": source, "medium": medium, "campaign": campaign, "id": id})
        });
        Some(Self { visitor, page, utm })
    }
}

impl Arrival {
    /// Another person with this arrival's source.
    fn came_as(&self, who: &Visitor) -> Visitor {
        let Visitor { source_url, utm_source, utm_medium, utm_campaign, utm_id, .. } = self.visitor.clone();
        Visitor { source_url, utm_source, utm_medium, utm_campaign, utm_id, ..who.clone() }
    }
}

fn read_visitor(fields: &mut Fields<'_>) -> Option<Visitor> {
    let number: Option<Number> = fields.optional("number");
    Some(Visitor {
        name: fields.optional::<Name>("name").map(|name| name.0),
        email: fields.optional::<Email>("email").map(|email| email.0),
        number_country: number.as_ref().and_then(Number::country),
        number: number.map(|number| number.0),
        external_id: fields.optional::<ExternalId>("externalId").map(|id| id.0),
        ..Visitor::default()
    })
}

/// `POST /webchat/sessions`.
pub async fn open(
    caller: Caller,
    app: Data<App>,
    body: Body<OpenSession>,
    once: Idempotency,
) -> ApiResult<Confidential<Created<Session>>> {
    let new = body.0;
    if check_channel(&caller, new.channel_id)?.kind != ChannelType::Webchat {
        let reason = "must be a webchat".to_owned();
        return Err(ApiError::validation(&[FieldError { field: "channelId".to_owned(), reason }]));
    }
    let who = new.contact_id.map_or(Who::Described, Who::Contact);
    let (company, channel) = (caller.company, new.channel_id);
    let opening = Opening { app: &app, company, channel, who, arrival: &new.arrival, once: &once };
    let show = |row: &SessionRow, contact: &ContactRow, token: &str| {
        let session = Session { token: Some(token.to_owned()), ..Session::of(row.clone(), contact.clone()) };
        Confidential(Created::of(session))
    };
    opening.begin(show).await
}

/// Who a visitor is, and who asserts it.
pub(crate) enum Who {
    /// The company names the contact.
    Contact(ContactId),
    /// The company describes the visitor, and vouches for the description.
    Described,
    /// The company has signed the visitor's identity.
    Identified(Identified),
    /// Only the browser describes the visitor, which is a claim: they get a contact of their own. The holder of the
    /// token of an earlier anonymous session is the same unknown person.
    Unknown {
        /// The earlier session.
        earlier: Option<SessionRow>,
    },
}

/// A session about to be opened.
pub(crate) struct Opening<'a> {
    pub(crate) app: &'a App,
    pub(crate) company: CompanyId,
    pub(crate) channel: ChannelId,
    pub(crate) who: Who,
    pub(crate) arrival: &'a Arrival,
    pub(crate) once: &'a Idempotency,
}

/// The contact of a session.
struct Found {
    contact: ContactRow,
    /// Whether they may have had a session before.
    is_returning: bool,
    /// Locked until a session of an unknown visitor has begun.
    turn: Option<VisitorTurn>,
}

impl Opening<'_> {
    /// Opens the session, and builds the response from it, its contact and its token.
    pub(crate) async fn begin<T: Reply>(
        &self,
        show: impl Fn(&SessionRow, &ContactRow, &str) -> T + Clone + Send + Sync + 'static,
    ) -> ApiResult<T> {
        // If the contact is looked up or created, it may be deleted at this very moment; then the look-up is repeated
        // and finds another one. A contact that is named, or was created in a step of a request with a key, stays
        // missing.
        let is_looked_for = match &self.who {
            Who::Contact(_) => false,
            Who::Described => !self.arrival.visitor.is_anonymous(),
            Who::Identified(_) | Who::Unknown { .. } => true,
        };
        let attempts = if is_looked_for { ATTEMPTS_MAX } else { 1 };
        for _ in 1..attempts {
            match self.attempt(show.clone()).await {
                Err(error) if error.status == StatusCode::NOT_FOUND => {}
                outcome => return outcome,
            }
        }
        self.attempt(show).await
    }

    async fn attempt<T: Reply>(
        &self,
        show: impl Fn(&SessionRow, &ContactRow, &str) -> T + Clone + Send + Sync + 'static,
    ) -> ApiResult<T> {
        let Found { contact, is_returning, turn } = self.find().await?;
        let engine = &self.app.engine;
        let is_signed_in = matches!(self.who, Who::Identified(_));
        // Two openings at once continue in one session.
        let turn = match turn {
            None if is_signed_in => Some(engine.sessions.visitor_turn(self.company, contact.id).await),
            turn => turn,
        };
        let shown_from =
            if is_returning { engine.sessions.shown_from(self.company, self.channel, contact.id).await? } else { None };
        let token = key::new_key(TOKEN_PREFIX);
        let now = clock::now();
        let row = SessionRow {
            company_id: self.company,
            id: SessionId::random(),
            channel_id: self.channel,
            contact_id: contact.id,
            ticket_id: None,
            status: SessionStatus::Active,
            token_hash: key::hash(&token).to_vec(),
            page: self.arrival.page.clone(),
            utm: self.arrival.utm.clone(),
            created_at: now,
            last_seen_at: now,
            ended_at: None,
            verified: !matches!(self.who, Who::Unknown { .. }),
            claimed: self.claimed(),
            shown_from,
            token_hashes: Vec::new(),
            by: Some(current()),
        };
        let hash = key::hash(&token);
        let of = (self.company, self.channel, contact.id);
        let show = move |row: &SessionRow| show(row, &contact, &token);
        let begin = |attached: Option<AttachedChanges<SessionRow>>| async move {
            // Whoever is signed in has one conversation in this webchat, which continues.
            if is_signed_in && let Some(there) = engine.sessions.admit(of, hash, attached.clone()).await? {
                return Ok(there);
            }
            engine.sessions.begin(NewSession { row, attached }).await
        };
        let begun = self.once.command(show, begin).await;
        drop(turn);
        begun
    }

    /// The claim of an unknown visitor.
    fn claimed(&self) -> Option<Value> {
        let Visitor { name, email, number, external_id, .. } = &self.arrival.visitor;
        let is_unknown = matches!(self.who, Who::Unknown { .. });
        is_unknown.then(|| json!({"name": name, "email": email, "number": number, "externalId": external_id}))
    }

    async fn find(&self) -> ApiResult<Found> {
        let Self { app, company, .. } = *self;
        let visitor = &self.arrival.visitor;
        match &self.who {
            Who::Contact(id) => {
                let contact = self.read(*id).await?;
                if !contact.verified {
                    app.engine.sessions.vouch(company, *id).await?;
                }
                app.engine.contacts.fill(company, &contact, &self.arrival.came_as(&Visitor::default())).await?;
                Ok(Found { contact: self.read(*id).await?, is_returning: true, turn: None })
            }
            Who::Described => {
                let Vouched { id, verified, is_new } = self.described().await?;
                if !verified {
                    app.engine.sessions.vouch(company, id).await?;
                }
                let contact = self.read(id).await?;
                if is_new {
                    return Ok(Found { contact, is_returning: false, turn: None });
                }
                app.engine.contacts.fill(company, &contact, visitor).await?;
                Ok(Found { contact: self.read(id).await?, is_returning: true, turn: None })
            }
            Who::Identified(who) => {
                let who = Identified { visitor: self.arrival.came_as(&who.visitor), ..who.clone() };
                let signed_in = app.engine.sessions.identified(company, &who).await?;
                let contact = self.read(signed_in.id).await?;
                Ok(Found { contact, is_returning: !signed_in.is_new, turn: None })
            }
            Who::Unknown { earlier } => {
                let known = earlier.as_ref().filter(|session| session.is_anonymous());
                if let Some(known) = known {
                    // The contact must not become verified while a session of an unknown visitor begins with it.
                    let turn = app.engine.sessions.visitor_turn(company, known.contact_id).await;
                    if contacts::is_verified(app.db(company), company, known.contact_id).await? == Some(false) {
                        let contact = self.read(known.contact_id).await?;
                        let said = Visitor { name: visitor.name.clone(), ..self.arrival.came_as(&Visitor::default()) };
                        app.engine.contacts.fill(company, &contact, &said).await?;
                        let contact = self.read(known.contact_id).await?;
                        return Ok(Found { contact, is_returning: true, turn: Some(turn) });
                    }
                }
                let create = async |db: &mut PgConnection| Ok(contacts::insert_anonymous(db, company, visitor).await?);
                let id = self.once.step(app.db(company), "contact", create).await?;
                Ok(Found { contact: self.read(id).await?, is_returning: false, turn: None })
            }
        }
    }

    /// The contact of a visitor whom the company describes.
    async fn described(&self) -> ApiResult<Vouched> {
        let (company, visitor) = (self.company, &self.arrival.visitor);
        let db = self.app.db(company);
        if !visitor.is_anonymous() {
            let mut change = db.begin().await?;
            let found = contacts::find_or_create_visitor(change.connection()?, company, visitor).await?;
            change.commit().await?;
            return Ok(found);
        }
        // An anonymous visitor can be recognized on a retry only by the idempotency key.
        let create = async |db: &mut PgConnection| Ok(contacts::find_or_create_visitor(db, company, visitor).await?.id);
        let id = self.once.step(db, "contact", create).await?;
        Ok(Vouched { id, verified: true, is_new: true })
    }

    async fn read(&self, id: ContactId) -> ApiResult<ContactRow> {
        contacts::find(self.app.db(self.company), self.company, id).await?.ok_or_else(ApiError::not_found)
    }
}
