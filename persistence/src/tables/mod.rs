//! The tables: one module per noun, with its row and the statements on it.

pub mod admins;
pub mod audit_log;
pub mod boards;
pub mod businesses;
pub mod by;
pub mod campaigns;
pub mod card_origins;
pub mod card_statuses;
pub mod cards;
pub mod cascades;
pub mod channels;
pub mod companies;
pub mod contact_lists;
pub mod contact_removal;
pub mod contacts;
pub mod custom_fields;
pub mod early_revisions;
pub mod early_statuses;
pub mod erasures;
pub mod events;
pub mod global_variables;
pub mod idempotency_keys;
pub mod installation_keys;
pub mod media;
pub mod merges;
pub mod messages;
pub mod organization;
pub mod people;
pub mod product_categories;
pub mod products;
pub mod profiles;
pub mod queues;
pub mod quick_messages;
pub mod removals;
pub mod reports;
pub mod retentions;
pub mod schedules;
pub mod secret_keys;
pub mod source;
pub mod tags;
pub mod ticket_events;
pub mod tickets;
pub mod tokens;
pub mod user_metrics;
pub mod users;
pub mod visible_cards;
pub mod webchat_sessions;
pub mod webhooks;
pub mod wrapup_categories;
pub mod wrapup_types;
pub(crate) mod zones;

/// An enum that is stored as text. A constraint of the table allows only these words.
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:tt),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, sqlx::Type, utoipa::ToSchema)]
        #[sqlx(type_name = "text")]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] #[sqlx(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in the order of the definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire and in the table.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl From<$name> for serde_json::Value {
            fn from(word: $name) -> Self {
                word.as_str().into()
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();
            fn from_str(word: &str) -> std::result::Result<Self, ()> {
                match word { $($word => Ok(Self::$variant),)+ _ => Err(()) }
            }
        }
    };
}
pub(crate) use text_enum;
