//! Opening a session, with the contact of a verified visitor or with a new contact.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use chrono::{DateTime, Utc};
use hotline_actors::engine::{Identified, VisitorLock};
use hotline_actors::tickets::AttachedChanges;
use hotline_actors::webchat::NewSession;
use hotline_actors::{FieldError, clock};
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::{self, ContactRow, Visitor, VouchedContact};
use hotline_persistence::tables::events::current_author;
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{ChannelId, CompanyId, ContactId, SessionId, key};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::Session;
use crate::api::contacts::check_channel;
use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::web::request::values::{ContactName, Email, ExternalId, Number, TruncatedText};
use crate::web::response::reply::{Confidential, Reply};
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input};

/// Maximum number of attempts to open a session. An attempt fails if the contact is deleted before the session begins.
const ATTEMPTS_MAX: usize = 8;

/// The prefix of a visitor's token.
pub(crate) const TOKEN_PREFIX: &str = "vt_";

/// The body of `POST /webchat/sessions`.
pub struct OpenSessionBody {
    channel_id: ChannelId,
    contact_id: Option<ContactId>,
    arrival: Arrival,
}

impl Input for OpenSessionBody {
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

/// The visitor, and the page and campaign from which they come.
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
            let mut text = |name| fields.optional::<TruncatedText>(name).map(|text| text.0);
            Some([text("source"), text("medium"), text("campaign"), text("id")])
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
    /// An identity, with the page and the campaign of the arrival.
    fn with_source(&self, identity: &Visitor) -> Visitor {
        let Visitor { source_url, utm_source, utm_medium, utm_campaign, utm_id, .. } = self.visitor.clone();
        Visitor { source_url, utm_source, utm_medium, utm_campaign, utm_id, ..identity.clone() }
    }
}

