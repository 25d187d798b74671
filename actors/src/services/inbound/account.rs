//! What a provider reports about a channel's account: whether it can send, its templates, its quality and its
//! messaging limit.

use hotline_persistence::tables::channels::{self, ChangedTemplate, ChannelRow, PhoneNews};
use hotline_persistence::tables::events::{By, act_as};
use hotline_persistence::{ChannelId, CompanyId};

use super::Inbound;
use crate::Refusal;
use crate::clock::now;

impl Inbound {
    /// Disconnects a channel whose provider reports that its account can no longer send. Its messages stay queued.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn disconnect(&self, channel: &ChannelRow, reason: &str) -> Result<(), Refusal> {
        let (company, id) = (channel.company_id, channel.id);
        let Some(token) = channel.settings().ok().and_then(|settings| settings.access_token) else { return Ok(()) };
        let (db, keys) = (self.base.store.db(company), &self.base.store.keys);
        channels::record_token_refusal(db, keys, company, id, &token, reason).await?;
        tracing::warn!(channel.id = %id, company.id = %company, reason, "provider disabled a channel's account; its messages stay queued until it is connected again");
        self.base.refresh(company).await;
        Ok(())
    }

    /// Connects a channel again: its provider has enabled the account that it had disabled for this reason.
    ///
    /// # Errors
    /// As [`Self::disconnect`].
    pub async fn reinstate(&self, channel: &ChannelRow, reason: &str) -> Result<(), Refusal> {
        let company = channel.company_id;
        channels::reinstate(self.base.store.db(company), company, channel.id, reason).await?;
        self.base.refresh(company).await;
        Ok(())
    }

    /// Records an alert of a channel's provider.
    ///
    /// # Errors
    /// As [`Self::disconnect`].
    pub async fn record_alert(&self, channel: &ChannelRow, alert: &str) -> Result<(), Refusal> {
        let company = channel.company_id;
        channels::add_alert(self.base.store.db(company), company, channel.id, alert).await?;
        tracing::warn!(channel.id = %channel.id, company.id = %company, alert, "provider has sent an alert of a channel's account");
        self.base.refresh(company).await;
        Ok(())
    }

    /// Records the quality or the messaging limit that a provider reports for a channel's phone number.
    ///
    /// # Errors
    /// As [`Self::disconnect`].
    pub async fn record_phone_news(&self, channel: &ChannelRow, news: &PhoneNews) -> Result<(), Refusal> {
        let company = channel.company_id;
        channels::set_phone_news(self.base.store.db(company), company, channel.id, news).await?;
        self.base.refresh(company).await;
        Ok(())
    }

    /// Records that a provider has changed a template of these channels.
    ///
    /// # Errors
    /// As [`Self::disconnect`].
    pub async fn record_template_change(
        &self,
        company: CompanyId,
        channels: &[ChannelId],
        template: &ChangedTemplate,
    ) -> Result<(), Refusal> {
        let change = channels::add_template_change(self.base.store.db(company), company, channels, template, now());
        Ok(act_as(By::SYSTEM, change).await?)
    }
}
