//! News of a phone channel's account: its templates, its state, the quality and the limit of its numbers.
//!
//! | field | effect |
//! |---|---|
//! | `message_template_status_update` and the other fields of templates | cached templates are stale; a campaign with a template that may no longer be sent is paused |
//! | `account_update` | an account that can no longer send disconnects its channels; one that is enabled again connects them; restrictions are alerts |
//! | `account_alerts` | the last error of its channels |
//! | `phone_number_quality_update` | the quality and the messaging limit of the number's channel |
//!
//! <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference> has a page for each
//! field.

use std::collections::HashSet;

use hotline_persistence::tables::channels::{ChangedTemplate, ChannelQuality, PhoneNews};
use serde_json::Value;

use super::call::{AccountNewsKind, list, text, text_at};

/// Maximum characters of an alert.
const ALERT_CHARACTERS_MAX: usize = 500;

/// Why an account that the provider has disabled cannot send.
const DISABLED: &str = "the provider has disabled the account";

/// Parses a field of an account; `None` if it changes nothing here.
pub(super) fn parse(field: &str, value: &Value) -> Option<AccountNewsKind> {
    match field {
        "message_template_status_update"
        | "message_template_quality_update"
        | "template_category_update"
        | "message_template_components_update" => {
            Some(AccountNewsKind::Template(changed_template(field, value).map(Box::new)))
        }
        "account_update" => account_update(value),
        "account_alerts" => account_alert(value),
        "phone_number_quality_update" => phone_news(value),
        _ => None,
    }
}

/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/message_template_status_update>
fn changed_template(field: &str, value: &Value) -> Option<ChangedTemplate> {
    // The provider sends `NONE` if there is no reason.
    let reason = text(value, "reason").filter(|reason| reason != "NONE");
    Some(ChangedTemplate {
        name: text(value, "message_template_name")?,
        language: text(value, "message_template_language"),
        status: text(value, "event").filter(|_| field == "message_template_status_update"),
        category: text(value, "new_category"),
        quality: text(value, "new_quality_score"),
        reason,
    })
}

/// The account was disabled, enabled, restricted or deleted, or no longer belongs to the app. Other reports, such as
/// the result of a review, do not affect sending.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/account_update>
fn account_update(value: &Value) -> Option<AccountNewsKind> {
    let event = text(value, "event")?;
    let ban = text_at(value, "/ban_info/waba_ban_state");
    Some(match (event.as_str(), ban.as_deref()) {
        ("DISABLED_UPDATE", Some("DISABLE")) => AccountNewsKind::Disabled { reason: DISABLED },
        ("DISABLED_UPDATE", Some("REINSTATE")) => AccountNewsKind::Enabled { reason: DISABLED },
        ("DISABLED_UPDATE", Some("SCHEDULE_FOR_DISABLE")) => {
            AccountNewsKind::Alert { alert: "the provider is going to disable the account".to_owned() }
        }
        ("ACCOUNT_DELETED", _) => AccountNewsKind::Disabled { reason: "the account was deleted at the provider" },
        ("PARTNER_REMOVED" | "PARTNER_APP_UNINSTALLED", _) => {
            AccountNewsKind::Disabled { reason: "the account was disconnected at the provider" }
        }
        ("ACCOUNT_VIOLATION", _) => {
            let violation = text_at(value, "/violation_info/violation_type").unwrap_or(event);
            alert(&format!("the provider reports a violation: {violation}"))
        }
        ("ACCOUNT_RESTRICTION", _) => {
            let restrictions = list(value, "restriction_info").iter();
            let mut kinds: Vec<String> =
                restrictions.filter_map(|restriction| text(restriction, "restriction_type")).collect();
            let mut distinct_kinds = HashSet::new();
            kinds.retain(|kind| distinct_kinds.insert(kind.clone()));
            alert(&format!("the provider has restricted the account: {}", kinds.join(", ")))
        }
        _ => return None,
    })
}

/// An alert, unless it only informs.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/account_alerts>
fn account_alert(value: &Value) -> Option<AccountNewsKind> {
    // Earlier versions of the API have these fields at the top.
    let info = value.get("alert_info").unwrap_or(value);
    if text(info, "alert_severity").as_deref() == Some("INFORMATIONAL") {
        return None;
    }
    let description = text(info, "alert_description").or_else(|| text(info, "alert_type"))?;
    Some(alert(&format!("the provider warns: {description}")))
}

fn alert(text: &str) -> AccountNewsKind {
    AccountNewsKind::Alert { alert: text.chars().take(ALERT_CHARACTERS_MAX).collect() }
}

/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/phone_number_quality_update>
fn phone_news(value: &Value) -> Option<AccountNewsKind> {
    let quality = match text(value, "event").as_deref() {
        Some("FLAGGED") => Some(ChannelQuality::Low),
        Some("UNFLAGGED") => Some(ChannelQuality::Normal),
        _ => None,
    };
    let messaging_limit = text(value, "current_limit").or_else(|| text(value, "max_daily_conversations_per_business"));
    // A limit is one short word, such as `TIER_10K`.
    let messaging_limit = messaging_limit.filter(|limit| limit.len() <= 64);
    let news = PhoneNews { quality, messaging_limit };
    let number = text(value, "display_phone_number");
    let number = number.map(|number| number.chars().filter(char::is_ascii_digit).collect());
    (news != PhoneNews::default()).then_some(AccountNewsKind::Phone { number, news })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alert_that_only_informs_is_ignored() {
        let alert =
            |severity: &str| json!({"alert_severity": severity, "alert_type": "X", "alert_description": "Look."});
        assert_eq!(parse("account_alerts", &alert("INFORMATIONAL")), None);
        let expected = AccountNewsKind::Alert { alert: "the provider warns: Look.".to_owned() };
        assert_eq!(parse("account_alerts", &alert("WARNING")), Some(expected.clone()));
        assert_eq!(parse("account_alerts", &json!({"alert_info": alert("CRITICAL")})), Some(expected));
        assert_eq!(parse("account_alerts", &json!({"entity_type": "WABA"})), None);
    }

    #[test]
    fn the_quality_and_the_limit_of_a_number_are_read() {
        let value = json!({"display_phone_number": "+1 555-078-3881", "event": "FLAGGED", "current_limit": "TIER_50"});
        let news = PhoneNews { quality: Some(ChannelQuality::Low), messaging_limit: Some("TIER_50".to_owned()) };
        let number = Some("15550783881".to_owned());
        assert_eq!(parse("phone_number_quality_update", &value), Some(AccountNewsKind::Phone { number, news }));
        assert_eq!(parse("phone_number_quality_update", &json!({"event": "THROUGHPUT_UPGRADE"})), None);
    }
}
