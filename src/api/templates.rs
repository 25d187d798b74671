//! Templates, which a phone channel's provider has approved. Neither plain nor live: they belong to the provider, are
//! fetched from it and cached.

use actix_web::web::Data;
use hotline_persistence::ChannelId;

use super::contacts::check_channel;
use crate::app::App;
use crate::templates::Template;
use crate::web::{ApiResult, Caller, Page, PathId, Query};

/// `GET /channels/{channelId}/templates`: the templates that may be sent, by name and language.
pub async fn list(
    caller: Caller,
    app: Data<App>,
    id: PathId<ChannelId>,
    query: Query<()>,
) -> ApiResult<Page<Template>> {
    let channel = check_channel(&caller, id.0)?;
    let templates = app.templates.of(channel).await?;
    let mut approved: Vec<Template> = templates.iter().filter(|template| template.is_approved()).cloned().collect();
    approved.sort_by(|a, b| (&a.name, &a.language).cmp(&(&b.name, &b.language)));
    // No language contains a line break, so no two templates share a position.
    let position = |template: &Template| format!("{}\n{}", template.name, template.language);
    Ok(Page::of_all(query.page, query.after_name, approved, position))
}
