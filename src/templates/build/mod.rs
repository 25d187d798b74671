//! Checks the template of a send against the channel's templates, and builds it in the provider's format. Pure
//! functions.

mod definition;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use hotline_actors::FieldError;
use hotline_actors::tickets::check_parameter_text;
use serde_json::{Map, Value, json};

use self::definition::Definition;
use super::Template;
use crate::web::Fields;
use crate::web::request::values::{FromField, Name, NonBlankText, Object};

/// Maximum number of parameters per component: no template has as many placeholders.
const PARAMETERS_MAX: usize = 50;

/// Maximum number of components of a built template: every kind of component occurs at most a few times.
const COMPONENTS_MAX: usize = 20;

/// Maximum number of languages listed to a caller who has to choose one.
const LANGUAGES_LISTED_MAX: usize = 20;

/// The `template` of a send.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateRequest {
    name: String,
    language: Option<String>,
    form: TemplateForm,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplateForm {
    /// Texts for the placeholders of each component; Hotline builds the rest.
    Simple { header: Vec<String>, body: Vec<String>, buttons: Vec<String> },
    /// Components in the provider's format.
    Components(Vec<Map<String, Value>>),
}

/// A template ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltTemplate {
    /// The template in the provider's format.
    pub template: Value,
    /// The text of the template's body, with the provider's placeholders; `None` if it is not known.
    pub text: Option<String>,
    /// Whether the template is a one-time code, which the provider sends to phone numbers only.
    /// <https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids>
    pub is_one_time_code: bool,
}

/// A language as a string, or in the provider's format: `{"code": …}`.
struct Language(String);

impl FromField for Language {
    fn from_json(value: &Value) -> Result<Self, String> {
        Name::from_json(value.get("code").unwrap_or(value)).map(|name| Self(name.0))
    }

    fn schema() -> Value {
        json!({
            "type": ["string", "object"],
            "description": "Optional if the template exists in one language only. Also accepts `{\"code\": …}`.",
            "example": "en_US",
        })
    }

    const IS_TEXT: bool = true;
}

