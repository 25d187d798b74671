//! The handlers of a process: they report what they received, and respond when the test signals.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::{StreamExt, stream};
use serde_json::json;

use super::World;

pub(super) fn routes(services: &mut web::ServiceConfig, world: Data<World>) {
    services
        .app_data(world)
        .app_data(web::PayloadConfig::new(8 << 20))
        .route("/api/v1/echo", web::to(echo))
        .route("/api/v1/status/{status}", web::to(status))
        .route("/api/v1/hang/{status}", web::to(hang))
        .route("/api/v1/large", web::to(large))
        .route("/api/v1/refuse", web::to(refuse))
        .route("/api/v1/events", web::to(events))
        .route("/api/v1/socket", web::get().to(socket))
        .route("/health/live", web::to(echo));
}

async fn echo(request: HttpRequest, world: Data<World>, body: Bytes) -> HttpResponse {
    world.started_requests.fetch_add(1, Ordering::SeqCst);
    let headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| json!([name.as_str(), value.to_str().unwrap_or_default()]))
        .collect();
    HttpResponse::Ok().insert_header(("x-answered", "yes")).json(json!({
        "method": request.method().as_str(),
        "target": request.uri().path_and_query().map(|target| target.as_str()),
        "headers": headers,
        "body": body.len(),
        "sum": body.iter().map(|byte| u64::from(*byte)).sum::<u64>(),
        "from": request.peer_addr().map(|peer| peer.to_string()),
    }))
}

async fn status(path: web::Path<u16>) -> HttpResponse {
    HttpResponse::build(StatusCode::from_u16(*path).expect("a status")).finish()
}

async fn hang(path: web::Path<u16>, world: Data<World>) -> HttpResponse {
    world.started_requests.fetch_add(1, Ordering::SeqCst);
    world.proceed.notified().await;
    HttpResponse::build(StatusCode::from_u16(*path).expect("a status")).body("done")
}

/// A body too large to be passed on at once, with or without a length.
async fn large(request: HttpRequest) -> HttpResponse {
    if request.query_string() == "sized" {
        return HttpResponse::Ok().body(vec![b'a'; 300_000]);
    }
    let chunks = (0..100).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'a'; 3000])));
    HttpResponse::Ok().streaming(stream::iter(chunks))
}

async fn refuse() -> HttpResponse {
    HttpResponse::PayloadTooLarge().body("too large")
}

/// Sends an event at once, and another one after each notification.
async fn events(world: Data<World>) -> HttpResponse {
    let events = stream::unfold((0, None), move |(number, notified)| {
        let world = world.clone();
        async move {
            if let Some(notified) = notified {
                notified.await;
            }
            // Registered before the event is sent, so that no notification is lost in between.
            let notified = Arc::clone(&world.proceed).notified_owned();
            let event = Bytes::from(format!("data: {number}\n\n"));
            Some((Ok::<_, std::io::Error>(event), (number + 1, Some(notified))))
        }
    });
    HttpResponse::Ok().content_type("text/event-stream").streaming(events)
}

async fn socket(request: HttpRequest, payload: web::Payload) -> actix_web::Result<HttpResponse> {
    let (response, mut out, mut messages) = actix_ws::handle(&request, payload)?;
    actix_web::rt::spawn(async move {
        while let Some(Ok(actix_ws::Message::Text(text))) = messages.next().await {
            if text == "bye" {
                break;
            }
            if out.text(text).await.is_err() {
                return;
            }
        }
        let reason = actix_ws::CloseReason { code: actix_ws::CloseCode::Restart, description: None };
        let _ = out.close(Some(reason)).await;
    });
    Ok(response)
}
