//! A command that fails names the cause, and changes nothing.

use hotline_persistence::tables::companies;

use super::{failure, json, url};
use crate::process::data_folder;
use crate::support::TestDatabase;

#[actix_web::test]
async fn a_failure_names_what_is_wrong_and_changes_nothing() {
    let folder = data_folder();
    let database = TestDatabase::migrated().await;
    companies::insert(&database.db, "Acme").await.expect("company");
    let webchat = ["channel", "create", "Website", "--company", "1", "--type", "webchat"];
    json(folder.path(), &[&webchat[..], &["--database-url", &url(&database)]].concat());
    let url = url(&database);
    let everything = || {
        let list = |noun: &str| json(folder.path(), &[noun, "list", "--database-url", &url]);
        ["company", "token", "channel", "profile", "webhook"].map(list)
    };
    let before = everything();
    let token = ["token", "create", "x", "--company", "1"];
    let webhook = ["webhook", "create", "https://example.com/hotline", "--company", "1"];
    let too_many: Vec<String> = (0..51).map(|last| format!("--allow-ip=10.0.0.{last}")).collect();
    let too_many: Vec<&str> = ["--all"].into_iter().chain(too_many.iter().map(String::as_str)).collect();
    let channel = ["channel", "create", "x", "--company", "1", "--type"];
    let many_words = format!("--stop-words={}", (0..51).map(|word| word.to_string()).collect::<Vec<_>>().join(","));
    let long_word = format!("--stop-words={}", "x".repeat(61));
    for (command, options, word) in [
        (&["company", "create"][..], &["  "][..], "blank"),
        (&["company", "update", "1"], &[], "--active"),
        (&["company", "update", "1"], &["--active=perhaps"], "--active"),
        (&["company", "update", "1"], &["--time-zone=Mars/Olympus"], "--time-zone"),
        (&["company", "update", "1"], &["--name=y", "--time-zone=-3"], "--time-zone"),
        (&["company", "update", "1"], &[&many_words], "at most 50"),
        (&["company", "update", "1"], &[&long_word], "at most 60"),
        (&["company", "update", "1"], &["--stop-words=a,b\nc"], "one line"),
        (&["company", "update", "1"], &["--stop-words=a,\u{a8}"], "blank"),
        // No input accepts control characters: the panel could not save again what it has read.
        (&["company", "update", "1"], &["--stop-words=a\u{1},b"], "control characters"),
        (&["company", "update", "1"], &["--name=Acme\u{b}"], "control characters"),
        (&["company", "create"], &["A\u{1b}cme"], "control characters"),
        (&["profile", "create", "--company", "1", "--all"], &["--name", "x\u{1f}"], "control characters"),
        (&["channel", "update", "1"], &["--greeting", "\u{1}Hello"], "control characters"),
        (&["channel", "update", "1"], &["--title", "Shop\u{c}"], "control characters"),
        (&["company", "update", "1"], &["--rate-per-minute=-1"], "--rate-per-minute"),
        (&["company", "update", "1"], &["--name= "], "blank"),
        (&["company", "update", "7"], &["--active=true"], "company"),
        (&["token", "create", "x", "--company", "7"], &["--all"], "company"),
        (&token, &[], "--all"),
        (&token, &["--permission", "nothing:GET"], "nothing"),
        (&token, &["--permission", "tickets:PATCH"], "PATCH"),
        (&["token", "create", "--company", "1", "--all"], &["--name=x\u{1}"], "control characters"),
        (&webhook, &["--description", "x\u{1}"], "control characters"),
        (&webhook, &["--description", "\u{b}"], "control characters"),
        (&token, &["--all", "--allow-ip", "::1"], "IPv6"),
        (&token, &["--all", "--allow-ip", "10.0.0.0/40"], "--allow-ip"),
        (&token, &too_many, "50"),
        (&token, &["--all", "--expires", "2001-01-01T00:00:00Z"], "--expires"),
        (&token, &["--all", "--expires", "tomorrow"], "--expires"),
        (&["token", "rotate"], &["7"], "token"),
        (&["token", "revoke"], &["7"], "token"),
        (&["channel", "create", "x", "--company", "7"], &["--type", "webchat"], "company"),
        (&channel, &["telegraph"], "telegraph"),
        (&channel, &["webchat", "--queue", "7"], "queue"),
        (&channel, &["webchat", "--verify-token", "x"], "--verify-token"),
        (&channel, &["webchat", "--allow-origin", "*"], "--allow-origin"),
        (&channel, &["webchat", "--position", "top"], "--position"),
        (&channel, &["whatsapp", "--allow-origin", "https://shop.example"], "--allow-origin"),
        (&channel, &["whatsapp", "--provider-url", "provider"], "--provider-url"),
        (&channel, &["messenger", "--number", "5511999990000"], "--number"),
    ] {
        let text = failure(folder.path(), &[command, options, &["--database-url", &url]].concat());
        assert!(text.contains(word), "{command:?} {options:?}: {text}");
    }
    assert_eq!(everything(), before);
    database.drop().await;
}

#[test]
fn with_json_a_failure_is_one_json_object() {
    let folder = data_folder();
    for arguments in [
        &["company", "update", "--json"][..],
        &["company", "dance", "--json"],
        &["token", "create", "--json", "--company", "one"],
        &["company", "list", "--json", "--database-url", "postgres:///nothing?host=/nowhere"],
    ] {
        let text = failure(folder.path(), arguments);
        let text: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let message = text["error"]["message"].as_str().unwrap_or_else(|| panic!("no message: {text}"));
        assert!(!message.is_empty() && !message.starts_with("error"), "{message}");
    }
    // Help is for people, also with `--json`.
    let help = crate::process::run(folder.path(), &["company", "list", "--json", "--help"]);
    assert!(help.status.success() && !help.stdout.is_empty());
}
