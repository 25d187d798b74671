//! Every form of a send's template, built for templates of every kind.

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
        template("pending", "en_US", "PENDING", json!([])),
        template("picture", "en_US", "APPROVED", picture),
        template("named", "en_US", "APPROVED", named),
        template("cards", "en_US", "APPROVED", json!([{"type": "BODY", "text": "x"}, {"type": "CAROUSEL"}])),
        template("location", "en_US", "APPROVED", json!([{"type": "HEADER", "format": "LOCATION"}])),
    ]
}

/// Parses a body as the API does.
struct TemplateInput(TemplateRequest);

impl crate::web::Input for TemplateInput {
    fn name() -> std::borrow::Cow<'static, str> {
        "TemplateInput".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.object("template", TemplateRequest::read).map(Self)
    }
}

fn build(template_json: Value) -> Result<BuiltTemplate, Vec<FieldError>> {
    let body = json!({"template": template_json});
    let TemplateInput(request) = Fields::parse(&body, body.to_string().as_bytes()).expect("a valid body");
    request.build(&templates())
}

/// The fields that are refused.
fn invalid_fields(template_json: Value) -> Vec<String> {
    build(template_json).expect_err("refused").into_iter().map(|error| error.field).collect()
}

#[test]
fn texts_and_buttons_fill_the_placeholders() {
    let built = build(json!({"name": "shipped", "parameters": {
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
fn a_template_without_placeholders_needs_no_parameters() {
    for template_json in [
        json!({"name": "plain", "language": "pt_BR"}),
        json!({"name": "plain", "language": {"code": "pt_BR"}, "parameters": {}}),
        json!({"name": "plain", "language": "pt_BR", "parameters": {"body": []}}),
        json!({"name": "plain", "language": "pt_BR", "components": []}),
    ] {
        let built = build(template_json.clone()).unwrap_or_else(|errors| panic!("{template_json}: {errors:?}"));
        assert_eq!(built.template, json!({"name": "plain", "language": {"code": "pt_BR"}}), "{template_json}");
        assert_eq!(built.text.as_deref(), Some("Olá"));
    }
}

#[test]
fn a_picture_is_sent_by_its_url() {
    let built = build(json!({"name": "picture", "parameters": {"header": ["https://acme.example/a.png"]}}));
    let image = json!({"type": "image", "image": {"link": "https://acme.example/a.png"}});
    assert_eq!(built.expect("built").template["components"], json!([{"type": "header", "parameters": [image]}]));
    for url in ["a.png", "ftp://acme.example/a.png", "javascript:alert(1)", "https://"] {
        let template_json = json!({"name": "picture", "parameters": {"header": [url]}});
        assert_eq!(invalid_fields(template_json), ["template.parameters.header[0]"], "{url}");
    }
}

#[test]
fn named_placeholders_are_filled_in_their_order() {
    let built = build(json!({"name": "named", "parameters": {"body": ["Zoe", "Doe"]}})).expect("built");
    assert_eq!(
        built.template["components"][0]["parameters"],
        json!([
            {"type": "text", "text": "Zoe", "parameter_name": "first_name"},
            {"type": "text", "text": "Doe", "parameter_name": "last_name"},
        ])
    );
}

#[test]
fn an_error_names_each_field_that_does_not_match_the_template() {
    for (template_json, expected) in [
        (json!({"name": "unknown"}), vec!["template.name"]),
        (json!({"name": "pending"}), vec!["template.name"]),
        (json!({"name": "pending", "language": "en_US"}), vec!["template.name"]),
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
        (json!({"name": "location"}), vec!["template.parameters"]),
        (json!({"name": "named", "components": []}), vec!["template.components"]),
        (
            json!({"name": "named", "components": [{"type": "body", "parameters": [{"type": "text", "text": "x"}]}]}),
            vec!["template.components[0].parameters"],
        ),
        (json!({"name": "plain", "language": "pt_BR", "components": [{}]}), vec!["template.components[0].type"]),
    ] {
        assert_eq!(invalid_fields(template_json.clone()), expected, "{template_json}");
    }
}

#[test]
fn components_of_a_send_are_validated_and_not_changed() {
    let components = json!([
        {"type": "HEADER", "parameters": [{"type": "text", "text": "4711"}]},
        {"type": "body", "parameters": [{"type": "text", "text": "Zoe"}, {"type": "text", "text": "4711"}]},
        {"type": "button", "sub_type": "url", "index": 1, "parameters": [{"type": "text", "text": "4711"}]},
        {"type": "button", "sub_type": "copy_code", "index": "2",
         "parameters": [{"type": "coupon_code", "coupon_code": "A1"}]},
    ]);
    let template_json = json!({"name": "shipped", "language": {"code": "en_US"}, "components": components});
    assert_eq!(build(template_json).expect("built").template["components"], components);
    let mut fewer_components = components.as_array().expect("components").clone();
    fewer_components.pop();
    assert_eq!(invalid_fields(json!({"name": "shipped", "components": fewer_components})), ["template.components"]);
    let cards = json!([{"type": "carousel", "cards": []}]);
    assert!(build(json!({"name": "cards", "components": cards})).is_ok());
}

#[test]
fn an_error_lists_the_languages_to_choose_from() {
    let errors = build(json!({"name": "plain"})).expect_err("refused");
    assert_eq!(errors[0].reason, "is required: the template exists in en_US, pt_BR");
}
