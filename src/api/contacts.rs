//! Contacts: the people and groups a company talks to. Plain; sends and visitor sessions create them as well.

use actix_web::web::Data;
use hotline_persistence::tables::channels;
use hotline_persistence::tables::contacts::{
    self, ContactFilter, ContactRow, ContactTag, CustomFieldValue, LastChannel,
};
use hotline_persistence::{ChannelId, ContactId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::values::{Email, Name, Number, Search, Timestamp};
use crate::web::{Answer, ApiError, Caller, Filter, Listed, Params, PathId, Query, Shown};

/// A contact as shown.
#[derive(Debug, Serialize, ToSchema)]
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
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
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
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list: `search` looks into name, number, e-mail and code; `channelId` is the last channel.
pub struct Filters(ContactFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(ContactFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            number: query.filter::<Number>("number").map(|number| number.0),
            email: query.filter::<Email>("email").map(|email| email.0),
            tag_id: query.filter("tagId"),
            channel_id: query.filter("channelId"),
            origin: query.filter::<Name>("origin").map(|origin| origin.0),
            is_group: query.filter("isGroup"),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /contacts`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<Contact>> {
    let filter = query.filter.0;
    if let Some(channel) = filter.channel_id {
        check_channel(&caller, channel)?;
    }
    let db = app.engine.reads().tables(caller.company).await?;
    if let Some(tag) = filter.tag_id
        && !contacts::tag_exists(db, caller.company, tag).await?
    {
        return Err(ApiError::not_found());
    }
    let rows = contacts::list(db, caller.company, &filter, query.page).await?;
    Ok(Listed::of(query.page, rows, Contact::from))
}

/// `GET /contacts/{contactId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<ContactId>) -> Answer<Shown<Contact>> {
    let db = app.engine.reads().tables(caller.company).await?;
    let row = contacts::find(db, caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Shown::of(Contact::from(row)))
}

/// The channel is one of the company's.
pub(super) fn check_channel(caller: &Caller, id: ChannelId) -> Answer<&channels::ChannelRow> {
    caller.organization.channels.get(&id).ok_or_else(ApiError::not_found)
}
