use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::MessageType;
use serde_json::{Value, json};

use super::fill::{BODY_BYTES_MAX, ObjectFill, blank_error, fill};
use super::parameters;
use crate::variables::{Values, render};
use crate::{FieldError, Refusal};

/// Validates an interactive object.
pub type InteractiveCheck = fn(&Value) -> Vec<FieldError>;

/// The content of an outbound message. Its texts may contain variables.
#[derive(Clone, Debug)]
pub enum Content {
    /// A text.
    Text {
        /// The text.
        body: String,
    },
    /// Files, each a message of its own.
    Media {
        /// At least one, in order.
        files: Vec<StoredMedia>,
        /// The caption of the first file.
        caption: Option<String>,
    },
    /// A template the provider has approved.
    Template {
        /// In the provider's format: `name`, `language`, `components`.
        template: Value,
        /// The text of its body, with the provider's placeholders.
        text: Option<String>,
    },
    /// An interactive message.
    Interactive {
        /// In the provider's format.
        interactive: Value,
        /// The channel's validation, repeated once the variables are filled in.
        check: Option<InteractiveCheck>,
    },
}

/// One message of a [`Content`], with all variables filled in.
#[derive(Debug, PartialEq)]
pub(super) struct RenderedMessage {
    pub kind: MessageType,
    pub body: Option<String>,
    pub media: Option<Value>,
    pub template: Option<Value>,
    pub interactive: Option<Value>,
}

impl RenderedMessage {
    fn of(kind: MessageType, body: Option<String>) -> Self {
        Self { kind, body, media: None, template: None, interactive: None }
    }
}

impl Content {
    /// Whether it is a template. Templates may be sent at any time.
    pub fn is_template(&self) -> bool {
        matches!(self, Self::Template { .. })
    }

    /// Its files.
    pub fn files(&self) -> &[StoredMedia] {
        if let Self::Media { files, .. } = self { files } else { &[] }
    }

    /// Every text that may hold variables.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Text { body } => vec![body],
            Self::Media { caption, .. } => caption.iter().map(String::as_str).collect(),
            Self::Template { template, .. } => {
                let mut texts = Vec::new();
                parameters::visit_texts(template, &mut |text| texts.push(text));
                texts
            }
            Self::Interactive { interactive, .. } => {
                let paths = interactive_text_paths(interactive);
                paths.iter().filter_map(|path| interactive.pointer(path)?.as_str()).collect()
            }
        }
    }

    /// The messages of this content, with all variables filled in.
    pub(super) fn render(self, values: &Values<'_>) -> Result<Vec<RenderedMessage>, Refusal> {
        match self {
            Self::Text { body } => {
                let has_variables = body.contains("{{");
                let body = fill(body, "body", values)?;
                if has_variables && body.trim().is_empty() {
                    return Err(blank_error("body"));
                }
                Ok(vec![RenderedMessage::of(MessageType::Text, Some(body))])
            }
            Self::Media { files, caption } => {
                let caption = caption.map(|caption| fill(caption, "body", values)).transpose()?;
                let mut caption = caption.filter(|caption| !caption.trim().is_empty());
                let file_message = |file: StoredMedia| RenderedMessage {
                    media: Some(json!(file)),
                    ..RenderedMessage::of(MessageType::Media, caption.take())
                };
                Ok(files.into_iter().map(file_message).collect())
            }
            Self::Template { mut template, text } => {
                let mut object_fill = ObjectFill::new("template", values);
                parameters::fill_in(&mut template, &mut object_fill)?;
                object_fill.check_size(&template)?;
                let body = text.and_then(|text| template_body(&text, &template));
                Ok(vec![RenderedMessage {
                    template: Some(template),
                    ..RenderedMessage::of(MessageType::Template, body)
                }])
            }
            Self::Interactive { interactive, check } => Ok(vec![render_interactive(interactive, check, values)?]),
        }
    }
}

fn render_interactive(
    mut interactive: Value,
    check: Option<InteractiveCheck>,
    values: &Values<'_>,
) -> Result<RenderedMessage, Refusal> {
    let mut object_fill = ObjectFill::new("interactive", values);
    let mut has_variables = false;
    for path in interactive_text_paths(&interactive) {
        if let Some(Value::String(text)) = interactive.pointer_mut(&path)
            && text.contains("{{")
        {
            let field = format!("interactive{}", path.replace('/', "."));
            *text = object_fill.fill(text, &field)?;
            has_variables = true;
        }
    }
    let errors = check.filter(|_| has_variables).map(|check| check(&interactive)).unwrap_or_default();
    if !errors.is_empty() {
        return Err(Refusal::InteractiveInvalid(errors));
    }
    object_fill.check_size(&interactive)?;
    let body = interactive.pointer("/body/text").and_then(Value::as_str).map(str::to_owned);
    Ok(RenderedMessage { interactive: Some(interactive), ..RenderedMessage::of(MessageType::Interactive, body) })
}

/// JSON pointers to the texts of an interactive object that are filled in: its body, header and footer, and the bodies
/// of its cards. The choices are excluded: their texts identify them to the provider or a program.
fn interactive_text_paths(interactive: &Value) -> Vec<String> {
    let mut paths: Vec<String> = ["/header/text", "/body/text", "/footer/text"].map(str::to_owned).into();
    let cards = interactive.pointer("/action/cards").and_then(Value::as_array).map_or(0, Vec::len);
    paths.extend((0..cards).map(|index| format!("/action/cards/{index}/body/text")));
    paths
}

/// A template's text as the contact reads it: with the parameters of its body filled in.
fn template_body(text: &str, template: &Value) -> Option<String> {
    let is_body = |component: &&Value| component["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("body"));
    let body = template["components"].as_array().into_iter().flatten().find(is_body);
    let parameters: Vec<&Value> = body.and_then(|body| body["parameters"].as_array()).into_iter().flatten().collect();
    let value = |name: &str| {
        let by_name = parameters.iter().find(|parameter| parameter["parameter_name"] == name);
        let by_number = || name.parse::<usize>().ok()?.checked_sub(1).and_then(|index| parameters.get(index));
        by_name.or_else(by_number)?["text"].as_str().map(Into::into)
    };
    render(text, BODY_BYTES_MAX, value)
}
