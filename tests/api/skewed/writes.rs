//! Requests that write, and what the service does by itself.

use std::collections::BTreeSet;

use hotline_persistence::tables::{cascades, retentions};
use reqwest::Method;
use serde_json::{Value, json};

use super::plans::{rows_read, rows_read_by};
use super::seed::run;
use super::{TINY, World};
use crate::support::eventually;

/// How many rows a step may read for each contact that loses a tag. The contact is found, locked, loses the tag, gets a
/// new date and is read with what it shows: its tags, values and last channel, each with the record that it refers to.
/// That is a dozen look-ups, some of them counted twice because a bitmap is made of them. The channels of the few
/// companies here fit on one page, which is cheaper to read whole than by its index: 26 rows.
const UNTAG_READS_MAX: u64 = 60;

#[actix_web::test]
async fn a_write_reads_what_it_writes_and_nothing_of_others() {
    let (mut world, callers) = World::make().await;
    let mut removed = BTreeSet::new();
    for caller in &callers {
        let base = caller.company.id.0 * 10_000_000;
        // The first import creates the contacts, the second finds them by their keys, the third changes their numbers.
        const ROWS: i64 = 200;
        let rows = |from: i64| -> Vec<Value> {
            let row = |k: i64| {
                json!({"name": "Imported", "number": format!("55{}", base + from + k), "email": format!("i{k}@x.example"),
                    "code": format!("import {k}"), "tagIds": [caller.tag]})
            };
            (0..ROWS).map(row).collect()
        };
        // A dozen look-ups for each row: of its keys, the contact, its tags and its references.
        let import_max = 60 * ROWS as u64;
        for from in [1_000_000, 1_000_000, 2_000_000] {
            let body = json!({"contacts": rows(from)});
            let reply = world.judge(caller, Method::POST, "/contacts/import", Some(&body), import_max).await;
            assert_eq!(reply.data(200)["errors"], json!([]));
        }
        let plain = [
            (
                "/contacts",
                "contactId",
                json!({"name": "New", "number": format!("5599{base}"), "tagIds": [caller.tag]}),
                json!({"name": "Changed"}),
            ),
            ("/tags", "tagId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/queues", "queueId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/wrapup-categories", "categoryId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/users", "userId", json!({"name": "New", "email": "new@x.example"}), json!({"name": "Changed"})),
            (
                "/quick-messages",
                "quickMessageId",
                json!({"shortcut": "new", "message": "New"}),
                json!({"message": "Changed"}),
            ),
            (
                "/custom-fields",
                "customFieldId",
                json!({"name": "New", "application": "contact", "type": "text"}),
                json!({"name": "Changed"}),
            ),
            (
                "/schedules",
                "scheduleId",
                json!({"contactId": caller.contact, "channelId": caller.company.phone, "body": "New", "sendAt": "2099-01-01T00:00:00Z"}),
                json!({"body": "Changed"}),
            ),
            (
                "/campaigns",
                "campaignId",
                json!({"name": "New", "contactListId": caller.list, "channelId": caller.company.phone, "message": "New",
                    "scheduledAt": "2099-01-01T00:00:00Z"}),
                json!({"message": "Changed"}),
            ),
            ("/global-variables", "variableId", json!({"key": "fresh", "value": "New"}), json!({"value": "Changed"})),
            ("/product-categories", "categoryId", json!({"name": "New"}), json!({"name": "Changed"})),
            (
                "/products",
                "productId",
                json!({"name": "New", "sku": "new"}),
                json!({"name": "Changed", "sku": "newer"}),
            ),
            (
                "/crm/boards",
                "boardId",
                json!({"name": "New", "crmBoardQueues": [{"queueId": caller.company.sales}]}),
                json!({"archived": true, "crmBoardQueues": []}),
            ),
            ("/crm/statuses", "statusId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/crm/businesses", "businessId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/crm/origins", "originId", json!({"name": "New"}), json!({"name": "Changed"})),
            (
                "/webhooks",
                "webhookId",
                json!({"url": "https://x.example/new", "active": false}),
                json!({"description": "Changed"}),
            ),
        ];
        for (path, id_name, new, changed) in plain {
            let made = world.judge(caller, Method::POST, path, Some(&new), caller.reads_max).await;
            let one = format!("{path}/{}", made.data(201)["id"]);
            world.judge(caller, Method::PUT, &one, Some(&changed), caller.reads_max).await;
            world.judge(caller, Method::DELETE, &one, None, caller.reads_max).await;
            removed.insert(format!("{path}/{{{id_name}}}"));
        }
        let category = caller.api.post("/wrapup-categories", json!({"name": "Another"})).await.data(201)["id"].clone();
        let new = json!({"name": "New", "categoryId": category, "queueIds": [caller.company.sales]});
        let made = world.judge(caller, Method::POST, "/wrapup-types", Some(&new), caller.reads_max).await;
        let one = format!("/wrapup-types/{}", made.data(201)["id"]);
        world.judge(caller, Method::PUT, &one, Some(&json!({"name": "Changed"})), caller.reads_max).await;
        world.judge(caller, Method::DELETE, &one, None, caller.reads_max).await;
        removed.insert("/wrapup-types/{wrapupTypeId}".to_owned());

        let board = caller.api.post("/crm/boards", json!({"name": "Staged"})).await.data(201)["id"].clone();
        let stages = format!("/crm/boards/{board}/lists");
        let made = world.judge(caller, Method::POST, &stages, Some(&json!({"label": "New"})), caller.reads_max).await;
        let one = format!("{stages}/{}", made.data(201)["id"]);
        world.judge(caller, Method::PUT, &one, Some(&json!({"label": "Changed"})), caller.reads_max).await;
        world.judge(caller, Method::DELETE, &one, None, caller.reads_max).await;
        removed.insert("/crm/boards/{boardId}/lists/{listId}".to_owned());

        let card = json!({
            "boardId": board, "name": "New", "contactIds": [caller.contact], "assignedToUserId": caller.company.ana,
            "ticketId": caller.ticket, "products": [{"name": "New", "unitPrice": 1}],
        });
        let made = world.judge(caller, Method::POST, "/crm/cards", Some(&card), caller.reads_max).await;
        let stage = made.data(201)["list"]["id"].clone();
        let one = format!("/crm/cards/{}", made.data(201)["id"]);
        for (verb, body) in [
            ("/move", json!({"crmBoardListId": stage, "position": 1})),
            ("/win", json!({})),
            ("/reopen", json!({})),
            ("/lose", json!({"statusReason": "x"})),
        ] {
            world.judge(caller, Method::POST, &format!("{one}{verb}"), Some(&body), caller.reads_max).await;
        }
        world
            .judge(caller, Method::PUT, &one, Some(&json!({"name": "Changed", "contactIds": []})), caller.reads_max)
            .await;
        let line = json!({"name": "Another", "unitPrice": 1});
        let lines = format!("{one}/products");
        let made = world.judge(caller, Method::POST, &lines, Some(&line), caller.reads_max).await;
        let line = format!("{lines}/{}", made.data(201)["id"]);
        world.judge(caller, Method::PUT, &line, Some(&json!({"quantity": 2})), caller.reads_max).await;
        world.judge(caller, Method::DELETE, &line, None, caller.reads_max).await;
        world.judge(caller, Method::DELETE, &one, None, caller.reads_max).await;
        removed.insert("/crm/cards/{cardId}".to_owned());
        removed.insert("/crm/cards/{cardId}/products/{cardProductId}".to_owned());

        let contact = caller.api.post("/contacts", json!({"name": "Linked"})).await.data(201)["id"].clone();
        let link = format!("/contacts/{contact}/tags/{}", caller.tag);
        let member = format!("/queues/{}/users/{}", caller.company.sales, caller.company.ana);
        for (link, documented) in
            [(link, "/contacts/{contactId}/tags/{tagId}"), (member, "/queues/{queueId}/users/{userId}")]
        {
            world.judge(caller, Method::PUT, &link, None, caller.reads_max).await;
            world.judge(caller, Method::DELETE, &link, None, caller.reads_max).await;
            removed.insert(documented.to_owned());
        }
        let message: i64 = sqlx::query_scalar(
            "update messages set provider_message_id = 'wamid.known' where company_id = $1 and id = (
                 select min(id) from messages where company_id = $1 and direction <> 'internal') returning id",
        )
        .bind(caller.company.id)
        .fetch_one(&world.app.db)
        .await
        .expect("a message");
        let reaction = format!("/messages/{message}/reaction");
        let emoji = json!({"emoji": "\u{1F44D}"});
        world.judge(caller, Method::PUT, &reaction, Some(&emoji), caller.reads_max).await.data(200);
        world.judge(caller, Method::DELETE, &reaction, None, caller.reads_max).await;
        removed.insert("/messages/{messageId}/reaction".to_owned());
        let duplicate = caller.api.post("/contacts", json!({"name": "The same person"})).await.data(201)["id"].clone();
        let merge = format!("/contacts/{contact}/merge");
        let duplicate = json!({"fromContactId": duplicate});
        world.judge(caller, Method::POST, &merge, Some(&duplicate), caller.reads_max).await.data(200);
        let new = json!({"name": "New"});
        let made = world.judge(caller, Method::POST, "/contact-lists", Some(&new), caller.reads_max).await;
        let one = format!("/contact-lists/{}", made.data(201)["id"]);
        // The second contact's turn comes a minute later, so the campaign is not over before it is canceled.
        let members = json!({"contactIds": [contact, caller.contact]});
        world.judge(caller, Method::POST, &format!("{one}/contacts"), Some(&members), caller.reads_max).await;
        let campaign = json!({"name": "New", "contactListId": made.data(201)["id"], "channelId": caller.company.phone,
            "message": "New", "scheduledAt": "2099-01-01T00:00:00Z", "ratePerMinute": 1});
        let campaign = caller.api.post("/campaigns", campaign).await.data(201)["id"].clone();
        for verb in ["start", "pause", "resume", "cancel"] {
            let path = format!("/campaigns/{campaign}/{verb}");
            world.judge(caller, Method::POST, &path, None, caller.reads_max).await.data(200);
        }
        world.judge(caller, Method::DELETE, &format!("{one}/contacts/{contact}"), None, caller.reads_max).await;
        // All contacts that have the tag: each is looked for in the list, and found there.
        let reads_max = caller.reads_max + 30 * caller.rows.unsigned_abs();
        let tagged = json!({"tagId": caller.tag});
        world.judge(caller, Method::POST, &format!("{one}/contacts"), Some(&tagged), reads_max).await;
        world.judge(caller, Method::DELETE, &one, None, reads_max).await;
        removed.insert("/contact-lists/{contactListId}".to_owned());
        removed.insert("/contact-lists/{contactListId}/contacts/{contactId}".to_owned());
        // A tag that many rows refer to is taken from them in steps, which look at no row of another company.
        // The first step is taken before the answer.
        let reads_max = caller.reads_max + UNTAG_READS_MAX * cascades::STEP_RECORDS.unsigned_abs();
        let delete = world.judge(caller, Method::DELETE, &format!("/tags/{}", caller.tag), None, reads_max).await;
        assert_eq!(delete.status, 204);
        // The imported contacts have the tag as well.
        let tagged = caller.rows.unsigned_abs() + 2 * ROWS.unsigned_abs();
        world.judge_steps(caller, caller.reads_max + UNTAG_READS_MAX * tagged).await;
        let send =
            json!({"channelId": caller.company.phone, "number": "5511988887777", "type": "text", "body": "Hello"});
        world.judge(caller, Method::POST, "/messages", Some(&send), caller.reads_max).await;
    }
    let document = hotline::routes::document();
    let removable: BTreeSet<String> = document["paths"]
        .as_object()
        .expect("paths")
        .iter()
        .filter(|(_, item)| item["delete"].is_object())
        .map(|(path, _)| path.strip_prefix("/api/v1").unwrap_or(path).to_owned())
        .collect();
    assert_eq!(removed, removable, "every DELETE of the document is judged");
    world.assert_and_stop().await;
}

