//! Templates, which a phone channel's provider has approved. Neither plain nor live: they belong to the provider, are
//! fetched from it and cached.

use actix_web::web::Data;
use hotline_persistence::ChannelId;
use hotline_persistence::select;

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
    Ok(Page::of(page, select::Page { rows, has_more }, |template| template))
}
