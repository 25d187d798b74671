//! Whatever a signed call contains, it is answered with `200`, and later calls are taken as before.

use hotline_persistence::tables::channels::ChannelType::{Instagram, Messenger};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use super::{MARIA, ProviderChannel, Setup, Tally, all_taken, messages};
use crate::support::TestApp;
use crate::support::provider::hooks::{button_reply, contacts, events, image, location, reaction, signature, text};

/// Calls generated for each channel, from a fixed seed, so that a failure repeats.
const CALLS_PER_CHANNEL: usize = 400;

/// Words the providers use, so that generated calls pass the first checks.
const WORDS: &[&str] = &[
    "object",
    "entry",
    "changes",
    "field",
    "messages",
    "value",
    "metadata",
    "phone_number_id",
    "contacts",
    "profile",
    "name",
    "wa_id",
    "from",
    "id",
    "timestamp",
    "type",
    "text",
    "body",
    "image",
    "caption",
    "mime_type",
    "context",
    "referral",
    "source_id",
    "statuses",
    "status",
    "errors",
    "code",
    "error_data",
    "details",
    "interactive",
    "button_reply",
    "title",
    "reaction",
    "emoji",
    "message_id",
    "location",
    "latitude",
    "longitude",
    "messaging",
    "sender",
    "recipient",
    "message",
    "mid",
    "attachments",
    "payload",
    "url",
    "coordinates",
    "postback",
    "delivery",
    "mids",
    "watermark",
    "read",
    "reply_to",
    "story",
    "phones",
    "phone",
    "product_items",
    "quantity",
    "from_user_id",
    "whatsapp_business_account",
    "page",
    "instagram",
    "sent",
    "delivered",
    "failed",
    "unsupported",
    "order",
    "system",
    "smb_message_echoes",
    "message_echoes",
    "to",
    "is_echo",
    "app_id",
    "standby",
    "nfm_reply",
    "response_json",
    "referred_product",
    "forwarded",
    "story_mention",
];

fn any_json() -> impl Strategy<Value = Value> {
    let word = proptest::sample::select(WORDS);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        word.clone().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        proptest::sample::select(&["\u{0}", "a\u{0}b", "\u{1F600}", "99999999999999999999", "-1", "wamid.1"][..])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..5).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

/// One change somewhere in a valid call.
#[derive(Clone, Debug)]
struct Mutation {
    /// Which value of the call.
    place: prop::sample::Index,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    Add(&'static str, Value),
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let change = prop_oneof![
        4 => any_json().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        2 => (proptest::sample::select(WORDS), any_json()).prop_map(|(name, value)| Change::Add(name, value)),
    ];
    let one = (any::<prop::sample::Index>(), change).prop_map(|(place, change)| Mutation { place, change });
    proptest::collection::vec(one, 0..4)
}

/// Collects the paths (JSON pointers) of all values within a value.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| paths(value, &format!("{at}/{name}"), found)),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(number, value)| paths(value, &format!("{at}/{number}"), found));
        }
        _ => {}
    }
}

fn mutated(mut call: Value, mutations: &[Mutation]) -> Value {
    for Mutation { place, change } in mutations {
        let mut found = Vec::new();
        paths(&call, "", &mut found);
        let at = place.get(&found).clone();
        match change {
            Change::Replace(value) => *call.pointer_mut(&at).expect("it was found") = value.clone(),
            Change::Add(name, value) => match call.pointer_mut(&at).expect("it was found") {
                Value::Object(fields) => drop(fields.insert((*name).to_owned(), value.clone())),
                Value::Array(values) => values.push(value.clone()),
                other => *other = Value::Object(Map::from_iter([((*name).to_owned(), value.clone())])),
            },
            Change::Remove if at.is_empty() => call = Value::Null,
            Change::Remove => {
                let (parent, last) = at.rsplit_once('/').unwrap_or(("", ""));
                match call.pointer_mut(parent) {
                    Some(Value::Object(fields)) => drop(fields.remove(last)),
                    Some(Value::Array(values)) => {
                        let number: usize = last.parse().expect("an index of a list");
                        drop(values.remove(number));
                    }
                    _ => call = Value::Null,
                }
            }
        }
    }
    call
}

