//! Contacts as the API returns them.

use hotline_persistence::tables::contacts::identities::{ContactIdentity, MergeSuggestion};
use hotline_persistence::tables::contacts::{ContactRow, ContactTag, CustomFieldValue, LastChannel};
use hotline_persistence::{ContactId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::web::response::reply::Versioned;

/// A contact: a person or group the company talks to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    pub id: ContactId,
    #[schema(example = "Maria Lima")]
    pub name: String,
    #[schema(example = "5511987654321")]
    pub number: Option<String>,
    /// Country code derived from the number.
    #[schema(example = "BR")]
    pub number_country: Option<String>,
    #[schema(example = "maria@example.com")]
    pub email: Option<String>,
    /// The company's own code for the contact.
    #[schema(example = "C-4711")]
    pub code: Option<String>,
    /// Tax number: 11 digits for a person, 14 for a company.
    #[schema(example = "52998224725")]
    pub cpf_cnpj: Option<String>,
    /// How the contact was acquired.
    #[schema(example = "fair")]
    pub origin: Option<String>,
    #[schema(example = "https://cdn.example.com/maria.jpg")]
    pub profile_pic_url: Option<String>,
    #[schema(example = false)]
    pub is_group: bool,
    /// User name on a social channel.
    #[schema(example = "maria.lima")]
    pub social_username: Option<String>,
    /// The provider's id for a contact whose number it hides.
    #[schema(example = "182736451029384")]
    pub lid: Option<String>,
    /// URL of the page or advertisement.
    #[schema(example = "https://shop.example.com/sale")]
    pub source_url: Option<String>,
    #[schema(example = "120210000000000000")]
    pub source_id: Option<String>,
    #[schema(example = "Summer sale")]
    pub headline: Option<String>,
    #[schema(example = "image")]
    pub media_type: Option<String>,
    #[schema(example = "https://cdn.example.com/sale.jpg")]
    pub media_url: Option<String>,
    #[schema(example = "newsletter")]
    pub utm_source: Option<String>,
    #[schema(example = "email")]
    pub utm_medium: Option<String>,
    #[schema(example = "summer")]
    pub utm_campaign: Option<String>,
    #[schema(example = "summer-2026")]
    pub utm_id: Option<String>,
    #[schema(example = "IwAR0example")]
    pub fbclid: Option<String>,
    #[schema(example = "Cj0KCexample")]
    pub gclid: Option<String>,
    #[schema(example = "ARAexample")]
    pub ctwa_clid: Option<String>,
    /// Whether a webchat visitor's identity was confirmed by the company or by an identity it signed.
    #[schema(example = false)]
    pub verified: bool,
    /// Whether the contact is excluded from campaigns.
    #[schema(example = false)]
    pub marketing_opt_out: bool,
    pub tags: Vec<ContactTag>,
    pub custom_fields: Vec<CustomFieldValue>,
    /// The channel of the latest message. Changes to it do not change `updatedAt`.
    pub last_channel: Option<LastChannel>,
    /// By what the contact is or was known: its number, and the ids that providers have of it. Former ones still find it.
    pub identities: Vec<ContactIdentity>,
    /// Other contacts that are the same person, as a provider says. They are never merged by themselves.
    pub merge_suggestions: Vec<MergeSuggestion>,
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
            verified: row.verified,
            marketing_opt_out: row.marketing_opt_out,
            tags: row.tags.0,
            custom_fields: row.custom_fields.0,
            last_channel: row.last_channel.map(|channel| channel.0),
            identities: row.identities.0,
            merge_suggestions: row.merge_suggestions.0,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

impl Versioned for Contact {
    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }
}
