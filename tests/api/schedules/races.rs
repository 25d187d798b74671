//! An acknowledged cancellation or change of a scheduled message takes effect, even at the moment when it is due.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{contacts, in_ms, request_to, schedule, shown, time};
use crate::steps::id;
use crate::support::{OwnApp, Reply, TestApp, eventually, until_blocked};

/// How many messages are canceled or changed, each by one caller at about the moment when it is sent.
const RACES: i64 = 400;

/// How many races run at once.
const AT_ONCE: usize = 16;

/// How long a message is scheduled ahead at first: about as long as two requests take while fifteen others run.
const AHEAD_MS: i64 = 40;

/// The request for a message that was about to be sent, and its reply.
struct Race {
    schedule: i64,
    is_cancel: bool,
    reply: Reply,
}

/// The timing of the races, in milliseconds. It is adjusted so that half of the messages have been sent when the
/// request for them arrives, on any machine.
struct Aim {
    /// How long a message is scheduled ahead.
    ahead: AtomicI64,
    /// How long after the message is due the request for it is sent.
    after: AtomicI64,
}

impl Default for Aim {
    fn default() -> Self {
        Self { ahead: AtomicI64::new(AHEAD_MS), after: AtomicI64::new(0) }
    }
}

impl Aim {
    /// How long to wait when the message is due in `due_in` milliseconds: a little less or more each time.
    fn wait(&self, due_in: i64, number: i64) -> Duration {
        let wait = due_in + self.after.load(Ordering::Relaxed) + number % 7 - 3;
        if wait < 0 {
            self.ahead.fetch_add(1, Ordering::Relaxed);
        }
        Duration::from_millis(wait.max(0).unsigned_abs())
    }

    fn adjust(&self, was_sent: bool) {
        self.after.fetch_add(if was_sent { -1 } else { 1 }, Ordering::Relaxed);
    }
}

/// Schedules a message, and waits until it is about to be sent or has just been sent. Returns its id.
async fn schedule_and_wait_until_due(app: &TestApp, aim: &Aim, contact: i64, number: i64) -> i64 {
    loop {
        let at = in_ms(aim.ahead.load(Ordering::Relaxed));
        let reply = app.api.post("/schedules", request_to(app, contact, &number.to_string(), &at)).await;
        // Its time had passed before the request was read.
        if reply.status == 422 {
            aim.ahead.fetch_add(AHEAD_MS, Ordering::Relaxed);
            continue;
        }
        let made = reply.data(201);
        let due_in = (time(&made["sendAt"]) - chrono::Utc::now()).num_milliseconds();
        tokio::time::sleep(aim.wait(due_in, number)).await;
        return id(made);
    }
}

/// Cancels a message, or postpones it far into the future.
async fn cancel_or_delay(app: &TestApp, schedule: i64, is_cancel: bool) -> Reply {
    let path = format!("/schedules/{schedule}");
    if is_cancel {
        app.api.delete(&path).await
    } else {
        app.api.put(&path, json!({"sendAt": "2090-01-01T00:00:00.000Z"})).await
    }
}

async fn race(app: &TestApp, aim: &Aim, contact: i64, number: i64) -> Race {
    let schedule = schedule_and_wait_until_due(app, aim, contact, number).await;
    let is_cancel = number % 2 == 0;
    let reply = cancel_or_delay(app, schedule, is_cancel).await;
    aim.adjust(reply.status == 409);
    Race { schedule, is_cancel, reply }
}

#[actix_web::test]
async fn a_message_is_either_sent_or_changed_as_its_reply_says() {
    let app = OwnApp::start().await;
    let contacts = contacts(&app, RACES).await;
    let aim = &Aim::default();
    let (mut races, mut next) = (Vec::new(), contacts.into_iter().cycle().zip(0..));
    loop {
        let batch = next.by_ref().take(RACES as usize).map(|(contact, number)| race(&app, aim, contact, number));
        races.extend(stream::iter(batch).buffer_unordered(AT_ONCE).collect::<Vec<Race>>().await);
        let too_late = races.iter().filter(|race| race.reply.status == 409).count();
        // On a slow machine all may be too early, or all too late, before the right moment is found.
        if too_late > 20 && races.len() - too_late > 20 {
            break;
        }
    }
    let settled = async || {
        let far = "2089-01-01T00:00:00Z";
        app.api.get(&format!("/schedules?status=pending&sendTo={far}")).await.body["data"] == json!([])
    };
    eventually("every message that was not canceled or delayed is sent", settled).await;
    let sent: Vec<Value> = app.api.all("/messages").await.into_iter().map(|message| message["id"].clone()).collect();
    let (mut applied, mut too_late) = (0, 0);
    for Race { schedule, is_cancel, reply } in &races {
        let now = shown(&app, *schedule).await;
        let is_applied = match (reply.status.as_u16(), is_cancel) {
            (204, true) | (200, false) => true,
            (409, _) => false,
            _ => panic!("{}", reply.body),
        };
        let expected = match (is_applied, is_cancel) {
            (true, true) => "canceled",
            (true, false) => "pending",
            (false, _) => "sent",
        };
        assert_eq!(now["status"], expected, "{now}");
        assert_eq!(now["messageId"].is_null(), is_applied, "{now}");
        assert!(is_applied || sent.contains(&now["messageId"]), "{now}");
        *if is_applied { &mut applied } else { &mut too_late } += 1;
    }
    println!("{applied} were applied, {too_late} came too late");
    assert_eq!(sent.len(), too_late, "a canceled or delayed message was sent, or one was sent twice");
    assert!(applied > 20 && too_late > 20, "there was no race");
    app.stop().await;
}