fn read_visitor(fields: &mut Fields<'_>) -> Option<Visitor> {
    let number: Option<Number> = fields.optional("number");
    Some(Visitor {
        name: fields.optional::<ContactName>("name").map(|name| name.0),
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
    body: Body<OpenSessionBody>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Created<Session>>> {
    let body = body.0;
    if check_channel(&caller, body.channel_id)?.kind != ChannelType::Webchat {
        let reason = "must be a webchat".to_owned();
        return Err(ApiError::validation(&[FieldError { field: "channelId".to_owned(), reason }]));
    }
    let named_contact = body.contact_id;
    let identity = named_contact.map_or(VisitorIdentity::Described, VisitorIdentity::Contact);
    let (company, channel) = (caller.company, body.channel_id);
    let opener =
        SessionOpener { app: &app, company, channel, identity, arrival: &body.arrival, idempotency: &idempotency };
    let to_response = |row: &SessionRow, contact: &ContactRow, token: &str| {
        let session = Session { token: Some(token.to_owned()), ..Session::of(row.clone(), contact.clone()) };
        Confidential(Created::of(session))
    };
    let opened = opener.open(to_response).await;
    match named_contact {
        Some(contact) => merges::add_successor(&caller, &app, Mergeable::Contact(contact), opened).await,
        None => opened,
    }
}

/// Who a visitor is, and who asserts it.
pub(crate) enum VisitorIdentity {
    /// The company names the contact.
    Contact(ContactId),
    /// The company describes the visitor, and vouches for the description.
    Described,
    /// The company has signed the visitor's identity.
    Identified(Identified),
    /// Only the browser describes the visitor, with unverified claims. The visitor gets a new contact, or the one of
    /// an earlier anonymous session whose token they have.
    Unknown {
        /// The earlier session.
        earlier: Option<SessionRow>,
    },
}

/// All that is needed to open a session.
pub(crate) struct SessionOpener<'a> {
    pub(crate) app: &'a App,
    pub(crate) company: CompanyId,
    pub(crate) channel: ChannelId,
    pub(crate) identity: VisitorIdentity,
    pub(crate) arrival: &'a Arrival,
    pub(crate) idempotency: &'a Idempotency,
}

/// The contact of a session.
struct SessionContact {
    contact: ContactRow,
    /// Whether the contact may have had a session before.
    is_returning: bool,
    /// The lock on the contact's sessions, held until the new session has begun: for an unknown visitor who returns.
    lock: Option<VisitorLock>,
}

impl SessionOpener<'_> {
    /// Opens the session, and builds the response from it, its contact and its token.
    pub(crate) async fn open<T: Reply>(
        &self,
        to_response: impl Fn(&SessionRow, &ContactRow, &str) -> T + Clone + Send + Sync + 'static,
    ) -> ApiResult<T> {
        // If the contact is deleted before the session begins, another attempt finds or creates another contact. That
        // cannot help if the company names the contact, or if the idempotency key has recorded its id.
        let can_find_another = match &self.identity {
            VisitorIdentity::Contact(_) => false,
            VisitorIdentity::Described => !self.arrival.visitor.is_anonymous(),
            VisitorIdentity::Identified(_) | VisitorIdentity::Unknown { .. } => true,
        };
        let attempts = if can_find_another { ATTEMPTS_MAX } else { 1 };
        for _ in 1..attempts {
            match self.open_once(to_response.clone()).await {
                Err(error) if error.status == StatusCode::NOT_FOUND => {}
                outcome => return outcome,
            }
        }
        self.open_once(to_response).await
    }

    async fn open_once<T: Reply>(
        &self,
        to_response: impl Fn(&SessionRow, &ContactRow, &str) -> T + Clone + Send + Sync + 'static,
    ) -> ApiResult<T> {
        let SessionContact { contact, is_returning, lock } = self.find_contact().await?;
        let engine = &self.app.engine;
        let is_signed_in = matches!(self.identity, VisitorIdentity::Identified(_));
        // Two concurrent openings of a signed-in visitor continue in one session.
        let lock = match lock {
            None if is_signed_in => Some(engine.sessions.lock_visitor(self.company, contact.id).await),
            lock => lock,
        };
        let shown_from = if is_returning {
            engine.sessions.visible_from(self.company, self.channel, contact.id).await?
        } else {
            None
        };
        let token = key::new_key(TOKEN_PREFIX);
        let row = self.new_row(contact.id, &token, shown_from);
        let hash = key::hash(&token);
        let conversation = (self.company, self.channel, contact.id);
        let to_response = move |row: &SessionRow| to_response(row, &contact, &token);
        let begin = |attached_changes: Option<AttachedChanges<SessionRow>>| async move {
            // A signed-in visitor has one conversation in this webchat, which continues.
            if is_signed_in
                && let Some(session) = engine.sessions.admit(conversation, hash, attached_changes.clone()).await?
            {
                return Ok(session);
            }
            engine.sessions.begin(NewSession { row, attached: attached_changes }).await
        };
        let response = self.idempotency.command(to_response, begin).await;
        drop(lock);
        response
    }

    fn new_row(&self, contact: ContactId, token: &str, shown_from: Option<DateTime<Utc>>) -> SessionRow {
        let now = clock::now();
        SessionRow {
            company_id: self.company,
            id: SessionId::random(),
            channel_id: self.channel,
            contact_id: contact,
            ticket_id: None,
            status: SessionStatus::Active,
            token_hash: key::hash(token).to_vec(),
            page: self.arrival.page.clone(),
            utm: self.arrival.utm.clone(),
            created_at: now,
            last_seen_at: now,
            ended_at: None,
            verified: !matches!(self.identity, VisitorIdentity::Unknown { .. }),
            claimed: self.claim(),
            shown_from,
            token_hashes: Vec::new(),
            by: Some(current_author()),
        }
    }

    /// The claim of an unknown visitor; `None` for any other visitor.
    fn claim(&self) -> Option<Value> {
        let Visitor { name, email, number, external_id, .. } = &self.arrival.visitor;
        let is_unknown = matches!(self.identity, VisitorIdentity::Unknown { .. });
        is_unknown.then(|| json!({"name": name, "email": email, "number": number, "externalId": external_id}))
    }

    async fn find_contact(&self) -> ApiResult<SessionContact> {
        let Self { app, company, .. } = *self;
        let visitor = &self.arrival.visitor;
        match &self.identity {
            VisitorIdentity::Contact(id) => {
                let contact = self.read_contact(*id).await?;
                if !contact.verified {
                    app.engine.sessions.vouch(company, *id).await?;
                }
                app.engine.contacts.fill(company, &contact, &self.arrival.with_source(&Visitor::default())).await?;
                Ok(SessionContact { contact: self.read_contact(*id).await?, is_returning: true, lock: None })
            }
            VisitorIdentity::Described => {
                let VouchedContact { id, verified, is_new } = self.find_or_create_described().await?;
                if !verified {
                    app.engine.sessions.vouch(company, id).await?;
                }
                let contact = self.read_contact(id).await?;
                if is_new {
                    return Ok(SessionContact { contact, is_returning: false, lock: None });
                }
                app.engine.contacts.fill(company, &contact, visitor).await?;
                Ok(SessionContact { contact: self.read_contact(id).await?, is_returning: true, lock: None })
            }
            VisitorIdentity::Identified(identity) => {
                let identity = Identified { visitor: self.arrival.with_source(&identity.visitor), ..identity.clone() };
                let signed_in = app.engine.sessions.sign_in(company, &identity).await?;
                let contact = self.read_contact(signed_in.id).await?;
                Ok(SessionContact { contact, is_returning: !signed_in.is_new, lock: None })
            }
            VisitorIdentity::Unknown { earlier } => self.find_or_create_unknown(earlier.as_ref()).await,
        }
    }

    /// The contact of a visitor whom only the browser describes.
    async fn find_or_create_unknown(&self, earlier: Option<&SessionRow>) -> ApiResult<SessionContact> {
        let Self { app, company, .. } = *self;
        let visitor = &self.arrival.visitor;
        let previous = earlier.filter(|session| session.is_anonymous());
        if let Some(previous) = previous {
            // The contact must not become verified while a session of an unknown visitor begins with it.
            let lock = app.engine.sessions.lock_visitor(company, previous.contact_id).await;
            if contacts::is_verified(app.db(company), company, previous.contact_id).await? == Some(false) {
                let contact = self.read_contact(previous.contact_id).await?;
                let visitor = Visitor { name: visitor.name.clone(), ..self.arrival.with_source(&Visitor::default()) };
                app.engine.contacts.fill(company, &contact, &visitor).await?;
                let contact = self.read_contact(previous.contact_id).await?;
                return Ok(SessionContact { contact, is_returning: true, lock: Some(lock) });
            }
        }
        let create = async |db: &mut PgConnection| Ok(contacts::insert_unverified(db, company, visitor).await?);
        let id = self.idempotency.step(app.db(company), "contact", create).await?;
        Ok(SessionContact { contact: self.read_contact(id).await?, is_returning: false, lock: None })
    }

    /// The contact of a visitor whom the company describes.
    async fn find_or_create_described(&self) -> ApiResult<VouchedContact> {
        let (company, visitor) = (self.company, &self.arrival.visitor);
        let db = self.app.db(company);
        if !visitor.is_anonymous() {
            let mut transaction = db.begin().await?;
            let vouched = contacts::find_or_create_for_visitor(transaction.connection()?, company, visitor).await?;
            transaction.commit().await?;
            return Ok(vouched);
        }
        // Only the idempotency key lets a retry find the contact that was created for an anonymous visitor.
        let create =
            async |db: &mut PgConnection| Ok(contacts::find_or_create_for_visitor(db, company, visitor).await?.id);
        let id = self.idempotency.step(db, "contact", create).await?;
        Ok(VouchedContact { id, verified: true, is_new: true })
    }

    async fn read_contact(&self, id: ContactId) -> ApiResult<ContactRow> {
        contacts::find(self.app.db(self.company), self.company, id).await?.ok_or_else(ApiError::not_found)
    }
}
