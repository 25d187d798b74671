//! The text parameters of a template: their variables are filled in, and what the provider would refuse is refused.
//!
//! <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages#parameter-object>,
//! <https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes> (132005, 132018)

use serde_json::{Map, Value};

use super::fill::{ObjectFill, blank_error};
use crate::Refusal;

/// Maximum characters of a header's parameter.
const HEADER_CHARACTERS_MAX: usize = 60;

/// Maximum characters of a body's parameter: in a template with other components, and in one without.
const BODY_CHARACTERS_MAX: usize = 1024;
const ONLY_BODY_CHARACTERS_MAX: usize = 32_768;

/// Maximum spaces in a row.
const SPACES_MAX: usize = 4;

/// Visits the text parameters of a template, including those of its cards.
pub(super) fn visit_texts<'a>(value: &'a Value, visitor: &mut impl FnMut(&'a str)) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                if key == "parameters" {
                    let parameters = inner.as_array().into_iter().flatten();
                    let texts = parameters.filter(|parameter| is_text(parameter));
                    texts.filter_map(|parameter| parameter["text"].as_str()).for_each(&mut *visitor);
                } else {
                    visit_texts(inner, visitor);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| visit_texts(item, visitor)),
        _ => {}
    }
}

/// Fills in the variables of a template's parameters.
///
/// # Errors
/// When a parameter is blank, too long or has characters that the provider refuses; the refusal names the component. When
/// all parameters together are too long, it names the template.
pub(super) fn fill_in(template: &mut Value, object_fill: &mut ObjectFill<'_, '_>) -> Result<(), Refusal> {
    let Some(components) = template.get_mut("components").and_then(Value::as_array_mut) else { return Ok(()) };
    let has_only_body = components.len() == 1;
    components.iter_mut().try_for_each(|component| fill_value(component, has_only_body, object_fill))
}

fn fill_value(value: &mut Value, has_only_body: bool, object_fill: &mut ObjectFill<'_, '_>) -> Result<(), Refusal> {
    match value {
        Value::Object(component) => fill_component(component, has_only_body, object_fill),
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill_value(item, has_only_body, object_fill)),
        _ => Ok(()),
    }
}

fn fill_component(
    component: &mut Map<String, Value>,
    has_only_body: bool,
    object_fill: &mut ObjectFill<'_, '_>,
) -> Result<(), Refusal> {
    let kind = component.get("type").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    for (key, inner) in component {
        if key != "parameters" {
            fill_value(inner, has_only_body, object_fill)?;
            continue;
        }
        for (index, parameter) in inner.as_array_mut().into_iter().flatten().enumerate() {
            if !is_text(parameter) {
                continue;
            }
            let Some(Value::String(text)) = parameter.get_mut("text") else { continue };
            let field = match kind.as_str() {
                "header" | "body" => format!("template.parameters.{kind}[{index}]"),
                "button" => "template.parameters.buttons".to_owned(),
                _ => "template.parameters".to_owned(),
            };
            if text.contains("{{") {
                *text = object_fill.fill(text, &field)?;
                // The provider rejects blank parameters.
                if text.trim().is_empty() {
                    return Err(blank_error(&field));
                }
            }
            check_filled_text(text, &kind, has_only_body).map_err(|reason| Refusal::invalid(&field, &reason))?;
        }
    }
    Ok(())
}

/// Checks the characters of a parameter's text. Filling in variables removes no characters outside their braces, so
/// the text can also be checked before.
///
/// # Errors
/// The rule it breaks.
pub fn check_parameter_text(text: &str) -> Result<(), String> {
    if text.contains(['\n', '\r', '\t']) || text.contains(&" ".repeat(SPACES_MAX + 1)) {
        return Err(format!("must not contain line breaks, tabs or more than {SPACES_MAX} spaces in a row"));
    }
    Ok(())
}

/// Checks a parameter's text after its variables are filled in.
fn check_filled_text(text: &str, kind: &str, has_only_body: bool) -> Result<(), String> {
    check_parameter_text(text)?;
    let characters_max = match kind {
        "header" => HEADER_CHARACTERS_MAX,
        "body" if has_only_body => ONLY_BODY_CHARACTERS_MAX,
        "body" => BODY_CHARACTERS_MAX,
        _ => return Ok(()),
    };
    if text.chars().nth(characters_max).is_some() {
        return Err(format!("must have at most {characters_max} characters once its variables are filled in"));
    }
    Ok(())
}

fn is_text(parameter: &Value) -> bool {
    parameter["type"] == "text"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_the_provider_refuses_are_refused() {
        for text in ["a", "a    b", "ação #7", &"x".repeat(BODY_CHARACTERS_MAX)] {
            assert_eq!(check_filled_text(text, "body", false), Ok(()), "{text}");
        }
        for text in ["a\nb", "a\tb", "a\r", "a     b", &"é".repeat(BODY_CHARACTERS_MAX + 1)] {
            assert!(check_filled_text(text, "body", false).is_err(), "{text}");
        }
        assert_eq!(check_filled_text(&"é".repeat(ONLY_BODY_CHARACTERS_MAX), "body", true), Ok(()));
        assert!(check_filled_text(&"é".repeat(ONLY_BODY_CHARACTERS_MAX + 1), "body", true).is_err());
        assert_eq!(check_filled_text(&"é".repeat(HEADER_CHARACTERS_MAX), "header", false), Ok(()));
        assert!(check_filled_text(&"é".repeat(HEADER_CHARACTERS_MAX + 1), "header", false).is_err());
    }
}