#[actix_web::test]
async fn no_signed_body_causes_a_defect() {
    let app = TestApp::shared().await;
    let phone = ProviderChannel::phone(&app).await;
    let page = ProviderChannel::create(&app, &app.company, Messenger, Setup::default()).await;
    let instagram = ProviderChannel::create(&app, &app.company, Instagram, Setup::default()).await;
    let account = phone.phone_account();
    let phone_calls = vec![
        account.message(MARIA, "Maria", text("wamid.1", "hi").referred("ad", "https://fb.me", "Buy", "click")),
        account.message(MARIA, "Maria", image("wamid.2", "no file", Some("look")).replying_to(MARIA, "wamid.1")),
        account.messages(
            MARIA,
            "Maria",
            vec![
                location("wamid.3", 1.0, 2.0, Some("Office")),
                contacts("wamid.4", "Ana", "+5511911111111"),
                button_reply("wamid.5", "yes", "Yes"),
                reaction("wamid.6", "wamid.1", Some("\u{1F44D}")),
            ],
        ),
        account.failed("wamid.7", MARIA, 131_026, "no", 1_700_000_000),
        account.echoes(MARIA, vec![text("wamid.8", "from the phone"), reaction("wamid.9", "wamid.1", None)]),
    ];
    let social = |channel: &ProviderChannel, object: &'static str| {
        let page = channel.page(object);
        vec![
            page.call_body("77", 1_700_000_000_000, vec![events::text("m_1", "hi"), events::reply("m_2", "m_1", "ho")]),
            page.call_body(
                "77",
                1_700_000_000_000,
                vec![events::attachment("m_3", "image", "https://127.0.0.1:1/x"), events::postback("m_4", "A", "B")],
            ),
            page.call_body(
                "77",
                1_700_000_000_000,
                vec![
                    events::reaction("m_1", "x"),
                    events::delivered(&["m_9"], 1),
                    events::read(2),
                    events::referral("r", "a"),
                ],
            ),
            page.echoes("77", 1_700_000_000_000, vec![json!({"mid": "m_5", "text": "from the app", "app_id": 7})]),
        ]
    };
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    let made_up = any_json();
    let mutations = mutations();
    for (channel, valid_calls) in
        [(&phone, phone_calls), (&page, social(&page, "page")), (&instagram, social(&instagram, "instagram"))]
    {
        for number in 0..CALLS_PER_CHANNEL {
            let call = if number % 8 == 0 {
                made_up.new_tree(&mut runner).expect("a value").current()
            } else {
                let mutations = mutations.new_tree(&mut runner).expect("mutations").current();
                mutated(valid_calls[number % valid_calls.len()].clone(), &mutations)
            };
            let reply = channel.call_signed(&app.api, &call).await;
            assert_eq!(reply.status, 200, "{call}: {}", reply.body);
        }
        // JSON that is cut short, followed by a byte that is not UTF-8.
        let whole = valid_calls[0].to_string();
        for number in 0..CALLS_PER_CHANNEL / 8 {
            let end = whole.floor_char_boundary(number * 13 % whole.len());
            let mut bytes = whole.as_bytes()[..end].to_vec();
            bytes.push(0xFF);
            let reply = channel.call(&app.api, bytes.clone(), Some(&signature(&channel.app_secret, &bytes))).await;
            assert_eq!(reply.data(200)["unreadable"], 1);
        }
    }
    // Everything still works: the next call is taken, and messages of each channel are shown.
    let call = account.message(MARIA, "Maria", text("wamid.last", "are you there?"));
    assert_eq!(phone.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(phone.deliver(&app.api, &call).await, Tally { repeated: 1, ..Tally::default() });
    for channel in [&phone, &page, &instagram] {
        assert!(!messages(&app.api, channel.id).await.is_empty());
    }
    app.stop().await;
}