/// How many messages are canceled or changed, each by two callers at about the moment when it is sent.
const MEETINGS: i64 = 150;

/// Two requests that were sent at once: whether each was to cancel the message, and the status of its reply.
struct Meeting {
    schedule: i64,
    asked: [(bool, u16); 2],
}

impl Meeting {
    fn count(&self, wanted: (bool, u16)) -> usize {
        self.asked.iter().filter(|asked| **asked == wanted).count()
    }

    /// The status that the message has to have afterwards.
    fn outcome(&self) -> &'static str {
        match (self.count((true, 204)), self.count((false, 200))) {
            (1.., _) => "canceled",
            (_, 1..) => "pending",
            _ => "sent",
        }
    }
}

async fn meet(app: &TestApp, aim: &Aim, contact: i64, number: i64) -> Meeting {
    let schedule = schedule_and_wait_until_due(app, aim, contact, number).await;
    // Two cancels, a cancel and an update, or two updates.
    let cancels = [number % 3 < 2, number % 3 < 1];
    let (first, second) =
        futures_util::join!(cancel_or_delay(app, schedule, cancels[0]), cancel_or_delay(app, schedule, cancels[1]));
    aim.adjust(first.status == 409 && second.status == 409);
    Meeting { schedule, asked: [(cancels[0], first.status.as_u16()), (cancels[1], second.status.as_u16())] }
}

#[actix_web::test]
async fn both_replies_to_two_changes_at_once_are_true() {
    let app = OwnApp::start().await;
    let contacts = contacts(&app, MEETINGS).await;
    let aim = &Aim::default();
    let (mut meetings, mut next) = (Vec::new(), contacts.into_iter().cycle().zip(0..));
    let counted = |meetings: &[Meeting]| {
        ["canceled", "pending", "sent"].map(|end| meetings.iter().filter(|meeting| meeting.outcome() == end).count())
    };
    let is_race = |[canceled, changed, sent]: [usize; 3]| canceled > 20 && changed > 20 && sent > 5;
    while !is_race(counted(&meetings)) {
        let batch = next.by_ref().take(MEETINGS as usize).map(|(contact, number)| meet(&app, aim, contact, number));
        meetings.extend(stream::iter(batch).buffer_unordered(AT_ONCE / 2).collect::<Vec<Meeting>>().await);
    }
    let settled = async || {
        let far = "2089-01-01T00:00:00Z";
        app.api.get(&format!("/schedules?status=pending&sendTo={far}")).await.body["data"] == json!([])
    };
    eventually("every message that was not canceled or delayed is sent", settled).await;
    for meeting in &meetings {
        let Meeting { schedule, asked } = meeting;
        let (cancels, updates) = (meeting.count((true, 204)), meeting.count((false, 200)));
        let refused = meeting.count((true, 409)) + meeting.count((false, 409));
        assert_eq!(cancels + updates + refused, 2, "{asked:?}");
        assert!(cancels <= 1, "canceled twice: {asked:?}");
        let now = shown(&app, *schedule).await;
        assert_eq!(now["status"], meeting.outcome(), "{asked:?}: {now}");
    }
    let [canceled, changed, sent] = counted(&meetings);
    println!("{canceled} were canceled, {changed} were changed, {sent} were sent");
    assert_eq!(
        app.api.all("/messages").await.len(),
        sent,
        "a canceled or delayed message was sent, or one was sent twice"
    );
    app.stop().await;
}

/// How many messages are moved to a contact at once while it is being deleted.
const MOVES: i64 = 16;

/// A message of a deleted contact could never be sent, so it stays with its own contact.
#[actix_web::test]
async fn no_message_is_moved_to_a_contact_that_is_being_deleted() {
    let app = TestApp::shared().await;
    let [kept_contact, deleted_contact]: [i64; 2] = contacts(&app, 2).await.try_into().expect("two");
    let mut made = Vec::new();
    for number in 0..MOVES {
        made.push(
            schedule(&app, request_to(&app, kept_contact, &number.to_string(), "2090-01-01T00:00:00.000Z")).await,
        );
    }
    let mut blocker = app.db.begin().await.expect("a transaction");
    let hold = sqlx::query("select from contacts where company_id = $1 and id = $2 for update");
    hold.bind(app.company.id).bind(deleted_contact).execute(&mut *blocker).await.expect("the contact is locked");
    let move_it = |schedule: i64| {
        let api = &app.api;
        async move { api.put(&format!("/schedules/{schedule}"), json!({"contactId": deleted_contact})).await }
    };
    let moves = async {
        until_blocked(1, &mut blocker, &app.db).await;
        let release = async {
            // This request is sent after all changes, so they wait for the deletion by now. A later change finds no
            // contact.
            shown(&app, made[0]).await;
            blocker.rollback().await.expect("it is released");
        };
        join(join_all(made.iter().map(|schedule| move_it(*schedule))), release).await.0
    };
    let path = format!("/contacts/{deleted_contact}");
    let (deleted, moved) = join(app.api.delete(&path), moves).await;
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    for (reply, schedule) in moved.iter().zip(&made) {
        reply.error(404, "ERR_API_NOT_FOUND");
        let now = shown(&app, *schedule).await;
        assert_eq!((&now["contact"]["id"], &now["status"]), (&json!(kept_contact), &json!("pending")), "{now}");
    }
    app.stop().await;
}
