//! Campaigns of a company that moves to another process.

use std::sync::mpsc;

use hotline::service::Service;

use super::{create_campaign, list, text};
use crate::members::{owner_of, start_second_service};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, eventually};
use crate::webhooks::moved::move_company;

#[actix_web::test]
async fn a_campaign_that_could_not_be_resumed_before_a_move_is_started_only_by_the_other_process() {
    let options = TestOptions { member: true, ..TestOptions::default() };
    let app = OwnApp::start_with(options.clone()).await;
    let (second, _folder) = start_second_service(&app, &options).await;
    let company = app.company.id;
    let owner = owner_of(company, [&app.service, &second]);
    let other = if std::ptr::eq(owner, &second) { &app.service } else { &second };
    let hot_campaigns = |service: &Service| service.app.engine.stats().campaigns.hot;
    create_campaign(&app.api, text(list(&app.api, &[]).await, app.company.phone.0, "hello")).await;
    assert_eq!([hot_campaigns(owner), hot_campaigns(other)], [1, 0], "its process has not started it");

    // The company is dropped from memory, and moves before its campaigns can be read again.
    fail::cfg("campaigns_unread", "return").expect("failpoint");
    let (resumed_sender, resumed) = mpsc::channel();
    let report = move || {
        // The test may have ended.
        let _ = resumed_sender.send(());
    };
    fail::cfg_callback("campaigns_resumed", report).expect("failpoint");
    eventually("it is dropped", || async { owner.forget(company).await.is_ok() }).await;
    move_company(&app, owner).await;
    eventually("the other process has started the campaign", || async { hot_campaigns(other) == 1 }).await;
    fail::remove("campaigns_unread");
    eventually("its former process no longer tries", || async { resumed.try_recv().is_ok() }).await;
    assert_eq!([hot_campaigns(owner), hot_campaigns(other)], [0, 1], "its former process has started it again");
    second.stop().await.expect("a clean stop");
    app.stop().await;
}
