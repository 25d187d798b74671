//! Whoever is answered that a message is canceled or changed is obeyed, also in the moment in which it leaves.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{contacts, in_ms, shown, time, to};
use crate::steps::id;
use crate::support::{Reply, TestApp, eventually};

/// How often a caller meets a message that leaves.
const RACES: i64 = 1000;

/// Races at once.
const AT_ONCE: usize = 16;

/// How long a message is scheduled ahead at first: about what two requests take beside fifteen others.
const AHEAD_MS: i64 = 40;

/// What was asked of a message that was about to leave, and what was answered.
struct Race {
    schedule: i64,
    is_cancel: bool,
    reply: Reply,
}

/// When races are run, in milliseconds: so that as many messages have left as have not, on any machine.
struct Aim {
    /// How long a message is scheduled ahead.
    ahead: AtomicI64,
    /// How long after it is due it is asked for.
    after: AtomicI64,
}

impl Default for Aim {
    fn default() -> Self {
        Self { ahead: AtomicI64::new(AHEAD_MS), after: AtomicI64::new(0) }
    }
}

impl Aim {
    /// How long to wait when it is due in `due_in`. At another moment each time: a little earlier or later.
    fn wait(&self, due_in: i64, number: i64) -> Duration {
        let wait = due_in + self.after.load(Ordering::Relaxed) + number % 7 - 3;
        if wait < 0 {
            self.ahead.fetch_add(1, Ordering::Relaxed);
        }
        Duration::from_millis(wait.max(0).unsigned_abs())
    }

    fn learn(&self, has_left: bool) {
        self.after.fetch_add(if has_left { -1 } else { 1 }, Ordering::Relaxed);
    }
}

/// A message that is about to leave, or has just left; none when its time had come before it was read.
async fn about_to_leave(app: &TestApp, aim: &Aim, contact: i64, number: i64) -> Option<i64> {
    let at = in_ms(aim.ahead.load(Ordering::Relaxed));
    let reply = app.api.post("/schedules", to(app, contact, &number.to_string(), &at)).await;
    if reply.status == 422 {
        return None;
    }
    let made = reply.data(201);
    let due_in = (time(&made["sendAt"]) - chrono::Utc::now()).num_milliseconds();
    tokio::time::sleep(aim.wait(due_in, number)).await;
    Some(id(made))
}

/// Cancels a message, or puts it off for long.
async fn ask(app: &TestApp, schedule: i64, is_cancel: bool) -> Reply {
    let path = format!("/schedules/{schedule}");
    if is_cancel {
        app.api.delete(&path).await
    } else {
        app.api.put(&path, json!({"sendAt": "2090-01-01T00:00:00.000Z"})).await
    }
}

async fn race(app: &TestApp, aim: &Aim, contact: i64, number: i64) -> Option<Race> {
    let schedule = about_to_leave(app, aim, contact, number).await?;
    let is_cancel = number % 2 == 0;
    let reply = ask(app, schedule, is_cancel).await;
    aim.learn(reply.status == 409);
    Some(Race { schedule, is_cancel, reply })
}

