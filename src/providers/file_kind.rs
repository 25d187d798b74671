//! The kinds of files that providers distinguish, and how large a file of each kind may be.
//!
//! - WhatsApp: <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media#supported-media-types>
//! - Messenger: <https://developers.facebook.com/docs/messenger-platform/reference/attachment-upload-api>
//! - Instagram: <https://developers.facebook.com/docs/messenger-platform/instagram/features/send-message>

use hotline_persistence::tables::channels::ChannelType;

const MIB: u64 = 1 << 20;

/// How a provider treats a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Image,
    Video,
    Audio,
    /// Everything else.
    Document,
}

impl FileKind {
    /// The kind of a file of this type on a channel. WhatsApp accepts few types as image, video or audio; the others
    /// are sent as documents.
    pub fn of(channel: ChannelType, mime_type: &str) -> Self {
        if channel == ChannelType::Whatsapp {
            return match mime_type {
                "image/jpeg" | "image/png" => Self::Image,
                "video/mp4" | "video/3gpp" => Self::Video,
                "audio/aac" | "audio/amr" | "audio/mpeg" | "audio/mp4" | "audio/ogg" => Self::Audio,
                _ => Self::Document,
            };
        }
        match mime_type.split('/').next() {
            Some("image") => Self::Image,
            Some("video") => Self::Video,
            Some("audio") => Self::Audio,
            _ => Self::Document,
        }
    }

    /// The most bytes that the channel's provider accepts of a file of this kind; `None`: the channel has no provider.
    pub fn bytes_max(self, channel: ChannelType) -> Option<u64> {
        let mib = match (channel, self) {
            (ChannelType::Webchat, _) => return None,
            (ChannelType::Whatsapp, Self::Image) => 5,
            (ChannelType::Whatsapp, Self::Video | Self::Audio) => 16,
            (ChannelType::Whatsapp, Self::Document) => 100,
            (ChannelType::Instagram, Self::Image) => 8,
            (ChannelType::Messenger | ChannelType::Instagram, _) => 25,
        };
        Some(mib * MIB)
    }

    /// The kind as API responses name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Document => "document",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatsapp_gets_unsupported_types_as_documents() {
        for (mime_type, whatsapp, messenger) in [
            ("image/png", FileKind::Image, FileKind::Image),
            ("image/gif", FileKind::Document, FileKind::Image),
            ("audio/ogg", FileKind::Audio, FileKind::Audio),
            ("audio/wav", FileKind::Document, FileKind::Audio),
            ("video/webm", FileKind::Document, FileKind::Video),
            ("application/pdf", FileKind::Document, FileKind::Document),
        ] {
            assert_eq!(FileKind::of(ChannelType::Whatsapp, mime_type), whatsapp, "{mime_type}");
            assert_eq!(FileKind::of(ChannelType::Messenger, mime_type), messenger, "{mime_type}");
        }
    }

    #[test]
    fn each_provider_has_a_limit_for_each_kind_and_a_webchat_has_none() {
        assert_eq!(FileKind::Image.bytes_max(ChannelType::Whatsapp), Some(5 * MIB));
        assert_eq!(FileKind::Document.bytes_max(ChannelType::Whatsapp), Some(100 * MIB));
        assert_eq!(FileKind::Image.bytes_max(ChannelType::Instagram), Some(8 * MIB));
        assert_eq!(FileKind::Video.bytes_max(ChannelType::Messenger), Some(25 * MIB));
        assert_eq!(FileKind::Image.bytes_max(ChannelType::Webchat), None);
    }
}