impl TemplateRequest {
    /// Parses the object.
    pub fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required::<Name>("name");
        let language = fields.optional::<Language>("language").map(|language| language.0);
        let texts = |fields: &mut Fields<'_>, name: &str| {
            let texts = fields.list::<NonBlankText>(name, PARAMETERS_MAX).unwrap_or_default();
            for (index, text) in texts.iter().enumerate() {
                if let Err(reason) = check_parameter_text(&text.0) {
                    fields.refuse(&format!("{name}[{index}]"), &reason);
                }
            }
            texts.into_iter().map(|text| text.0).collect::<Vec<_>>()
        };
        let simple_form = fields.object("parameters", |fields| {
            let (header, body) = (texts(fields, "header"), texts(fields, "body"));
            Some(TemplateForm::Simple { header, body, buttons: texts(fields, "buttons") })
        });
        let components = fields.list::<Object>("components", COMPONENTS_MAX);
        if fields.has("parameters") && fields.has("components") {
            fields.refuse("components", "must not be given together with parameters");
        }
        let components_form = components
            .map(|components| TemplateForm::Components(components.into_iter().map(|object| object.0).collect()));
        let empty_form = TemplateForm::Simple { header: Vec::new(), body: Vec::new(), buttons: Vec::new() };
        Some(Self { name: name?.0, language, form: components_form.or(simple_form).unwrap_or(empty_form) })
    }

    /// The request as JSON, which [`TemplateRequest::read`] can parse again.
    pub fn to_json(&self) -> Value {
        let mut json = json!({"name": self.name});
        if let Some(language) = &self.language {
            json["language"] = json!(language);
        }
        match &self.form {
            TemplateForm::Simple { header, body, buttons } => {
                let texts = [("header", header), ("body", body), ("buttons", buttons)];
                let parameters = texts.into_iter().filter(|(_, texts)| !texts.is_empty());
                let parameters: Map<String, Value> =
                    parameters.map(|(name, texts)| (name.to_owned(), json!(texts))).collect();
                if !parameters.is_empty() {
                    json["parameters"] = Value::Object(parameters);
                }
            }
            TemplateForm::Components(components) => json["components"] = json!(components),
        }
        json
    }

    /// Builds the template in the provider's format.
    ///
    /// # Errors
    /// Every field that does not match the channel's templates.
    pub fn build(&self, templates: &[Template]) -> Result<BuiltTemplate, Vec<FieldError>> {
        let template = self.find_template(templates).map_err(|error| vec![error])?;
        let definition = Definition::of(template);
        let mut errors = Vec::new();
        let components = match &self.form {
            TemplateForm::Simple { header, body, buttons } => definition.fill(header, body, buttons, &mut errors),
            TemplateForm::Components(components) => {
                definition.check_components(components, &mut errors);
                components.iter().cloned().map(Value::Object).collect()
            }
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        let is_one_time_code = template.category.eq_ignore_ascii_case("AUTHENTICATION");
        let template = provider_format(&template.name, &template.language, components);
        Ok(BuiltTemplate { template, text: definition.body_text(), is_one_time_code })
    }

    /// Builds the template from the request alone, for a channel that is not connected and whose templates are not
    /// known. The provider checks it once the channel is connected.
    ///
    /// # Errors
    /// Every field that only the channel's templates could complete.
    pub fn build_unchecked(&self) -> Result<BuiltTemplate, Vec<FieldError>> {
        let mut errors = Vec::new();
        if self.language.is_none() {
            errors.push(error("template.language", "is required while the channel is not connected"));
        }
        let components = match &self.form {
            TemplateForm::Simple { header, body, buttons } => {
                if !(header.is_empty() && body.is_empty() && buttons.is_empty()) {
                    let reason = "cannot fill this template while the channel is not connected; use components instead";
                    errors.push(error("template.parameters", reason));
                }
                Vec::new()
            }
            TemplateForm::Components(components) => {
                definition::check_types(components, &mut errors);
                components.iter().cloned().map(Value::Object).collect()
            }
        };
        match &self.language {
            Some(language) if errors.is_empty() => {
                let template = provider_format(&self.name, language, components);
                Ok(BuiltTemplate { template, text: None, is_one_time_code: false })
            }
            _ => Err(errors),
        }
    }

    fn find_template<'a>(&self, templates: &'a [Template]) -> Result<&'a Template, FieldError> {
        let same_name: Vec<&Template> = templates.iter().filter(|template| template.name == self.name).collect();
        if same_name.is_empty() {
            return Err(error("template.name", "must be a template of the channel"));
        }
        let approved: Vec<&Template> = same_name.iter().copied().filter(|template| template.is_approved()).collect();
        let languages_of = |templates: &[&Template]| {
            let languages: BTreeSet<&str> = templates.iter().map(|template| template.language.as_str()).collect();
            languages.into_iter().take(LANGUAGES_LISTED_MAX).collect::<Vec<_>>().join(", ")
        };
        let not_approved = |template: &Template| {
            error("template.name", &format!("must be an approved template: this one is {}", template.status))
        };
        match (&self.language, approved.as_slice()) {
            (None, []) => Err(not_approved(same_name[0])),
            (None, [template]) => Ok(template),
            (None, candidates) => {
                let reason = format!("is required: the template exists in {}", languages_of(candidates));
                Err(error("template.language", &reason))
            }
            (Some(language), _) => match same_name.iter().find(|template| template.language == *language) {
                Some(template) if template.is_approved() => Ok(template),
                Some(template) => Err(not_approved(template)),
                None => Err(error("template.language", &format!("must be one of {}", languages_of(&same_name)))),
            },
        }
    }
}

fn provider_format(name: &str, language: &str, components: Vec<Value>) -> Value {
    let mut template = json!({"name": name, "language": {"code": language}});
    if !components.is_empty() {
        template["components"] = Value::Array(components);
    }
    template
}

fn error(field: &str, reason: &str) -> FieldError {
    FieldError { field: field.to_owned(), reason: reason.to_owned() }
}
