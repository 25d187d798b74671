//! The placeholders of a template, which are filled with texts or compared with the components of a send.

use hotline_actors::FieldError;
use hotline_actors::variables::variable_names;
use serde_json::{Map, Value, json};

use super::error;
use crate::templates::Template;
use crate::web_address;

/// The placeholders of a template.
pub(super) struct Definition<'a> {
    header: Option<&'a Value>,
    body: Option<&'a Value>,
    buttons: Vec<Button>,
    /// Whether the template has parts that the simple form cannot fill: cards, an offer's expiry.
    needs_components: bool,
}

/// A button that takes a parameter.
struct Button {
    /// The button's index among all buttons of the template.
    index: usize,
    /// The `sub_type` of the button's component in a send.
    sub_type: &'static str,
}

impl<'a> Definition<'a> {
    pub(super) fn of(template: &'a Template) -> Self {
        let component = |kind| template.components.iter().find(|component| is_kind(component, kind));
        let buttons = component("buttons").and_then(|buttons| buttons["buttons"].as_array());
        let button = |(index, button): (usize, &Value)| {
            let sub_type = match keyword(&button["type"]).as_str() {
                "url" if !placeholders(&button["url"]).is_empty() => "url",
                // A one-time code is the parameter of a URL button.
                "otp" => "url",
                "copy_code" => "copy_code",
                _ => return None,
            };
            Some(Button { index, sub_type })
        };
        Self {
            header: component("header"),
            body: component("body"),
            buttons: buttons.into_iter().flatten().enumerate().filter_map(button).collect(),
            needs_components: component("carousel").is_some() || component("limited_time_offer").is_some(),
        }
    }

    pub(super) fn body_text(&self) -> Option<String> {
        self.body?["text"].as_str().map(str::to_owned)
    }

    /// Builds the components of a send from one text for each placeholder.
    pub(super) fn fill(
        &self,
        header: &[String],
        body: &[String],
        buttons: &[String],
        errors: &mut Vec<FieldError>,
    ) -> Vec<Value> {
        let mut components = Vec::new();
        if self.needs_components {
            errors.push(error("template.parameters", "cannot fill this template; use components instead"));
            return components;
        }
        components.extend(self.fill_header(header, errors));
        let body_placeholders = self.body.map(|body| placeholders(&body["text"])).unwrap_or_default();
        components.extend(fill_texts("body", &body_placeholders, body, errors));
        if check_count("buttons", self.buttons.len(), buttons, errors) {
            components.extend(self.buttons.iter().zip(buttons).map(|(button, text)| {
                let parameter = match button.sub_type {
                    "copy_code" => json!({"type": "coupon_code", "coupon_code": text}),
                    _ => json!({"type": "text", "text": text}),
                };
                let index = button.index.to_string();
                json!({"type": "button", "sub_type": button.sub_type, "index": index, "parameters": [parameter]})
            }));
        }
        components
    }

    fn fill_header(&self, values: &[String], errors: &mut Vec<FieldError>) -> Option<Value> {
        let format = self.header.map(|header| keyword(&header["format"])).unwrap_or_default();
        match format.as_str() {
            "image" | "video" | "document" => {
                if !check_count("header", 1, values, errors) {
                    return None;
                }
                let link = values.first()?;
                if !is_web_url(link) {
                    errors.push(error("template.parameters.header[0]", "must be an http or https URL"));
                    return None;
                }
                let media = json!({"link": link});
                Some(json!({"type": "header", "parameters": [{"type": format, format.as_str(): media}]}))
            }
            "location" => {
                errors.push(error("template.parameters", "cannot fill this template; use components instead"));
                None
            }
            _ => {
                let names = self.header.map(|header| placeholders(&header["text"])).unwrap_or_default();
                fill_texts("header", &names, values, errors)
            }
        }
    }

