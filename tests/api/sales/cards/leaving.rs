//! A card stays when a record that it refers to is deleted.

use serde_json::json;

use super::{CARDS, card, cards_in, product, read, three_stages, with};
use crate::plain::{created, deleted};
use crate::steps::close;
use crate::support::TestApp;

#[actix_web::test]
async fn a_card_outlives_every_record_it_refers_to() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let status = created(api, "/crm/statuses", json!({"name": "Waiting"})).await;
    let business = created(api, "/crm/businesses", json!({"name": "Roofs"})).await;
    let origin = created(api, "/crm/origins", json!({"name": "Fair"})).await;
    let panel = product(&app, "Panel", Some("P-1"), "0.1").await;
    let user = created(api, "/users", json!({"name": "Eva", "email": "eva@x.example"})).await;
    let field = created(api, "/custom-fields", json!({"name": "Size", "application": "card", "type": "text"})).await;
    let ticket = app.ticket("5511977776666").await;
    let contact = api.get(&format!("/tickets/{ticket}")).await.data(200)["contact"]["id"].as_i64().expect("a contact");
    let one = created(
        api,
        CARDS,
        json!({
            "boardId": board.id, "name": "One", "statusId": status, "businessId": business, "originId": origin,
            "assignedToUserId": user, "contactIds": [contact], "ticketId": ticket,
            "products": [{"productId": panel, "quantity": 3}], "customFields": [{"key": "size", "value": "L"}],
        }),
    )
    .await;
    let other = card(&app, &board, board.todo, "Other").await;
    assert_eq!(api.all(&format!("{CARDS}?contactId={contact}")).await, [read(&app, one).await]);
    close(api, ticket.0).await;
    let mut expected = read(&app, one).await;
    let line = with(&expected["products"][0], &json!({"productId": null}));
    for (path, different) in [
        (format!("/crm/statuses/{status}"), json!({"status": null})),
        (format!("/crm/businesses/{business}"), json!({"business": null})),
        (format!("/crm/origins/{origin}"), json!({"origin": null})),
        (format!("/users/{user}"), json!({"assignedTo": null})),
        (format!("/custom-fields/{field}"), json!({"customFields": []})),
        (format!("/products/{panel}"), json!({"products": [line]})),
        // The contact is deleted with its tickets.
        (format!("/contacts/{contact}"), json!({"contacts": [], "ticketId": null})),
    ] {
        deleted(api, &path).await;
        let shown = read(&app, one).await;
        // The card shows something else, so its `updatedAt` is later.
        assert!(shown["updatedAt"].as_str() > expected["updatedAt"].as_str(), "without {path}: {shown}");
        expected = with(&with(&expected, &different), &json!({"updatedAt": shown["updatedAt"]}));
        assert_eq!(shown, expected, "without {path}");
    }
    assert_eq!(expected["productsTotal"], 0.3);
    assert_eq!(cards_in(&app, board.todo).await, [one, other]);
    app.stop().await;
}

#[actix_web::test]
async fn a_custom_field_with_values_of_cards_keeps_its_type() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let field = json!({"name": "Size", "application": "card", "type": "select", "options": ["L", "M"]});
    let field = created(&app.api, "/custom-fields", field).await;
    let values = json!([{"key": "size", "value": "L"}]);
    let one = created(&app.api, CARDS, json!({"boardId": board.id, "name": "One", "customFields": values})).await;
    let path = format!("/custom-fields/{field}");
    for change in [json!({"type": "text"}), json!({"options": ["M"]})] {
        let refused = app.api.put(&path, change.clone()).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT")["by"], json!([{"type": "card", "count": 1}]), "{change}");
    }
    deleted(&app.api, &format!("{CARDS}/{one}")).await;
    app.api.put(&path, json!({"type": "text"})).await.data(200);
    app.stop().await;
}
