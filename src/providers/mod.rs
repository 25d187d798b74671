//! The providers of phone and social channels, called over HTTP: the cloud API for `whatsapp`, the send API for
//! `messenger` and `instagram`. All three are parts of Meta's Graph API.
//!
//! - <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages>
//! - <https://developers.facebook.com/docs/messenger-platform/reference/send-api>
//! - <https://developers.facebook.com/docs/messenger-platform/instagram/features/send-message>

mod failure;
mod file_kind;
pub mod graph;
pub mod media;
mod social;
mod whatsapp;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hotline_actors::channels::{Accepted, Delivery, Provider, SendFailure};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::{MessageError, MessageRow};

pub use self::file_kind::FileKind;
pub use self::graph::{Graph, GraphError};
use self::media::{MediaFiles, ProviderUploads};
pub use self::whatsapp::TEXT_SUFFIX;

/// The settings for calling providers.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// The URL of the Graph API, for channels without their own. Default: `https://graph.facebook.com`.
    pub url: String,
    /// The version of the Graph API, the first segment of every path. Default: `v23.0`.
    pub version: String,
    /// Timeout of a call, from connecting to the end of the response. Default: 30 seconds.
    pub call_time_max: Duration,
}

impl Default for ProviderOptions {
    fn default() -> Self {
        Self {
            url: "https://graph.facebook.com".to_owned(),
            version: "v23.0".to_owned(),
            call_time_max: Duration::from_secs(30),
        }
    }
}

/// All providers. Cheap to clone.
#[derive(Clone)]
pub struct Providers {
    graph: Graph,
    uploads: ProviderUploads,
}

impl Providers {
    /// Calls every provider through `graph`; reads the files of messages from `files`.
    pub fn new(graph: Graph, files: Arc<dyn MediaFiles>) -> Self {
        Self { graph, uploads: ProviderUploads::of(files) }
    }
}

impl Provider for Providers {
    fn forget_company(&self, company: CompanyId) {
        let Self { graph: _, uploads } = self;
        uploads.forget_company(company);
    }

    fn sends_text_separately(&self, kind: ChannelType, message: &MessageRow) -> bool {
        let Some(file) = message.media.as_ref().and_then(StoredMedia::of) else { return false };
        match kind {
            ChannelType::Whatsapp => whatsapp::sends_text_separately(message, &file.mime_type),
            ChannelType::Messenger | ChannelType::Instagram => !social::text_of(message).is_empty(),
            ChannelType::Webchat => false,
        }
    }

    fn send(&self, delivery: Delivery) -> BoxFuture<'static, Result<Accepted, SendFailure>> {
        let Self { graph, uploads } = self.clone();
        async move {
            match delivery.account.kind {
                ChannelType::Whatsapp => whatsapp::send(&graph, &uploads, &delivery).await,
                ChannelType::Messenger | ChannelType::Instagram => social::send(&graph, &uploads, &delivery).await,
                ChannelType::Webchat => Err(unsupported("a webchat has no provider")),
            }
        }
        .boxed()
    }
}

/// The failure of a message that no provider can accept.
fn unsupported(message: &str) -> SendFailure {
    SendFailure::Failed(MessageError { code: "ERR_UNSUPPORTED".to_owned(), message: message.to_owned() })
}
