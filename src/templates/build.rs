//! What a send asks of a template, compared with the template and built as the provider takes it. Pure.

use std::collections::BTreeSet;

use hotline_actors::FieldError;
use hotline_actors::variables::names;
use serde_json::{Map, Value, json};
use url::Url;

use super::Template;
use crate::web::Fields;
use crate::web::values::{FilledText, FromField, Name, Object};

/// Parameters of one component: more than any template has places.
const PARAMETERS_MAX: usize = 50;

/// Components of a built template: each kind a few times.
const COMPONENTS_MAX: usize = 20;

/// Languages named to a caller who has to choose one.
const LANGUAGES_NAMED_MAX: usize = 20;

/// The `template` of a send.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    name: String,
    language: Option<String>,
    form: Form,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// Texts for the places of each component; Hotline builds the rest.
    Simple { header: Vec<String>, body: Vec<String>, buttons: Vec<String> },
    /// As the provider takes it.
    Built(Vec<Map<String, Value>>),
}

/// A template ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// As the provider takes it.
    pub template: Value,
    /// The text of its body, with the provider's placeholders.
    pub text: Option<String>,
}

/// A language, by itself or as the provider has it: `{"code": …}`.
struct Language(String);

impl FromField for Language {
    fn from_json(value: &Value) -> Result<Self, String> {
        Name::from_json(value.get("code").unwrap_or(value)).map(|name| Self(name.0))
    }

    fn schema() -> Value {
        json!({
            "type": ["string", "object"],
            "description": "May be left out when the template exists in one language. Also `{\"code\": …}`.",
            "example": "en_US",
        })
    }

    const IS_TEXT: bool = true;
}

impl Asked {
    /// Reads the object.
    pub fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required::<Name>("name");
        let language = fields.optional::<Language>("language").map(|language| language.0);
        let texts = |fields: &mut Fields<'_>, name: &str| {
            let texts = fields.list::<FilledText>(name, PARAMETERS_MAX).unwrap_or_default();
            texts.into_iter().map(|text| text.0).collect::<Vec<_>>()
        };
        let simple = fields.object("parameters", |fields| {
            let (header, body) = (texts(fields, "header"), texts(fields, "body"));
            Some(Form::Simple { header, body, buttons: texts(fields, "buttons") })
        });
        let components = fields.list::<Object>("components", COMPONENTS_MAX);
        if fields.has("parameters") && fields.has("components") {
            fields.refuse("components", "must not be given together with parameters");
        }
        let built = components.map(|components| Form::Built(components.into_iter().map(|object| object.0).collect()));
        let none = Form::Simple { header: Vec::new(), body: Vec::new(), buttons: Vec::new() };
        Some(Self { name: name?.0, language, form: built.or(simple).unwrap_or(none) })
    }

    /// As it was asked for: what [`Asked::read`] reads again.
    pub fn written(&self) -> Value {
        let mut written = json!({"name": self.name});
        if let Some(language) = &self.language {
            written["language"] = json!(language);
        }
        match &self.form {
            Form::Simple { header, body, buttons } => {
                let texts = [("header", header), ("body", body), ("buttons", buttons)];
                let given = texts.into_iter().filter(|(_, texts)| !texts.is_empty());
                let given: Map<String, Value> = given.map(|(name, texts)| (name.to_owned(), json!(texts))).collect();
                if !given.is_empty() {
                    written["parameters"] = Value::Object(given);
                }
            }
            Form::Built(components) => written["components"] = json!(components),
        }
        written
    }

    /// The template as the provider takes it.
    ///
    /// # Errors
    /// Every field that does not fit the templates there are.
    pub fn build(&self, templates: &[Template]) -> Result<Built, Vec<FieldError>> {
        let found = self.find(templates).map_err(|error| vec![error])?;
        let definition = Definition::of(found);
        let mut errors = Vec::new();
        let components = match &self.form {
            Form::Simple { header, body, buttons } => definition.fill(header, body, buttons, &mut errors),
            Form::Built(components) => {
                definition.compare(components, &mut errors);
                components.iter().cloned().map(Value::Object).collect()
            }
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut template = json!({"name": found.name, "language": {"code": found.language}});
        if !components.is_empty() {
            template["components"] = Value::Array(components);
        }
        Ok(Built { template, text: definition.body_text() })
    }

    fn find<'a>(&self, templates: &'a [Template]) -> Result<&'a Template, FieldError> {
        let called: Vec<&Template> = templates.iter().filter(|template| template.name == self.name).collect();
        if called.is_empty() {
            return Err(error("template.name", "must be a template of the channel"));
        }
        let approved: Vec<&Template> = called.iter().copied().filter(|template| template.is_approved()).collect();
        let languages = |of: &[&Template]| {
            let languages: BTreeSet<&str> = of.iter().map(|template| template.language.as_str()).collect();
            languages.into_iter().take(LANGUAGES_NAMED_MAX).collect::<Vec<_>>().join(", ")
        };
        let not_approved = |template: &Template| {
            error("template.name", &format!("must be an approved template: this one is {}", template.status))
        };
        match (&self.language, approved.as_slice()) {
            (None, []) => Err(not_approved(called[0])),
            (None, [one]) => Ok(one),
            (None, several) => {
                let reason = format!("is required: the template exists in {}", languages(several));
                Err(error("template.language", &reason))
            }
            (Some(language), _) => match called.iter().find(|template| template.language == *language) {
                Some(template) if template.is_approved() => Ok(template),
                Some(template) => Err(not_approved(template)),
                None => Err(error("template.language", &format!("must be one of {}", languages(&called)))),
            },
        }
    }
}

