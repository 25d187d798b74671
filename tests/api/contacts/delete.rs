//! Contacts are deleted with everything of theirs, but never during a conversation.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use super::{PATH, count_rows, create_contact, create_field, create_tag};
use crate::plain::deleted;
use crate::steps::{NOBODY, close, id, listed, restarted, sent};
use crate::support::{OwnApp, TestApp, eventually};

#[actix_web::test]
async fn a_contact_is_deleted_with_everything_that_is_theirs() {
    let app = OwnApp::start().await;
    let vip = create_tag(&app.api, "VIP").await;
    create_field(&app.api, "Size", "number", &json!({})).await;
    let body =
        |number: &str| json!({"number": number, "tagIds": [vip], "customFields": [{"key": "size", "value": "1"}]});
    let ana = create_contact(&app.api, body("5511900000001")).await;
    let ben = create_contact(&app.api, body("5511900000002")).await;
    let send = |contact: i64, channel| json!({"channelId": channel, "contactId": contact, "type": "text", "body": "x"});
    let mut tickets = Vec::new();
    let mut messages = Vec::new();
    for contact in [ana, ben, ana] {
        let message = sent(&app.api, send(contact, app.company.phone)).await;
        let ticket = message["ticketId"].as_i64().expect("ticket");
        app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "a note"})).await.data(201);
        close(&app.api, ticket).await;
        tickets.push(ticket);
        messages.push(id(&message));
    }
    let session = app.api.post("/webchat/sessions", json!({"channelId": app.company.webchat, "contactId": ana})).await;
    let session = session.data(201)["id"].as_str().expect("id").to_owned();
    app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200);

    let job = app.api.get(&format!("/messages/{}", messages[0])).await.data(200)["jobId"].clone();
    deleted(&app.api, &format!("{PATH}/{ana}")).await;
    let deleted_paths = [
        format!("{PATH}/{ana}"),
        format!("/tickets/{}", tickets[0]),
        format!("/tickets/{}/messages", tickets[0]),
        format!("/tickets/{}/events", tickets[2]),
        format!("/messages/{}", messages[2]),
        format!("/messages/jobs/{}", job.as_str().expect("job")),
        format!("/tickets?contactId={ana}"),
        format!("/messages?contactId={ana}"),
        format!("/webchat/sessions/{session}"),
        format!("/webchat/sessions/{session}/messages"),
    ];
    for path in &deleted_paths {
        app.api.get(path).await.error(404, "ERR_API_NOT_FOUND");
    }
    for (path, body) in [
        (format!("/tickets/{}/reopen", tickets[2]), json!({})),
        (format!("/tickets/{}/read", tickets[2]), json!({})),
        (format!("/tickets/{}/close", tickets[0]), json!({})),
        ("/tickets".to_owned(), json!({"channelId": app.company.phone, "contactId": ana})),
        ("/webchat/sessions".to_owned(), json!({"channelId": app.company.webchat, "contactId": ana})),
        (format!("/webchat/sessions/{session}/messages"), json!({"body": "x"})),
        (format!("/webchat/sessions/{session}/end"), json!({})),
    ] {
        app.api.post(&path, body).await.error(404, "ERR_API_NOT_FOUND");
    }
    let wrapup = json!({"wrapupTypeId": app.company.sold});
    app.api.put(&format!("/tickets/{}/wrapup", tickets[2]), wrapup).await.error(404, "ERR_API_NOT_FOUND");
    app.api.put(&format!("{PATH}/{ana}"), json!({"name": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    app.api.put(&format!("{PATH}/{ana}/tags/{vip}"), json!({})).await.error(404, "ERR_API_NOT_FOUND");
    for channel in [app.company.phone, app.company.webchat] {
        app.api.post("/messages", send(ana, channel)).await.error(404, "ERR_API_CONTACT_NOT_FOUND");
    }
    for absent in [ana, NOBODY, 0] {
        app.api.delete(&format!("{PATH}/{absent}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    for table in ["tickets", "messages", "webchat_sessions", "contact_tags", "contact_custom_field_values"] {
        assert_eq!(count_rows(&app, table, ana).await, 0, "{table}");
    }
    assert_eq!((count_rows(&app, "tickets", ben).await, count_rows(&app, "messages", ben).await), (1, 2));
    assert_eq!(listed(&app.api, PATH).await, [ben]);

    // The number is free again: a send to it creates another contact, which is still there after a restart.
    let next = json!({"channelId": app.company.phone, "number": "5511900000001", "type": "text", "body": "x"});
    let next = sent(&app.api, next).await;
    assert_ne!(next["contactId"], ana);
    let app = restarted(app).await;
    assert_eq!(listed(&app.api, PATH).await, [ben, next["contactId"].as_i64().expect("contact")]);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_in_a_conversation_cannot_be_deleted() {
    let app = TestApp::shared().await;
    let ana = create_contact(&app.api, json!({"number": "5511900000001"})).await;
    let path = format!("{PATH}/{ana}");
    let check_refused = async |state: &str| {
        let reply = app.api.delete(&path).await;
        let details = reply.error(409, "ERR_API_CONFLICT");
        assert_eq!(details["state"], state);
        let kind = if state.ends_with("session") { "webchatSession" } else { "ticket" };
        assert_eq!(details["by"][0], json!({"type": kind, "count": 1}), "{details}");
    };
    let open = json!({"channelId": app.company.phone, "contactId": ana});
    let ticket = id(app.api.post("/tickets", open).await.data(201));
    // The ticket is open in memory and in the journal, whether or not the tables have it yet.
    check_refused("the contact has an open ticket").await;
    close(&app.api, ticket).await;
    app.api.post(&format!("/tickets/{ticket}/reopen"), json!({})).await.data(200);
    check_refused("the contact has an open ticket").await;
    let begin = json!({"channelId": app.company.webchat, "contactId": ana});
    let session = app.api.post("/webchat/sessions", begin).await;
    let session = session.data(201)["id"].as_str().expect("id").to_owned();
    check_refused("the contact has an open ticket").await;
    close(&app.api, ticket).await;
    check_refused("the contact has an active visitor session").await;
    // A refused deletion changes nothing: the conversation continues.
    app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "x"})).await.data(201);
    check_refused("the contact has an open ticket").await;
    let open = app.api.all(&format!("/tickets?contactId={ana}&status=open")).await;
    let solved = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{}/close", id(&open[0])), solved).await.data(200);
    check_refused("the contact has an active visitor session").await;
    app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200);
    deleted(&app.api, &path).await;
    app.stop().await;
}

#[actix_web::test]
async fn when_a_deletion_and_an_opening_race_exactly_one_wins() {
    let app = TestApp::shared().await;
    let (phone, webchat) = (app.company.phone, app.company.webchat);
    let (mut kept, mut gone) = (0, 0);
    for round in 0..40_usize {
        let ana = create_contact(&app.api, json!({"number": format!("551190000{round:04}")})).await;
        // Half of the contacts were written to before, so that they have a hot closed ticket.
        let closed_ticket = if round % 2 == 0 {
            let message =
                sent(&app.api, json!({"channelId": phone, "contactId": ana, "type": "text", "body": "x"})).await;
            let ticket = message["ticketId"].as_i64().expect("ticket");
            close(&app.api, ticket).await;
            Some(ticket)
        } else {
            None
        };
        let (path, body) = match (round % 5, closed_ticket) {
            (0, Some(ticket)) => (format!("/tickets/{ticket}/reopen"), json!({})),
            (0 | 1, _) => ("/tickets".to_owned(), json!({"channelId": phone, "contactId": ana})),
            (2, _) => ("/webchat/sessions".to_owned(), json!({"channelId": webchat, "contactId": ana})),
            (3, _) => {
                ("/messages".to_owned(), json!({"channelId": phone, "contactId": ana, "type": "text", "body": "x"}))
            }
            _ => (
                "/messages".to_owned(),
                json!({"channelId": phone, "contactId": ana, "type": "text", "body": "x", "reopenTicket": true}),
            ),
        };
        let contact_path = format!("{PATH}/{ana}");
        let deletion = async {
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            app.api.delete(&contact_path).await
        };
        let (opened, removed) = join(app.api.post(&path, body), deletion).await;
        let (opened, removed) = (opened.status.as_u16(), removed.status.as_u16());
        match removed {
            204 => {
                assert_eq!(opened, 404, "round {round}: {path} on a contact that is gone");
                app.api.get(&contact_path).await.error(404, "ERR_API_NOT_FOUND");
                gone += 1;
            }
            409 => {
                assert!([200, 201, 202].contains(&opened), "round {round}: neither won: {path} {opened}");
                app.api.get(&contact_path).await.data(200);
                kept += 1;
            }
            other => panic!("round {round}: {other}"),
        }
    }
    println!("{kept} kept, {gone} gone");
    // `stop` checks that the tables refused no row.
    app.stop().await;
}

#[actix_web::test]
async fn a_message_to_a_number_finds_or_creates_its_contact_during_deletions() {
    let app = TestApp::shared().await;
    const NUMBER: &str = "5511900000001";
    let send = || json!({"channelId": app.company.phone, "number": NUMBER, "type": "text", "body": "x"});
    for _ in 0..6 {
        let sends = join_all((0..6).map(async |_| {
            app.api.post_while_busy("/messages", &send()).await.data(202);
            for ticket in app.api.all("/tickets?status=open").await {
                let closed = app.api.post_while_busy(&format!("/tickets/{}/close", id(&ticket)), &json!({})).await;
                assert!([200, 404, 409].contains(&closed.status.as_u16()), "{}", closed.body);
            }
        }));
        let deletions = join_all((0..6).map(async |_| {
            for contact in listed(&app.api, PATH).await {
                let reply = app.api.delete_while_busy(&format!("{PATH}/{contact}")).await;
                assert!([204, 404, 409].contains(&reply.status.as_u16()), "{}", reply.body);
            }
        }));
        join(sends, deletions).await;
    }
    let visitor = || json!({"channelId": app.company.webchat, "visitor": {"externalId": "v", "number": NUMBER}});
    let visits = join_all((0..6).map(async |_| {
        let session = app.api.post_while_busy("/webchat/sessions", &visitor()).await;
        let session = session.data(201)["id"].as_str().expect("id").to_owned();
        let ended = app.api.post_while_busy(&format!("/webchat/sessions/{session}/end"), &json!({})).await;
        assert!([200, 404].contains(&ended.status.as_u16()), "{}", ended.body);
    }));
    let deletions = join_all((0..12).map(async |_| {
        for contact in listed(&app.api, PATH).await {
            let reply = app.api.delete_while_busy(&format!("{PATH}/{contact}")).await;
            assert!([204, 404, 409].contains(&reply.status.as_u16()), "{}", reply.body);
        }
    }));
    join(visits, deletions).await;
    app.stop().await;
}

#[actix_web::test]
async fn changes_of_a_closed_ticket_during_a_deletion_leave_nothing() {
    let app = OwnApp::start().await;
    let wrapup = json!({"wrapupTypeId": app.company.sold});
    for round in 0..15_usize {
        let ticket = app.ticket(&format!("551190000{round:04}")).await.0;
        let contact = app.api.get(&format!("/tickets/{ticket}")).await.data(200)["contact"]["id"].as_i64();
        let contact = contact.expect("contact");
        close(&app.api, ticket).await;
        let path = format!("/tickets/{ticket}/wrapup");
        let changes = join_all((0..6).map(|_| app.api.put_while_busy(&path, &wrapup)));
        let (contact_path, name) = (format!("{PATH}/{contact}"), json!({"name": "x"}));
        let renames = join_all((0..3).map(|_| app.api.put_while_busy(&contact_path, &name)));
        let deletion = app.api.delete_while_busy(&contact_path);
        let (changes, (renames, removed)) = join(changes, join(renames, deletion)).await;
        assert_eq!(removed.status, 204, "{}", removed.body);
        for reply in changes.iter().chain(&renames) {
            assert!([200, 404].contains(&reply.status.as_u16()), "{}", reply.body);
        }
        app.api.put(&path, wrapup.clone()).await.error(404, "ERR_API_NOT_FOUND");
    }
    let hot = app.service.app.engine.hot();
    assert_eq!(hot.0, 0, "a ticket of a deleted contact is still in memory");
    app.stop().await;
}

#[actix_web::test]
async fn only_one_of_many_concurrent_deletions_succeeds() {
    let app = TestApp::shared().await;
    for _ in 0..5 {
        let ana = create_contact(&app.api, json!({"name": "Ana"})).await;
        let path = format!("{PATH}/{ana}");
        let replies = join_all((0..8).map(|_| app.api.delete_while_busy(&path))).await;
        let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [[204].as_slice(), &[404; 7]].concat());
    }
    assert_eq!(app.api.all(PATH).await, [Value::Null; 0]);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_with_more_messages_than_one_statement_deletes_is_deleted() {
    let app = OwnApp::start().await;
    let ana = create_contact(&app.api, json!({"number": "5511900000001"})).await;
    let send = json!({"channelId": app.company.phone, "contactId": ana, "type": "text", "body": "x"});
    let ticket = sent(&app.api, send).await["ticketId"].as_i64().expect("ticket");
    close(&app.api, ticket).await;
    let fill = "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status,
             source, created_at)
        select $1, 1000000000 + k, $2, $3, $4, 'inbound', 'text', 'x', 'received', 'contact', now()
        from generate_series(1, 5001) k";
    let fill = sqlx::query(fill).bind(app.company.id).bind(ticket).bind(ana).bind(app.company.phone.0);
    fill.execute(&app.db).await.expect("messages");
    deleted(&app.api, &format!("{PATH}/{ana}")).await;
    assert_eq!(count_rows(&app, "messages", ana).await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_contacts_tickets_are_deleted_in_steps() {
    let app = OwnApp::start().await;
    let ana = create_contact(&app.api, json!({"number": "5511900000001"})).await;
    let fill = "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count,
            reopen_count, opened_at, closed_at, created_at, updated_at)
        select $1, 1000000000 + k, $2, $3, 'closed', 'api', 0, 0, now(), now(), now(), now()
        from generate_series(1, 401) k";
    let fill = sqlx::query(fill).bind(app.company.id).bind(app.company.phone.0).bind(ana);
    fill.execute(&app.db).await.expect("tickets");
    sqlx::raw_sql(
        "create table steps (tickets bigint);
         create function note_step() returns trigger language plpgsql as $$
         begin insert into steps select count(*) from removed; return null; end $$;
         create trigger note_step after delete on tickets
             referencing old table as removed for each statement execute function note_step()",
    )
    .execute(&app.db)
    .await
    .expect("steps are noted");
    deleted(&app.api, &format!("{PATH}/{ana}")).await;
    let steps: (i64, i64) =
        sqlx::query_as("select max(tickets), sum(tickets)::bigint from steps").fetch_one(&app.db).await.expect("steps");
    assert_eq!(steps, (200, 401), "wrong count of tickets in the largest step, or in all steps");
    assert_eq!(count_rows(&app, "tickets", ana).await, 0, "some tickets are left");
    app.stop().await;
}

#[actix_web::test]
async fn a_deletion_whose_outcome_is_unclear_leaves_nothing_half_done() {
    let app = OwnApp::start().await;
    let ana = create_contact(&app.api, json!({"number": "5511900000001"})).await;
    let path = format!("{PATH}/{ana}");
    let send = || json!({"channelId": app.company.phone, "contactId": ana, "type": "text", "body": "x"});
    let ticket = sent(&app.api, send()).await["ticketId"].as_i64().expect("ticket");
    close(&app.api, ticket).await;
    let begin = json!({"channelId": app.company.webchat, "contactId": ana});
    let session = app.api.post("/webchat/sessions", begin).await;
    let session = session.data(201)["id"].as_str().expect("id").to_owned();
    app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200);

    // The deletion did not happen: the contact is as it was, and requests about it have waited.
    fail::cfg("contact_removed", "1*return").expect("failpoint");
    let (removed, reopened) =
        join(app.api.delete(&path), app.api.post(&format!("/tickets/{ticket}/reopen"), json!({}))).await;
    assert!([503, 409].contains(&removed.status.as_u16()), "{}", removed.body);
    reopened.data(200);
    fail::remove("contact_removed");
    close(&app.api, ticket).await;

    // The deletion did happen, but its answer was lost: the contact is deleted all the same.
    fail::cfg("contact_removal_lost", "1*return").expect("failpoint");
    app.api.delete(&path).await.error(503, "ERR_API_UNAVAILABLE");
    app.api.post("/messages", send()).await.error(404, "ERR_API_CONTACT_NOT_FOUND");
    let wrapup = json!({"wrapupTypeId": app.company.sold});
    app.api.put(&format!("/tickets/{ticket}/wrapup"), wrapup).await.error(404, "ERR_API_NOT_FOUND");
    app.api.get(&format!("/webchat/sessions/{session}/messages")).await.error(404, "ERR_API_NOT_FOUND");
    app.api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn an_update_whose_answer_was_lost_is_seen_by_conversations() {
    let app = OwnApp::start().await;
    let ticket = app.ticket("5511900000001").await.0;
    let shown = async || app.api.get(&format!("/tickets/{ticket}")).await.data(200)["contact"].clone();
    let path = format!("{PATH}/{}", id(&shown().await));
    fail::cfg("once_commit_lost", "1*return").expect("failpoint");
    app.api.put(&path, json!({"name": "Ana"})).await.error(503, "ERR_API_UNAVAILABLE");
    eventually("the ticket shows the change", || async { shown().await["name"] == "Ana" }).await;
    app.stop().await;
}

#[actix_web::test]
async fn ids_of_deleted_messages_and_tickets_are_not_reused_after_a_restart() {
    let app = OwnApp::start().await;
    let say = async |app: &OwnApp, number: &str| {
        let body = json!({"channelId": app.company.phone, "number": number, "type": "text", "body": "x"});
        sent(&app.api, body).await
    };
    say(&app, "5511900000001").await;
    let newest = say(&app, "5511900000002").await;
    close(&app.api, newest["ticketId"].as_i64().expect("a ticket")).await;
    deleted(&app.api, &format!("{PATH}/{}", newest["contactId"])).await;
    let app = restarted(app).await;
    let next = say(&app, "5511900000003").await;
    assert!(id(&next) > id(&newest) && next["ticketId"].as_i64() > newest["ticketId"].as_i64(), "{next}");
    app.stop().await;
}
