//! `POST /webchat/sessions`: finds or creates the visitor's contact, and begins a session.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_actors::webchat::NewSession;
use hotline_actors::{FieldError, clock};
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::{self, ContactRow, Visitor};
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{ChannelId, CompanyId, ContactId, SessionId, key};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::Session;
use crate::api::contacts::check_channel;
use crate::app::App;
use crate::web::values::{CutText, Email, Name, Number};
use crate::web::{Answer, ApiError, Body, Caller, Created, Fields, Input, Once, Reply};

/// How often a visitor's contact is looked for anew because it was deleted meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// What a visitor's token begins with.
pub(crate) const TOKEN_PREFIX: &str = "vt_";

/// The body of `POST /webchat/sessions`.
pub struct OpenSession {
    channel_id: ChannelId,
    contact_id: Option<ContactId>,
    arrival: Arrival,
}

impl Input for OpenSession {
    const NAME: &'static str = "SessionOpen";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let channel_id = fields.required("channelId");
        let contact_id = fields.optional("contactId");
        let arrival = Arrival::read(fields)?;
        Some(Self { channel_id: channel_id?, contact_id, arrival })
    }
}

/// Who comes, and from where.
pub struct Arrival {
    visitor: Visitor,
    page: Option<Value>,
    utm: Option<Value>,
}

impl Input for Arrival {
    const NAME: &'static str = "VisitorSessionOpen";
    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut visitor = fields.object("visitor", read_visitor).unwrap_or_default();
        let page = fields.object("page", |fields| {
            let url = fields.optional::<CutText>("url").map(|text| text.0);
            let title = fields.optional::<CutText>("title").map(|text| text.0);
            let referrer = fields.optional::<CutText>("referrer").map(|text| text.0);
            Some((url.clone(), json!({"url": url, "title": title, "referrer": referrer})))
        });
        let utm = fields.object("utm", |fields| {
            let mut part = |name| fields.optional::<CutText>(name).map(|text| text.0);
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

fn read_visitor(fields: &mut Fields<'_>) -> Option<Visitor> {
    let number: Option<Number> = fields.optional("number");
    Some(Visitor {
        name: fields.optional::<Name>("name").map(|name| name.0),
        email: fields.optional::<Email>("email").map(|email| email.0),
        number_country: number.as_ref().and_then(Number::country),
        number: number.map(|number| number.0),
        external_id: fields.optional::<Name>("externalId").map(|id| id.0),
        ..Visitor::default()
    })
}

/// `POST /webchat/sessions`.
pub async fn open(caller: Caller, app: Data<App>, body: Body<OpenSession>, once: Once) -> Answer<Created<Session>> {
    let new = body.0;
    if check_channel(&caller, new.channel_id)?.kind != ChannelType::Webchat {
        let reason = "must be a webchat".to_owned();
        return Err(ApiError::validation(&[FieldError { field: "channelId".to_owned(), reason }]));
    }
    let (company, channel, contact) = (caller.company, new.channel_id, new.contact_id);
    let opening = Opening { app: &app, company, channel, contact, arrival: &new.arrival, once: &once };
    let show = |row: &SessionRow, contact: &ContactRow, token: &str| {
        Created::of(Session { token: Some(token.to_owned()), ..Session::of(row.clone(), contact.clone()) })
    };
    opening.begin(show).await
}

/// A session about to be opened.
pub(crate) struct Opening<'a> {
    pub(crate) app: &'a App,
    pub(crate) company: CompanyId,
    pub(crate) channel: ChannelId,
    /// Whom it is with; else what they say of themselves tells.
    pub(crate) contact: Option<ContactId>,
    pub(crate) arrival: &'a Arrival,
    pub(crate) once: &'a Once,
}

impl Opening<'_> {
    /// Begins it, and shows it with its contact and its token.
    pub(crate) async fn begin<T: Reply>(
        &self,
        show: impl Fn(&SessionRow, &ContactRow, &str) -> T + Clone + Send + Sync + 'static,
    ) -> Answer<T> {
        // A visitor is known by what they say of themselves: should their contact be deleted in this very moment, they
        // get another one. Any other contact is not found then.
        let is_identified = self.contact.is_none() && !self.arrival.visitor.is_anonymous();
        let attempts = if is_identified { ATTEMPTS_MAX } else { 1 };
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
    ) -> Answer<T> {
        let contact = self.find_contact().await?;
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
        };
        let show = move |row: &SessionRow| show(row, &contact, &token);
        self.once.live(show, |rider| self.app.engine.begin_session(NewSession { row, rider })).await
    }

    async fn find_contact(&self) -> Answer<ContactRow> {
        let (company, visitor) = (self.company, &self.arrival.visitor);
        let db = self.app.db(company);
        let id = match self.contact {
            Some(id) => id,
            // Nothing but the key tells a retry that this visitor was here.
            None if visitor.is_anonymous() => {
                let create =
                    async |db: &mut PgConnection| Ok(contacts::find_or_create_visitor(db, company, visitor).await?);
                self.once.part(db, "contact", create).await?
            }
            None => {
                let mut change = db.begin().await?;
                let id = contacts::find_or_create_visitor(change.connection()?, company, visitor).await?;
                change.commit().await?;
                id
            }
        };
        contacts::find(db, company, id).await?.ok_or_else(ApiError::not_found)
    }
}
