//! Creating and changing a campaign that has not started.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::Refusal;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::campaigns::{self, Campaign, CampaignStatus};
use hotline_persistence::tables::channels::ChannelRow;
use hotline_persistence::tables::contact_lists::ContactListId;
use hotline_persistence::{CampaignId, ChannelId, Timestamp};
use serde_json::{Value, json};

use super::{check_unfinished_limit, status_conflict};
use crate::api::contacts::check_channel;
use crate::api::messages::build_template;
use crate::api::plain::BodyColumns;
use crate::app::App;
use crate::templates::TemplateRequest;
use crate::web::request::body;
use crate::web::request::values::{FromField, FutureTime, MessageBody, Name};
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, Patch, PathId};

/// Maximum rate, in messages per minute.
const RATE_MAX: i64 = 6000;

/// The rate of a campaign, in messages per minute.
struct Rate(i64);

impl FromField for Rate {
    fn from_json(value: &Value) -> Result<Self, String> {
        let rate = value.as_i64().filter(|rate| (1..=RATE_MAX).contains(rate));
        rate.map(Self).ok_or_else(|| format!("must be an integer from 1 to {RATE_MAX}"))
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": RATE_MAX, "default": 60, "example": 60})
    }
}

impl From<Rate> for Value {
    fn from(rate: Rate) -> Self {
        rate.0.into()
    }
}

/// The fields that the bodies of `POST` and `PUT` share.
struct CampaignInput {
    columns: Columns,
    list: Option<ContactListId>,
    channel: Option<ChannelId>,
    message: Option<MessageBody>,
    template: Option<TemplateRequest>,
    /// Whether `message` is `null` in the body.
    clears_message: bool,
    /// Whether `template` is `null` in the body.
    clears_template: bool,
}

impl CampaignInput {
    fn read(fields: &mut Fields<'_>, is_new: bool) -> Self {
        let list: Option<ContactListId> = read_field(fields, is_new, "contactListId");
        let channel: Option<ChannelId> = read_field(fields, is_new, "channelId");
        let scheduled_at: Option<FutureTime> = read_field(fields, is_new, "scheduledAt");
        let message = fields.patch::<MessageBody>("message");
        let clears_message = matches!(message, Patch::Null);
        let message = message.into_option().flatten();
        let template = fields.object("template", TemplateRequest::read);
        let clears_template = fields.is_null("template");
        match (fields.has_text("message"), fields.has("template")) {
            (true, true) => fields.refuse("template", "must not be given together with message"),
            (false, false) if is_new => fields.refuse("message", "is required, or template"),
            _ => {}
        }
        let mut body = if is_new { BodyColumns::new(fields) } else { BodyColumns::change(fields) };
        body.required::<Name>("name");
        body.defaulted::<Rate>("ratePerMinute");
        body.defaulted::<bool>("keepClosed");
        let mut columns = body.finish();
        for (field, id) in [("contactListId", list.map(Value::from)), ("channelId", channel.map(Value::from))] {
            if let Some(id) = id {
                columns.set(field, id);
            }
        }
        if let Some(FutureTime(time)) = scheduled_at {
            columns.set("scheduledAt", json!(Timestamp(time)));
        }
        Self { columns, list, channel, message, template, clears_message, clears_template }
    }

    /// Checks that a campaign still has a text or a template after the change.
    fn check_has_content(&self, current: &Campaign) -> ApiResult<()> {
        let has_new_content = self.message.is_some() || self.template.is_some();
        let clears_content = if current.template.is_some() { self.clears_template } else { self.clears_message };
        if has_new_content || !clears_content {
            return Ok(());
        }
        let field = if current.template.is_some() { "template" } else { "message" };
        Err(Refusal::invalid(field, "must not be null: the campaign would have nothing to send").into())
    }

    /// Takes over the campaign's template if the channel changes and the content does not. Another channel has its own
    /// template, even under the same name, so the template is built again.
    fn keep_template(&mut self, current: &Campaign) -> ApiResult<()> {
        let keeps_content = self.message.is_none() && self.template.is_none();
        if let Some(stored) = &current.template
            && self.channel.is_some()
            && keeps_content
        {
            self.template = Some(body::parse::<StoredTemplate>(stored.to_string().as_bytes())?.0);
        }
        Ok(())
    }

    /// Sets the columns of the content: a text clears the template, and a template clears the text. The template is
    /// built for the channel now, so that errors are reported to the caller.
    async fn set_content(&mut self, app: &App, channel: &ChannelRow) -> ApiResult<()> {
        if let Some(MessageBody(message)) = self.message.take() {
            self.columns.set("message", message);
            self.columns.set("template", Value::Null);
            self.columns.set("builtTemplate", Value::Null);
        } else if let Some(template) = self.template.take() {
            let built = build_template(app, channel, &template).await?;
            self.columns.set("message", Value::Null);
            self.columns.set("template", template.to_json());
            self.columns.set("builtTemplate", json!({"template": built.template, "text": built.text}));
        }
        Ok(())
    }
}