#[actix_web::test]
async fn what_a_retention_removes_is_found_without_reading_rows_of_other_companies() {
    let (mut world, callers) = World::make().await;
    let db = world.app.db.clone();
    for caller in &callers {
        let company = caller.company.id;
        run(
            &db,
            &format!(
                "update tickets set closed_at = now() - interval '40 days'
                 where company_id = {company} and status = 'closed' and (id % 20 = 2 or {} = {TINY})",
                caller.rows
            ),
        )
        .await;
        world.plans.take();
        let removed = retentions::set(&db, company, Some(30)).await.expect("the retention is set").due;
        assert!(removed > 0, "nothing is due");
        eventually("everything due is removed", || async {
            retentions::all(&db)
                .await
                .expect("a list")
                .iter()
                .any(|row| row.company == company && row.removed == removed && row.last_run.is_some())
        })
        .await;
        let plans = world.plans.take();
        let read = rows_read_by(&plans);
        if read > caller.reads_max {
            let worst = plans.iter().max_by_key(|plan| rows_read(&plan["Plan"])).expect("a statement");
            world.too_much.push(format!("a removal of {company} read {read} rows: {worst:#}"));
        }
        world.judged += 1;
        world.with_plans += usize::from(!plans.is_empty());
    }
    world.assert_and_stop().await;
}
