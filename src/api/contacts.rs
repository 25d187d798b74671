//! Contacts: the people and groups a company talks to. Plain; sends and visitor sessions create them as well.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_persistence::tables::channels;
use hotline_persistence::tables::contacts::{
    self, ContactFilter, ContactRow, ContactTag, CustomFieldValue, LastChannel,
};
use hotline_persistence::{ChannelId, ContactId};
use serde::Serialize;

use crate::app::App;
use crate::web::values::{Email, Name, Number, Search, timestamp};
use crate::web::{Answer, ApiError, Caller, PageQuery, Params, PathId, data, listed};

/// A contact as shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Contact {
    pub id: ContactId,
    pub name: String,
    pub number: Option<String>,
    pub number_country: Option<String>,
    pub email: Option<String>,
    pub code: Option<String>,
    pub cpf_cnpj: Option<String>,
    pub origin: Option<String>,
    pub profile_pic_url: Option<String>,
    pub is_group: bool,
    pub social_username: Option<String>,
    pub lid: Option<String>,
    pub source_url: Option<String>,
    pub source_id: Option<String>,
    pub headline: Option<String>,
    pub media_type: Option<String>,
    pub media_url: Option<String>,
    pub utm_source: Option<String>,
    pub utm_medium: Option<String>,
    pub utm_campaign: Option<String>,
    pub utm_id: Option<String>,
    pub fbclid: Option<String>,
    pub gclid: Option<String>,
    pub ctwa_clid: Option<String>,
    pub tags: Vec<ContactTag>,
    pub custom_fields: Vec<CustomFieldValue>,
    pub last_channel: Option<LastChannel>,
    pub created_at: String,
    pub updated_at: String,
}

impl From<ContactRow> for Contact {
    fn from(row: ContactRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            number: row.number,
            number_country: row.number_country,
            email: row.email,
            code: row.code,
            cpf_cnpj: row.cpf_cnpj,
            origin: row.origin,
            profile_pic_url: row.profile_pic_url,
            is_group: row.is_group,
            social_username: row.social_username,
            lid: row.lid,
            source_url: row.source_url,
            source_id: row.source_id,
            headline: row.headline,
            media_type: row.media_type,
            media_url: row.media_url,
            utm_source: row.utm_source,
            utm_medium: row.utm_medium,
            utm_campaign: row.utm_campaign,
            utm_id: row.utm_id,
            fbclid: row.fbclid,
            gclid: row.gclid,
            ctwa_clid: row.ctwa_clid,
            tags: row.tags.0,
            custom_fields: row.custom_fields.0,
            last_channel: row.last_channel.map(|channel| channel.0),
            created_at: timestamp(row.created_at),
            updated_at: timestamp(row.updated_at),
        }
    }
}

/// `GET /contacts`. Filters: `search` (name, number, email, code), `number`, `email`, `tagId`, `channelId` (last
/// channel), `origin`, `isGroup`, `createdFrom/To`, `updatedFrom/To`.
pub async fn list(caller: Caller, app: Data<App>, mut query: Params) -> Answer<HttpResponse> {
    let page = query.page();
    let filter = ContactFilter {
        search: query.filter::<Search>("search").map(|text| text.0),
        number: query.filter::<Number>("number").map(|number| number.0),
        email: query.filter::<Email>("email").map(|email| email.0),
        tag_id: query.filter("tagId"),
        channel_id: query.filter("channelId"),
        origin: query.filter::<Name>("origin").map(|origin| origin.0),
        is_group: query.filter("isGroup"),
        created: query.span("created"),
        updated: query.span("updated"),
    };
    query.done()?;
    if let Some(channel) = filter.channel_id {
        check_channel(&caller, channel)?;
    }
    let db = app.engine.reads().tables(caller.company).await?;
    if let Some(tag) = filter.tag_id
        && !contacts::tag_exists(db, caller.company, tag).await?
    {
        return Err(ApiError::not_found());
    }
    let rows = contacts::list(db, caller.company, &filter, page).await?;
    Ok(listed(page, rows, Contact::from))
}

/// `GET /contacts/{contactId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<ContactId>) -> Answer<HttpResponse> {
    let db = app.engine.reads().tables(caller.company).await?;
    let row = contacts::find(db, caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(data(StatusCode::OK, Contact::from(row)))
}

/// The channel is one of the company's.
pub(super) fn check_channel(caller: &Caller, id: ChannelId) -> Answer<&channels::ChannelRow> {
    caller.organization.channels.get(&id).ok_or_else(ApiError::not_found)
}
