//! The options of e-mail and of the panel.

use clap::Args;
use lettre::message::Mailbox;

use super::values::mailbox;
use crate::mail::{MailOptions, Relay};
use crate::panel::PanelOptions;

/// E-mail, and how administrators sign in.
#[derive(Args, Clone, Debug)]
pub struct PanelArgs {
    /// SMTP server for invitations and password links; without it, administrators pass the links on. `smtp://` uses
    /// STARTTLS, `?tls=none` disables TLS. Requires --mail-from and --public-url
    #[arg(long, env = "HOTLINE_SMTP_URL", value_name = "smtps://USER:PASSWORD@HOST:PORT", hide_env_values = true)]
    pub smtp_url: Option<String>,
    /// Sender of e-mails
    #[arg(long, env = "HOTLINE_MAIL_FROM", value_name = "NAME <ADDRESS>", value_parser = mailbox)]
    pub mail_from: Option<Mailbox>,
    /// Require administrators of the installation to set up a second factor before they use the panel
    #[arg(long, env = "HOTLINE_REQUIRE_ADMIN_SECOND_FACTOR")]
    pub require_admin_second_factor: bool,
}

impl PanelArgs {
    /// The settings of the panel.
    ///
    /// # Errors
    /// When the relay's URL is invalid, or an option of mail is missing.
    pub(super) fn panel(&self, public_url: Option<&str>) -> Result<PanelOptions, String> {
        Ok(PanelOptions { mail: self.mail(public_url)?, admins_need_second_factor: self.require_admin_second_factor })
    }

    /// The relay, if there is one. Not parsed by clap, whose errors show the value, which may include a password.
    fn relay(&self) -> Result<Option<Relay>, String> {
        let url = self.smtp_url.as_deref().map(str::trim).filter(|url| !url.is_empty());
        url.map(|url| url.parse::<Relay>().map_err(|reason| format!("--smtp-url {reason}"))).transpose()
    }

    /// The settings of mail, if it is configured.
    fn mail(&self, public_url: Option<&str>) -> Result<Option<MailOptions>, String> {
        let Some(relay) = self.relay()? else { return Ok(None) };
        let from = self.mail_from.as_ref().ok_or("--smtp-url requires --mail-from, the sender of e-mails")?;
        // The `Host` of a request can be forged, and an e-mail must not contain a link to another host.
        if public_url.is_none() {
            return Err("--smtp-url requires --public-url, the start of the links in e-mails".to_owned());
        }
        Ok(Some(MailOptions::new(relay, from.clone())))
    }
}