/// Reads a field that `POST` requires and `PUT` cannot clear.
fn read_field<T: FromField>(fields: &mut Fields<'_>, is_new: bool, name: &str) -> Option<T> {
    if is_new { fields.required(name) } else { fields.non_null(name) }
}

/// The body of `POST /campaigns`.
pub struct NewCampaign {
    input: CampaignInput,
    list: ContactListId,
    channel: ChannelId,
}

impl Input for NewCampaign {
    fn name() -> Cow<'static, str> {
        "CampaignCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let is_new = true;
        let input = CampaignInput::read(fields, is_new);
        Some(Self { list: input.list?, channel: input.channel?, input })
    }
}

/// The body of `PUT /campaigns/{campaignId}`.
pub struct ChangedCampaign(CampaignInput);

impl Input for ChangedCampaign {
    fn name() -> Cow<'static, str> {
        "CampaignUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let is_new = false;
        Some(Self(CampaignInput::read(fields, is_new)))
    }
}

/// A template as a campaign stores it.
struct StoredTemplate(TemplateRequest);

impl Input for StoredTemplate {
    fn name() -> Cow<'static, str> {
        "CampaignTemplate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        TemplateRequest::read(fields).map(Self)
    }
}

/// Builds a campaign's template from the channel's current templates: the provider may have changed, paused or deleted
/// the template since the campaign was written. Returns `None`, and the stored build stays, if the campaign has a text,
/// its channel no longer exists (then every recipient fails), or the channel's templates are unknown.
///
/// # Errors
/// `422` with every field that does not match the channel's templates.
pub(super) async fn rebuild_template(caller: &Caller, app: &App, campaign: &Campaign) -> ApiResult<Option<Value>> {
    let Some(stored) = &campaign.template else { return Ok(None) };
    let Ok(channel) = check_channel(caller, campaign.channel_id) else { return Ok(None) };
    let Ok(Some(_)) = app.templates.of(channel).await else { return Ok(None) };
    let template = body::parse::<StoredTemplate>(stored.to_string().as_bytes())?.0;
    let built = build_template(app, channel, &template).await?;
    Ok(Some(json!({"template": built.template, "text": built.text})))
}

/// `POST /campaigns`.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewCampaign>,
    idempotency: Idempotency,
) -> ApiResult<Created<Campaign>> {
    let (company, NewCampaign { mut input, list, channel }) = (caller.company, body.0);
    let channel = check_channel(&caller, channel)?;
    input.set_content(&app, channel).await?;
    let mut columns = input.columns;
    let author = caller.author();
    if let Some(integration) = author.integration {
        columns.set("integrationId", integration);
    }
    if let Some((user, _)) = author.user {
        columns.set("userId", user);
    }
    // After an error, dropping this reads and starts the company's campaigns: the new one may exist nevertheless.
    let start_guard = app.engine.campaigns.start_guard(company);
    let creation = idempotency.transaction(app.db(company), async |db| {
        check_unfinished_limit(db, company).await?;
        Ok(Created::of(campaigns::insert(db, company, list, &columns).await?))
    });
    let created: Created<Campaign> = match creation.await {
        Ok(created) => created,
        Err(error) => {
            // A refused creation was rolled back, so the company's campaigns need not be read again.
            if error.status.is_client_error() {
                start_guard.discard();
            }
            return Err(error);
        }
    };
    start_guard.start(created.0.id).await?;
    Ok(created)
}

/// `PUT /campaigns/{campaignId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<CampaignId>,
    body: Body<ChangedCampaign>,
    idempotency: Idempotency,
) -> ApiResult<Json<Campaign>> {
    let (company, id, ChangedCampaign(mut input)) = (caller.company, id.0, body.0);
    let channel = input.channel.map(|channel| check_channel(&caller, channel)).transpose()?;
    let _hold = app.engine.campaigns.hold(company, id).await?;
    let current: Option<Campaign> = table::find(app.db(company), company, id).await?;
    let current = current.ok_or_else(ApiError::not_found)?;
    check_scheduled(&current)?;
    input.check_has_content(&current)?;
    input.keep_template(&current)?;
    let has_new_template = input.template.is_some();
    if input.message.is_some() || has_new_template {
        let channel = match channel {
            Some(channel) => channel,
            None => check_channel(&caller, current.channel_id)?,
        };
        input.set_content(&app, channel).await?;
    }
    let CampaignInput { columns, list, .. } = input;
    idempotency
        .transaction(app.db(company), async |db| {
            let locked = campaigns::lock(db, company, id).await?;
            check_scheduled(&locked)?;
            if (has_new_template || channel.is_some())
                && (locked.channel_id, &locked.template) != (current.channel_id, &current.template)
            {
                // Another request has changed the values that this content was built from.
                return Err(ApiError::unavailable());
            }
            Ok(Json::of(campaigns::update(db, company, id, list, &columns).await?))
        })
        .await
}

/// Checks that the campaign has not started.
fn check_scheduled(campaign: &Campaign) -> ApiResult<()> {
    if campaign.status == CampaignStatus::Scheduled { Ok(()) } else { Err(status_conflict(campaign)) }
}
