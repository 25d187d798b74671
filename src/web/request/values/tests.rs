use hotline_persistence::TicketId;

use super::*;

#[test]
fn a_number_loses_its_formatting_and_keeps_its_digits() {
    assert_eq!(Number::from_json(&json!("+55 (11) 98765-4321")), Ok(Number("5511987654321".to_owned())));
    for bad in ["1234567", "1234567890123456", "12345678a", "٣٤٥٦٧٨٩٠١"] {
        assert!(Number::from_json(&json!(bad)).is_err(), "{bad}");
    }
}

#[test]
fn the_country_is_the_one_whose_plan_matches_or_else_the_main_one_of_the_calling_code() {
    for (number, country) in [
        ("5511987654321", "BR"),
        ("447400123456", "GB"),
        // A mobile number of Guernsey.
        ("447911123456", "GG"),
        ("447700900000", "GB"),
        ("447781123456", "GG"),
        ("390612345678", "IT"),
        ("390669812345", "VA"),
        ("12025550123", "US"),
        ("14165550123", "CA"),
        ("77012345678", "KZ"),
        ("79161234567", "RU"),
        ("4930123456", "DE"),
    ] {
        assert_eq!(country_of(number).as_deref(), Some(country), "{number}");
    }
    for number in ["80012345678", "99912345678", "00000000"] {
        assert_eq!(country_of(number), None, "{number}");
    }
}

#[test]
fn blanks_around_the_id_of_an_option_are_part_of_it_and_count() {
    let longest = format!(" {} ", "x".repeat(9_998));
    for good in [" yes ", &longest] {
        assert_eq!(OptionId::from_json(&json!(good)), Ok(OptionId(good.to_owned())));
    }
    for bad in [json!(format!("{longest} ")), json!(" ".repeat(10_001)), json!("a\0"), json!(7)] {
        assert!(OptionId::from_json(&bad).is_err(), "{bad}");
    }
}

#[test]
fn text_postgres_cannot_store_is_refused() {
    assert!(Name::from_json(&json!("a\0b")).is_err());
    assert!(MessageBody::from_json(&json!("\0")).is_err());
}

#[test]
fn a_variable_key_is_not_the_name_of_a_built_in_variable() {
    for good in ["a", "Name", "opening_hours_2", &"x".repeat(60)] {
        assert_eq!(VariableKey::from_json(&json!(good)), Ok(VariableKey(good.to_owned())));
    }
    for bad in ["", "_a", "2a", "a-b", "a b", "é", "name", "greeting", &"x".repeat(61)] {
        assert!(VariableKey::from_json(&json!(bad)).is_err(), "{bad}");
    }
}

#[test]
fn options_are_names_without_duplicates() {
    let options = |value| Options::from_json(&value).map(|options| options.0);
    assert_eq!(options(json!([" Blue", "blue"])), Ok(vec!["Blue".to_owned(), "blue".to_owned()]));
    for bad in [
        json!("Blue"),
        json!({}),
        json!([1]),
        json!([" "]),
        json!(["a\nb"]),
        json!(["a\u{2028}b"]),
        json!(["Blue", "Blue "]),
        json!(["a b", "a\u{a0}b"]),
    ] {
        assert!(options(bad.clone()).is_err(), "{bad}");
    }
    let numbered_options = |count: usize| json!((0..count).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(options(numbered_options(200)).is_ok());
    assert!(options(numbered_options(201)).is_err());
}

#[test]
fn an_object_is_bounded_and_can_be_stored_and_read_back() {
    assert!(Object::from_json(&json!({"any": [{"shape": null}]})).is_ok());
    assert_eq!(Object::from_text(r#" {"a": 1} "#).map(|object| Value::Object(object.0)), Ok(json!({"a": 1})));
    for bad in [json!([]), json!("{}"), json!(7), json!({"a\0": 1}), json!({"a": [{"b": "\0"}]})] {
        assert!(Object::from_json(&bad).is_err(), "{bad}");
    }
    for bad in ["", "[]", "{", "x"] {
        assert!(Object::from_text(bad).is_err(), "{bad}");
    }
    // PostgreSQL writes these out in 309 digits, which parse as infinity.
    for unreadable in [json!({"a": f64::MAX}), json!({"a": [{"b": -1.797_693_134_862_315_7e308}]})] {
        assert!(Object::from_json(&unreadable).is_err(), "{unreadable}");
    }
    for readable in [json!({"a": 1e300}), json!({"a": -2.5e-300}), json!({"a": u64::MAX}), json!({"a": 0.1})] {
        assert!(Object::from_json(&readable).is_ok(), "{readable}");
    }
    let parse_large_numbers = |count: usize| Object::from_json(&json!({"a": vec![1e300; count]}));
    assert!(parse_large_numbers(200).is_ok() && parse_large_numbers(300).is_err(), "all digits without exponent count");
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    assert!(Object::from_json(&nested(64)).is_ok());
    assert!(Object::from_json(&nested(65)).is_err());
    // The braces, the key and the quotes count too.
    let object_of_bytes = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
    assert!(Object::from_json(&object_of_bytes(65_536)).is_ok());
    assert!(Object::from_json(&object_of_bytes(65_537)).is_err());
}

#[test]
fn an_id_is_an_integer_clamped_to_64_bits() {
    assert_eq!(TicketId::from_json(&json!(7)), Ok(TicketId::new(7)));
    assert_eq!(TicketId::from_json(&json!(7.0)), Ok(TicketId::new(7)));
    for bad in [json!("7"), json!(7.5), json!(null), json!([7])] {
        assert!(TicketId::from_json(&bad).is_err(), "{bad}");
    }
    // An id out of range is the largest or smallest one, which no record has.
    for too_large in [json!(9_223_372_036_854_775_808_u64), json!(u64::MAX), json!(1e30), json!(f64::MAX)] {
        assert_eq!(TicketId::from_json(&too_large), Ok(TicketId::new(i64::MAX)), "{too_large}");
    }
    assert_eq!(TicketId::from_json(&json!(-1e30)), Ok(TicketId::new(i64::MIN)));
    assert_eq!(TicketId::from_text("99999999999999999999"), Ok(TicketId::new(i64::MAX)));
    assert_eq!(TicketId::from_text("-99999999999999999999"), Ok(TicketId::new(i64::MIN)));
    assert!(TicketId::from_text("1e3").is_err());
}

#[test]
fn a_body_is_measured_in_bytes() {
    assert!(MessageBody::from_json(&json!("é".repeat(32_768))).is_ok());
    assert!(MessageBody::from_json(&json!("é".repeat(32_769))).is_err());
}