#[actix_web::test]
async fn a_message_leaves_or_is_changed_and_nobody_is_told_both() {
    let app = TestApp::start().await;
    let contacts = contacts(&app, RACES).await;
    let (app, aim) = (&app, &Aim::default());
    let races: Vec<Race> = stream::iter(contacts.into_iter().zip(0..))
        .map(|(contact, number)| race(app, aim, contact, number))
        .buffer_unordered(AT_ONCE)
        .filter_map(|race| async { race })
        .collect()
        .await;
    let settled = async || {
        let far = "2089-01-01T00:00:00Z";
        app.api.get(&format!("/schedules?status=pending&sendTo={far}")).await.body["data"] == json!([])
    };
    eventually("what was not called off has left", settled).await;
    let sent: Vec<Value> = app.api.all("/messages").await.into_iter().map(|message| message["id"].clone()).collect();
    let (mut obeyed, mut too_late) = (0, 0);
    for Race { schedule, is_cancel, reply } in &races {
        let now = shown(app, *schedule).await;
        let is_obeyed = match (reply.status.as_u16(), is_cancel) {
            (204, true) | (200, false) => true,
            (409, _) => false,
            _ => panic!("{}", reply.body),
        };
        let expected = match (is_obeyed, is_cancel) {
            (true, true) => "canceled",
            (true, false) => "pending",
            (false, _) => "sent",
        };
        assert_eq!(now["status"], expected, "{now}");
        assert_eq!(now["messageId"].is_null(), is_obeyed, "{now}");
        assert!(is_obeyed || sent.contains(&now["messageId"]), "{now}");
        *if is_obeyed { &mut obeyed } else { &mut too_late } += 1;
    }
    println!("{obeyed} were obeyed, {too_late} came too late");
    assert_eq!(sent.len(), too_late, "a message left that was called off, or left twice");
    assert!(races.len() as i64 > RACES / 2 && obeyed > 20 && too_late > 20, "there was no race");
}

/// How often two callers meet a message that leaves.
const MEETINGS: i64 = 300;

/// What two callers who asked at once were answered, and whether each wanted it canceled.
struct Meeting {
    schedule: i64,
    asked: [(bool, u16); 2],
}

async fn meet(app: &TestApp, aim: &Aim, contact: i64, number: i64) -> Option<Meeting> {
    let schedule = about_to_leave(app, aim, contact, number).await?;
    // Two cancels, a cancel and an update, or two updates.
    let cancels = [number % 3 < 2, number % 3 < 1];
    let (first, second) = futures_util::join!(ask(app, schedule, cancels[0]), ask(app, schedule, cancels[1]));
    aim.learn(first.status == 409 && second.status == 409);
    Some(Meeting { schedule, asked: [(cancels[0], first.status.as_u16()), (cancels[1], second.status.as_u16())] })
}

#[actix_web::test]
async fn of_two_who_cancel_or_change_at_once_none_is_told_what_is_not_so() {
    let app = TestApp::start().await;
    let contacts = contacts(&app, MEETINGS).await;
    let (app, aim) = (&app, &Aim::default());
    let meetings: Vec<Meeting> = stream::iter(contacts.into_iter().zip(0..))
        .map(|(contact, number)| meet(app, aim, contact, number))
        .buffer_unordered(AT_ONCE / 2)
        .filter_map(|meeting| async { meeting })
        .collect()
        .await;
    let settled = async || {
        let far = "2089-01-01T00:00:00Z";
        app.api.get(&format!("/schedules?status=pending&sendTo={far}")).await.body["data"] == json!([])
    };
    eventually("what was not called off has left", settled).await;
    let (mut sent, mut canceled, mut changed) = (0, 0, 0);
    for Meeting { schedule, asked } in &meetings {
        let cancels = asked.iter().filter(|asked| **asked == (true, 204)).count();
        let updates = asked.iter().filter(|asked| **asked == (false, 200)).count();
        let refused = asked.iter().filter(|(_, status)| *status == 409).count();
        assert_eq!(cancels + updates + refused, 2, "{asked:?}");
        assert!(cancels <= 1, "canceled twice: {asked:?}");
        let expected = match (cancels, updates) {
            (1, _) => "canceled",
            (_, 1..) => "pending",
            _ => "sent",
        };
        let now = shown(app, *schedule).await;
        assert_eq!(now["status"], expected, "{asked:?}: {now}");
        *match expected {
            "canceled" => &mut canceled,
            "pending" => &mut changed,
            _ => &mut sent,
        } += 1;
    }
    println!("{canceled} were canceled, {changed} were changed, {sent} left");
    assert_eq!(app.api.all("/messages").await.len(), sent, "a message left that was called off, or left twice");
    assert!(canceled > 20 && changed > 20 && sent > 5, "there was no race");
}
