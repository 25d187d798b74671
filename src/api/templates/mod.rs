//! Templates: what a phone channel's provider has approved for any time. Neither plain nor live: they are the
//! provider's, fetched from there and kept for a while.

mod build;
mod cache;

use actix_web::web::Data;
use hotline_persistence::ChannelId;
use hotline_persistence::select;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use build::{Asked, Built};
pub use cache::{Options, Templates};

use super::contacts::check_channel;
use crate::app::App;
use crate::web::{Answer, Caller, Listed, PathId, Query};

/// A message the provider has looked at before anybody sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Template {
    /// With the language it names one template of the channel.
    #[schema(example = "order_shipped")]
    pub name: String,
    /// As the provider writes languages.
    #[schema(example = "en_US")]
    pub language: String,
    /// What it may be used for.
    #[serde(default)]
    #[schema(required = true, example = "UTILITY")]
    pub category: String,
    /// What the provider thinks of it.
    #[serde(default)]
    #[schema(required = true, example = "APPROVED")]
    pub status: String,
    /// Its parts, as the provider describes them.
    #[serde(default)]
    #[schema(required = true, value_type = Vec<Object>)]
    pub components: Vec<Value>,
}

impl Template {
    /// Whether it may be sent.
    pub fn is_approved(&self) -> bool {
        self.status.eq_ignore_ascii_case("approved")
    }
}

/// `GET /channels/{channelId}/templates`: those that may be sent, by name and language.
pub async fn list(caller: Caller, app: Data<App>, id: PathId<ChannelId>, query: Query<()>) -> Answer<Listed<Template>> {
    let channel = check_channel(&caller, id.0)?;
    let templates = app.templates.of(channel).await?;
    let page = query.page;
    let mut approved: Vec<&Template> = templates.iter().filter(|template| template.is_approved()).collect();
    approved.sort_by(|a, b| (&a.name, &a.language).cmp(&(&b.name, &b.language)));
    if page.descending {
        approved.reverse();
    }
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let before = usize::try_from(page.number - 1).unwrap_or(usize::MAX).saturating_mul(size);
    let rows: Vec<Template> = approved.iter().skip(before).take(size).map(|template| (*template).clone()).collect();
    let has_more = approved.len() > before.saturating_add(rows.len()) && !rows.is_empty();
    Ok(Listed::of(page, select::Listed { rows, has_more }, |template| template))
}
