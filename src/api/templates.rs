//! Templates of phone channels. Neither plain nor live: they belong to the provider, which approves them, and are
//! fetched from it and cached.

use std::sync::Arc;

use actix_web::web::Data;
use hotline_persistence::ChannelId;
use hotline_persistence::select::Position;
use hotline_persistence::tables::channels::ChannelStatus;

use super::contacts::check_channel;
use crate::app::App;
use crate::templates::Template;
use crate::web::{ApiError, ApiResult, Caller, Filter, Page, Params, PathId, Query};

/// Filters of the list.
pub struct Filters {
    /// Whether templates that may not be sent are listed as well.
    includes_unapproved: bool,
}

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self { includes_unapproved: query.filter("all").unwrap_or(false) }
    }
}

/// `GET /channels/{channelId}/templates`: the templates that may be sent, ordered by name and language.
pub async fn list(
    caller: Caller,
    app: Data<App>,
    id: PathId<ChannelId>,
    query: Query<Filters>,
) -> ApiResult<Page<Template>> {
    let channel = check_channel(&caller, id.0)?;
    let templates: Arc<[Template]> = match app.templates.of(channel).await? {
        Some(templates) => templates,
        // The templates of a channel that is not connected may be unknown.
        None if channel.status == ChannelStatus::Error => return Err(ApiError::unavailable()),
        None => Arc::new([]),
    };
    let is_listed = |template: &&Template| query.filter.includes_unapproved || template.is_approved();
    let mut listed: Vec<Template> = templates.iter().filter(is_listed).cloned().collect();
    listed.sort_by(|a, b| (&a.name, &a.language).cmp(&(&b.name, &b.language)));
    // No language contains a line break, so no two templates share a position.
    let position = |template: &Template| format!("{}\n{}", template.name, template.language);
    let after = query.after.and_then(|after| match after {
        Position::Name(name) => Some(name),
        Position::Id(_) | Position::Time(_) => None,
    });
    Ok(Page::of_complete_list(query.page, after, listed, position))
}