/// What a template has places for.
struct Definition<'a> {
    header: Option<&'a Value>,
    body: Option<&'a Value>,
    buttons: Vec<Button>,
    /// Parts that the simple form cannot fill: cards, an offer's end.
    is_beyond_simple: bool,
}

/// A button that takes a parameter.
struct Button {
    /// Its place among the template's buttons.
    index: usize,
    /// The word for it in a send.
    sub_type: &'static str,
}

impl<'a> Definition<'a> {
    fn of(template: &'a Template) -> Self {
        let component = |kind| template.components.iter().find(|component| is_kind(component, kind));
        let buttons = component("buttons").and_then(|buttons| buttons["buttons"].as_array());
        let button = |(index, button): (usize, &Value)| {
            let sub_type = match word(&button["type"]).as_str() {
                "url" if !places(&button["url"]).is_empty() => "url",
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
            is_beyond_simple: component("carousel").is_some() || component("limited_time_offer").is_some(),
        }
    }

    fn body_text(&self) -> Option<String> {
        self.body?["text"].as_str().map(str::to_owned)
    }

    /// The components of a send with these texts.
    fn fill(&self, header: &[String], body: &[String], buttons: &[String], errors: &mut Vec<FieldError>) -> Vec<Value> {
        let mut components = Vec::new();
        if self.is_beyond_simple {
            errors.push(error("template.parameters", "cannot fill this template: give its components"));
            return components;
        }
        components.extend(self.fill_header(header, errors));
        let names = self.body.map(|body| places(&body["text"])).unwrap_or_default();
        components.extend(texts("body", &names, body, errors));
        if counted("buttons", self.buttons.len(), buttons, errors) {
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

    fn fill_header(&self, given: &[String], errors: &mut Vec<FieldError>) -> Option<Value> {
        let format = self.header.map(|header| word(&header["format"])).unwrap_or_default();
        match format.as_str() {
            "image" | "video" | "document" => {
                if !counted("header", 1, given, errors) {
                    return None;
                }
                let link = given.first()?;
                if !is_web(link) {
                    errors.push(error("template.parameters.header[0]", "must be an http or https URL"));
                    return None;
                }
                let media = json!({"link": link});
                Some(json!({"type": "header", "parameters": [{"type": format, format.as_str(): media}]}))
            }
            "location" => {
                errors.push(error("template.parameters", "cannot fill this template: give its components"));
                None
            }
            _ => {
                let names = self.header.map(|header| places(&header["text"])).unwrap_or_default();
                texts("header", &names, given, errors)
            }
        }
    }

    /// Whether built components have as many parameters as the template has places.
    fn compare(&self, components: &[Map<String, Value>], errors: &mut Vec<FieldError>) {
        for (index, component) in components.iter().enumerate() {
            if !component.get("type").is_some_and(Value::is_string) {
                errors.push(error(&format!("template.components[{index}].type"), "is required"));
            }
        }
        let given = |kind: &str| {
            let is_it = |component: &&Map<String, Value>| component.get("type").is_some_and(|said| word(said) == kind);
            let found = components.iter().enumerate().find(|(_, component)| is_it(component));
            found.map(|(index, component)| {
                let count = component.get("parameters").and_then(Value::as_array).map_or(0, Vec::len);
                (format!("template.components[{index}].parameters"), count)
            })
        };
        let format = self.header.map(|header| word(&header["format"])).unwrap_or_default();
        let of_header = match format.as_str() {
            "" | "text" => self.header.map_or(0, |header| places(&header["text"]).len()),
            _ => 1,
        };
        let of_body = self.body.map_or(0, |body| places(&body["text"]).len());
        for (kind, expected) in [("header", of_header), ("body", of_body)] {
            let (field, count) = given(kind).unwrap_or_else(|| ("template.components".to_owned(), 0));
            if count != expected {
                errors.push(error(&field, &format!("must have {expected} parameters for the {kind}, not {count}")));
            }
        }
        for button in &self.buttons {
            let is_given = components.iter().any(|component| {
                let index = component.get("index");
                let said = index.and_then(|index| index.as_u64().or_else(|| index.as_str()?.parse().ok()));
                component.get("type").is_some_and(|said| word(said) == "button") && said == Some(button.index as u64)
            });
            if !is_given {
                let reason = format!("must have a button with the index {}", button.index);
                errors.push(error("template.components", &reason));
            }
        }
    }
}

/// A component whose places are texts; none when it has no place.
fn texts(kind: &str, names: &[&str], given: &[String], errors: &mut Vec<FieldError>) -> Option<Value> {
    if !counted(kind, names.len(), given, errors) || names.is_empty() {
        return None;
    }
    let parameter = |(name, text): (&&str, &String)| {
        let mut parameter = json!({"type": "text", "text": text});
        if name.parse::<usize>().is_err() {
            parameter["parameter_name"] = json!(name);
        }
        parameter
    };
    let parameters: Vec<Value> = names.iter().zip(given).map(parameter).collect();
    Some(json!({"type": kind, "parameters": parameters}))
}

fn counted(kind: &str, expected: usize, given: &[String], errors: &mut Vec<FieldError>) -> bool {
    let is_right = given.len() == expected;
    if !is_right {
        let reason = format!("must have {expected} items, as many as the template's {kind} has places");
        errors.push(error(&format!("template.parameters.{kind}"), &reason));
    }
    is_right
}

/// The places of a text, each once: numbered ones by their number, named ones as they come.
fn places(text: &Value) -> Vec<&str> {
    let mut places: Vec<&str> = Vec::new();
    for name in names(text.as_str().unwrap_or_default()) {
        if !places.contains(&name) {
            places.push(name);
        }
    }
    places.sort_by_key(|name| name.parse::<usize>().unwrap_or(0));
    places
}

fn is_kind(component: &Value, kind: &str) -> bool {
    word(&component["type"]) == kind
}

/// A word of the provider's, which writes them in capitals where it tells and small where it is told.
fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_lowercase()
}

fn is_web(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn error(field: &str, reason: &str) -> FieldError {
    FieldError { field: field.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(name: &str, language: &str, status: &str, components: Value) -> Template {
        let components = components.as_array().expect("components").clone();
        let [name, language, status] = [name, language, status].map(str::to_owned);
        Template { name, language, category: "UTILITY".to_owned(), status, components }
    }

    fn templates() -> Vec<Template> {
        let shipped = json!([
            {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"},
            {"type": "BODY", "text": "Hi {{1}}, order {{2}} of {{1}} is on its way."},
            {"type": "FOOTER", "text": "Acme"},
            {"type": "BUTTONS", "buttons": [
                {"type": "QUICK_REPLY", "text": "Thanks"},
                {"type": "URL", "text": "Track", "url": "https://acme.example/{{1}}"},
                {"type": "COPY_CODE", "example": "A1"},
            ]},
        ]);
        let picture = json!([{"type": "HEADER", "format": "IMAGE"}, {"type": "BODY", "text": "New!"}]);
        let named = json!([{"type": "BODY", "text": "Hi {{first_name}}, bye {{last_name}}"}]);
        vec![
            template("shipped", "en_US", "APPROVED", shipped),
            template("plain", "en_US", "APPROVED", json!([{"type": "BODY", "text": "Hello"}])),
            template("plain", "pt_BR", "APPROVED", json!([{"type": "BODY", "text": "Olá"}])),
            template("plain", "fr", "REJECTED", json!([{"type": "BODY", "text": "Salut"}])),
            template("waiting", "en_US", "PENDING", json!([])),
            template("picture", "en_US", "APPROVED", picture),
            template("named", "en_US", "APPROVED", named),
            template("cards", "en_US", "APPROVED", json!([{"type": "BODY", "text": "x"}, {"type": "CAROUSEL"}])),
            template("place", "en_US", "APPROVED", json!([{"type": "HEADER", "format": "LOCATION"}])),
        ]
    }

    /// The way a body is read.
    struct Sent(Asked);

    impl crate::web::Input for Sent {
        fn name() -> std::borrow::Cow<'static, str> {
            "Sent".into()
        }

        fn read(fields: &mut Fields<'_>) -> Option<Self> {
            fields.object("template", Asked::read).map(Self)
        }
    }

    fn built(asked: Value) -> Result<Built, Vec<FieldError>> {
        let body = json!({"template": asked});
        let Sent(asked) = Fields::parse(&body, body.to_string().as_bytes()).expect("it is read");
        asked.build(&templates())
    }

    fn fields(asked: Value) -> Vec<String> {
        built(asked).expect_err("refused").into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn texts_and_buttons_are_put_into_their_places() {
        let built = built(json!({"name": "shipped", "parameters": {
            "header": ["4711"], "body": ["Zoe", "4711"], "buttons": ["track/4711", "CODE"],
        }}));
        let built = built.expect("built");
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            built.template,
            json!({"name": "shipped", "language": {"code": "en_US"}, "components": [
                {"type": "header", "parameters": [text("4711")]},
                {"type": "body", "parameters": [text("Zoe"), text("4711")]},
                {"type": "button", "sub_type": "url", "index": "1", "parameters": [text("track/4711")]},
                {"type": "button", "sub_type": "copy_code", "index": "2",
                 "parameters": [{"type": "coupon_code", "coupon_code": "CODE"}]},
            ]})
        );
        assert_eq!(built.text.as_deref(), Some("Hi {{1}}, order {{2}} of {{1}} is on its way."));
    }

    #[test]
    fn a_template_without_places_needs_no_parameters() {
        for asked in [
            json!({"name": "plain", "language": "pt_BR"}),
            json!({"name": "plain", "language": {"code": "pt_BR"}, "parameters": {}}),
            json!({"name": "plain", "language": "pt_BR", "parameters": {"body": []}}),
            json!({"name": "plain", "language": "pt_BR", "components": []}),
        ] {
            let built = built(asked.clone()).unwrap_or_else(|errors| panic!("{asked}: {errors:?}"));
            assert_eq!(built.template, json!({"name": "plain", "language": {"code": "pt_BR"}}), "{asked}");
            assert_eq!(built.text.as_deref(), Some("Olá"));
        }
    }

    #[test]
    fn a_picture_is_given_by_its_address() {
        let built = built(json!({"name": "picture", "parameters": {"header": ["https://acme.example/a.png"]}}));
        let image = json!({"type": "image", "image": {"link": "https://acme.example/a.png"}});
        assert_eq!(built.expect("built").template["components"], json!([{"type": "header", "parameters": [image]}]));
        for bad in ["a.png", "ftp://acme.example/a.png", "javascript:alert(1)", "https://"] {
            let asked = json!({"name": "picture", "parameters": {"header": [bad]}});
            assert_eq!(fields(asked), ["template.parameters.header[0]"], "{bad}");
        }
    }

    #[test]
    fn named_places_are_filled_in_their_order() {
        let built = built(json!({"name": "named", "parameters": {"body": ["Zoe", "Doe"]}})).expect("built");
        assert_eq!(
            built.template["components"][0]["parameters"],
            json!([
                {"type": "text", "text": "Zoe", "parameter_name": "first_name"},
                {"type": "text", "text": "Doe", "parameter_name": "last_name"},
            ])
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (asked, expected) in [
            (json!({"name": "nobody's"}), vec!["template.name"]),
            (json!({"name": "waiting"}), vec!["template.name"]),
            (json!({"name": "waiting", "language": "en_US"}), vec!["template.name"]),
            (json!({"name": "plain", "language": "fr"}), vec!["template.name"]),
            (json!({"name": "plain"}), vec!["template.language"]),
            (json!({"name": "plain", "language": "de"}), vec!["template.language"]),
            (
                json!({"name": "plain", "language": "pt_BR", "parameters": {"body": ["x"]}}),
                vec!["template.parameters.body"],
            ),
            (
                json!({"name": "shipped"}),
                vec!["template.parameters.header", "template.parameters.body", "template.parameters.buttons"],
            ),
            (
                json!({"name": "shipped", "parameters": {"header": ["1"], "body": ["1", "2", "3"], "buttons": ["1", "2"]}}),
                vec!["template.parameters.body"],
            ),
            (json!({"name": "picture"}), vec!["template.parameters.header"]),
            (json!({"name": "cards"}), vec!["template.parameters"]),
            (json!({"name": "place"}), vec!["template.parameters"]),
            (json!({"name": "named", "components": []}), vec!["template.components"]),
            (
                json!({"name": "named", "components": [{"type": "body", "parameters": [{"type": "text", "text": "x"}]}]}),
                vec!["template.components[0].parameters"],
            ),
            (json!({"name": "plain", "language": "pt_BR", "components": [{}]}), vec!["template.components[0].type"]),
        ] {
            assert_eq!(fields(asked.clone()), expected, "{asked}");
        }
    }

    #[test]
    fn built_components_are_counted_and_kept_as_they_are() {
        let components = json!([
            {"type": "HEADER", "parameters": [{"type": "text", "text": "4711"}]},
            {"type": "body", "parameters": [{"type": "text", "text": "Zoe"}, {"type": "text", "text": "4711"}]},
            {"type": "button", "sub_type": "url", "index": 1, "parameters": [{"type": "text", "text": "4711"}]},
            {"type": "button", "sub_type": "copy_code", "index": "2",
             "parameters": [{"type": "coupon_code", "coupon_code": "A1"}]},
        ]);
        let asked = json!({"name": "shipped", "language": {"code": "en_US"}, "components": components});
        assert_eq!(built(asked).expect("built").template["components"], components);
        let mut fewer = components.as_array().expect("components").clone();
        fewer.pop();
        assert_eq!(fields(json!({"name": "shipped", "components": fewer})), ["template.components"]);
        let cards = json!([{"type": "carousel", "cards": []}]);
        assert!(built(json!({"name": "cards", "components": cards})).is_ok());
    }

    #[test]
    fn languages_are_named_to_who_has_to_choose() {
        let errors = built(json!({"name": "plain"})).expect_err("refused");
        assert_eq!(errors[0].reason, "is required: the template exists in en_US, pt_BR");
    }
}