    /// Checks that the components of a send have the template's buttons, and as many parameters as it has placeholders.
    pub(super) fn check_components(&self, components: &[Map<String, Value>], errors: &mut Vec<FieldError>) {
        check_types(components, errors);
        let parameters_of = |kind: &str| {
            let is_of_kind =
                |component: &&Map<String, Value>| component.get("type").is_some_and(|value| keyword(value) == kind);
            let component = components.iter().enumerate().find(|(_, component)| is_of_kind(component));
            component.map(|(index, component)| {
                let count = component.get("parameters").and_then(Value::as_array).map_or(0, Vec::len);
                (format!("template.components[{index}].parameters"), count)
            })
        };
        let format = self.header.map(|header| keyword(&header["format"])).unwrap_or_default();
        let header_count = match format.as_str() {
            "" | "text" => self.header.map_or(0, |header| placeholders(&header["text"]).len()),
            _ => 1,
        };
        let body_count = self.body.map_or(0, |body| placeholders(&body["text"]).len());
        for (kind, expected) in [("header", header_count), ("body", body_count)] {
            let (field, count) = parameters_of(kind).unwrap_or_else(|| ("template.components".to_owned(), 0));
            if count != expected {
                errors.push(error(&field, &format!("must have {expected} parameters for the {kind}, not {count}")));
            }
        }
        self.check_buttons(components, errors);
    }

    fn check_buttons(&self, components: &[Map<String, Value>], errors: &mut Vec<FieldError>) {
        for button in &self.buttons {
            let is_present = components.iter().any(|component| {
                let index = component.get("index");
                let button_index = index.and_then(|index| index.as_u64().or_else(|| index.as_str()?.parse().ok()));
                component.get("type").is_some_and(|value| keyword(value) == "button")
                    && button_index == Some(button.index as u64)
            });
            if !is_present {
                let reason = format!("must have a button with the index {}", button.index);
                errors.push(error("template.components", &reason));
            }
        }
    }
}

/// Checks that each component of a send has a type.
pub(super) fn check_types(components: &[Map<String, Value>], errors: &mut Vec<FieldError>) {
    for (index, component) in components.iter().enumerate() {
        if !component.get("type").is_some_and(Value::is_string) {
            errors.push(error(&format!("template.components[{index}].type"), "is required"));
        }
    }
}

/// A component with text parameters; `None` if there are no placeholders, or not as many texts as placeholders.
fn fill_texts(kind: &str, names: &[&str], values: &[String], errors: &mut Vec<FieldError>) -> Option<Value> {
    if !check_count(kind, names.len(), values, errors) || names.is_empty() {
        return None;
    }
    let parameter = |(name, text): (&&str, &String)| {
        let mut parameter = json!({"type": "text", "text": text});
        if name.parse::<usize>().is_err() {
            parameter["parameter_name"] = json!(name);
        }
        parameter
    };
    let parameters: Vec<Value> = names.iter().zip(values).map(parameter).collect();
    Some(json!({"type": kind, "parameters": parameters}))
}

fn check_count(kind: &str, expected: usize, values: &[String], errors: &mut Vec<FieldError>) -> bool {
    let is_expected = values.len() == expected;
    if !is_expected {
        let reason = format!("must have {expected} items, one for each placeholder of the template's {kind}");
        errors.push(error(&format!("template.parameters.{kind}"), &reason));
    }
    is_expected
}

/// The distinct placeholders of a text: numbered ones in numerical order, named ones in order of occurrence.
fn placeholders(text: &Value) -> Vec<&str> {
    let mut placeholders: Vec<&str> = Vec::new();
    for name in variable_names(text.as_str().unwrap_or_default()) {
        if !placeholders.contains(&name) {
            placeholders.push(name);
        }
    }
    placeholders.sort_by_key(|name| name.parse::<usize>().unwrap_or(0));
    placeholders
}

fn is_kind(component: &Value, kind: &str) -> bool {
    keyword(&component["type"]) == kind
}

/// Normalizes a keyword of the provider, which uses capitals in definitions and lower case in sends.
fn keyword(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_lowercase()
}

fn is_web_url(text: &str) -> bool {
    web_address::parse(text).is_ok()
}
