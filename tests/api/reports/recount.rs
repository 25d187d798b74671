//! The figures of reports, recounted from the tickets, events and messages that the API lists.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, TimeZone, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::Api;

/// A period from `from` until before `to`, whose days are those of a time zone.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    pub zone: Tz,
}

impl Period {
    pub fn query(&self) -> String {
        let time = |at: DateTime<Utc>| at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let zone: String = form_urlencoded::byte_serialize(self.zone.name().as_bytes()).collect();
        format!("from={}&to={}&timeZone={zone}", time(self.from), time(self.to))
    }

    fn contains(&self, at: DateTime<Utc>) -> bool {
        (self.from..self.to).contains(&at)
    }

    fn day(&self, at: DateTime<Utc>) -> NaiveDate {
        self.zone.from_utc_datetime(&at.naive_utc()).date_naive()
    }

    /// Every day that is at least partly in the period.
    fn days(&self) -> Vec<NaiveDate> {
        let last = self.day(self.to - chrono::TimeDelta::milliseconds(1));
        self.day(self.from).iter_days().take_while(|day| *day <= last).collect()
    }
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is not a time"))
}

/// A company's tickets with their events, its messages, and the names of its queues, users and channels by id.
pub struct Records {
    tickets: Vec<(Value, Vec<Value>)>,
    messages: Vec<Value>,
    names: HashMap<(&'static str, i64), String>,
}

/// The queue and the user of a ticket.
type Assignment = (Option<i64>, Option<i64>);

/// An opening, a closing, a reopening or an answer of a ticket.
struct Occurrence {
    kind: &'static str,
    at: DateTime<Utc>,
    /// Milliseconds since the last opening or reopening; 0 for these themselves.
    elapsed_ms: i64,
    assignment: Assignment,
    channel: i64,
}

impl Records {
    pub async fn read(api: &Api) -> Self {
        let mut tickets = Vec::new();
        for ticket in api.all("/tickets").await {
            let events = api.all(&format!("/tickets/{}/events", id(&ticket))).await;
            tickets.push((ticket, events));
        }
        let mut names = HashMap::new();
        for (noun, path) in [("queue", "/queues"), ("user", "/users"), ("channel", "/channels")] {
            for row in api.all(path).await {
                names.insert((noun, id(&row)), row["name"].as_str().expect("name").to_owned());
            }
        }
        Self { tickets, messages: api.all("/messages").await, names }
    }

    fn occurrences(&self) -> Vec<Occurrence> {
        let mut all = Vec::new();
        for (ticket, events) in &self.tickets {
            let channel = id(&ticket["channel"]);
            let mut assignment: Assignment = (None, None);
            let mut assignments: Vec<(DateTime<Utc>, Assignment)> = Vec::new();
            let mut opened_at: Option<DateTime<Utc>> = None;
            let mut openings = Vec::new();
            for event in events {
                let at = time(&event["createdAt"]);
                let event_type = event["type"].as_str().expect("type");
                if ["opened", "transferred"].contains(&event_type) {
                    assignment = (event["to"]["queue"]["id"].as_i64(), event["to"]["assignedTo"]["id"].as_i64());
                    assignments.push((at, assignment));
                }
                let (kind, elapsed_ms) = match event_type {
                    "opened" => ("opened", 0),
                    "reopened" => ("reopened", 0),
                    "closed" => ("closed", (at - opened_at.expect("it was opened")).num_milliseconds()),
                    _ => continue,
                };
                if kind != "closed" {
                    opened_at = Some(at);
                    openings.push(at);
                }
                all.push(Occurrence { kind, at, elapsed_ms, assignment, channel });
            }
            let is_answer = |message: &&Value| {
                message["ticketId"] == ticket["id"]
                    && message["direction"] == "outbound"
                    && ["api", "user"].contains(&message["source"].as_str().expect("source"))
            };
            let answers: Vec<DateTime<Utc>> =
                self.messages.iter().filter(is_answer).map(|answer| time(&answer["createdAt"])).collect();
            for (index, opened) in openings.iter().enumerate().filter(|_| ticket["creationSource"] == "contact") {
                let next = openings.get(index + 1);
                let is_of_opening = |at: &&DateTime<Utc>| *at >= opened && next.is_none_or(|next| *at < next);
                if let Some(at) = answers.iter().find(is_of_opening).copied() {
                    // A transfer that follows the answer has the same time, so only earlier assignments count.
                    let assignment =
                        assignments.iter().rev().find(|(since, _)| *since < at).expect("the opening is earlier").1;
                    let elapsed_ms = (at - *opened).num_milliseconds();
                    all.push(Occurrence { kind: "answered", at, elapsed_ms, assignment, channel });
                }
            }
        }
        all
    }

    /// The rows of `/reports/tickets`.
    pub fn tickets(&self, period: Period, group_by: &str) -> Vec<Value> {
        let mut rows: BTreeMap<Key, HashMap<&str, (i64, i64)>> = BTreeMap::new();
        for occurrence in self.occurrences().into_iter().filter(|occurrence| period.contains(occurrence.at)) {
            let key = match group_by {
                "day" => Key::Day(period.day(occurrence.at)),
                "queue" => occurrence.assignment.0.into(),
                "user" => occurrence.assignment.1.into(),
                _ => Some(occurrence.channel).into(),
            };
            let sums = rows.entry(key).or_default().entry(occurrence.kind).or_default();
            *sums = (sums.0 + 1, sums.1 + occurrence.elapsed_ms);
        }
        self.labelled_rows(rows, period, group_by, |sums| {
            let count = |what| sums.get(what).map_or(0, |sums| sums.0);
            let average = |what| sums.get(what).map(|(count, ms)| seconds(ms + count / 2, *count));
            json!({
                "opened": count("opened"),
                "closed": count("closed"),
                "reopened": count("reopened"),
                "avgFirstResponseSeconds": average("answered"),
                "avgResolutionSeconds": average("closed"),
            })
        })
    }

    /// The rows of `/reports/messages`.
    pub fn messages(&self, period: Period, group_by: &str) -> Vec<Value> {
        let mut rows: BTreeMap<Key, HashMap<&str, i64>> = BTreeMap::new();
        for message in &self.messages {
            let at = time(&message["createdAt"]);
            let direction = message["direction"].as_str().expect("direction");
            if direction == "internal" || !period.contains(at) {
                continue;
            }
            let key = match group_by {
                "day" => Key::Day(period.day(at)),
                "channel" => message["channelId"].as_i64().into(),
                "user" => message["user"]["id"].as_i64().into(),
                _ => Key::Word(message["type"].as_str().expect("type").to_owned()),
            };
            let sums = rows.entry(key).or_default();
            *sums.entry(direction).or_default() += 1;
            *sums.entry("failed").or_default() += i64::from(message["status"] == "failed");
        }
        self.labelled_rows(rows, period, group_by, |sums| {
            let count = |what| sums.get(what).copied().unwrap_or_default();
            json!({"inbound": count("inbound"), "outbound": count("outbound"), "failed": count("failed")})
        })
    }

    /// What the service desk shows of open tickets, and since when the longest-waiting one has waited.
    pub fn desk(&self) -> (Value, Option<DateTime<Utc>>) {
        let open: Vec<_> = self.tickets.iter().filter(|(ticket, _)| ticket["status"] == "open").collect();
        let waiting: Vec<_> = open.iter().filter_map(|(ticket, events)| self.waiting_since(ticket, events)).collect();
        let count = |is_counted: &dyn Fn(&Value) -> bool| open.iter().filter(|(ticket, _)| is_counted(ticket)).count();
        let by = |noun: &str, group: &dyn Fn(i64) -> Value| {
            let mut ids: Vec<_> = self.names.iter().filter(|((one, _), _)| *one == noun).collect();
            ids.sort_by_key(|((_, id), _)| *id);
            let row = |((_, id), name): &(&(&str, i64), &String)| {
                let mut row = group(*id);
                (row["id"], row["name"]) = (json!(id), json!(name));
                row
            };
            ids.iter().map(row).collect::<Vec<_>>()
        };
        let desk = json!({
            "openTickets": open.len(),
            "unassignedTickets": count(&|ticket| ticket["assignedTo"].is_null()),
            "waitingContact": open.len() - waiting.len(),
            "waitingAgent": waiting.len(),
            "queues": by("queue", &|id| {
                let is_in_queue = |ticket: &Value| ticket["queue"]["id"] == id;
                let unassigned = count(&|ticket| is_in_queue(ticket) && ticket["assignedTo"].is_null());
                json!({"open": count(&is_in_queue), "unassigned": unassigned})
            }),
            "users": by("user", &|id| json!({"open": count(&|ticket| ticket["assignedTo"]["id"] == id)})),
        });
        (desk, waiting.into_iter().min())
    }

    /// The time of the contact's first message that is not answered, or `None`.
    fn waiting_since(&self, ticket: &Value, events: &[Value]) -> Option<DateTime<Utc>> {
        let closed = events.iter().rev().find(|event| event["type"] == "closed").map(|event| time(&event["createdAt"]));
        let of_ticket = self.messages.iter().filter(|message| message["ticketId"] == ticket["id"]);
        of_ticket.filter(|message| closed.is_none_or(|closed| time(&message["createdAt"]) > closed)).fold(
            None,
            |waiting, message| match message["direction"].as_str() {
                Some("inbound") => waiting.or_else(|| Some(time(&message["createdAt"]))),
                Some("outbound") => None,
                _ => waiting,
            },
        )
    }

    /// The number of closings by wrap-up type. A closing counts for the last type set before the next reopening.
    pub fn wrapups(&self, period: Period, queue: Option<i64>) -> BTreeMap<i64, i64> {
        let mut counts = BTreeMap::new();
        for (_, events) in &self.tickets {
            let mut queue_then = None;
            for (index, event) in events.iter().enumerate() {
                if ["opened", "transferred"].contains(&event["type"].as_str().expect("type")) {
                    queue_then = event["to"]["queue"]["id"].as_i64();
                }
                if event["type"] != "closed" || !period.contains(time(&event["createdAt"])) {
                    continue;
                }
                let until = events[index..].iter().take_while(|event| event["type"] != "reopened");
                let last_set = until.filter(|event| !event["to"]["wrapupType"].is_null()).last();
                if let Some(setting) = last_set.filter(|_| queue.is_none_or(|queue| queue_then == Some(queue))) {
                    *counts.entry(id(&setting["to"]["wrapupType"])).or_default() += 1;
                }
            }
        }
        counts
    }

    fn labelled_rows<S: Default>(
        &self,
        mut rows: BTreeMap<Key, S>,
        period: Period,
        group_by: &str,
        figures: impl Fn(&S) -> Value,
    ) -> Vec<Value> {
        if group_by == "day" {
            for day in period.days() {
                rows.entry(Key::Day(day)).or_default();
            }
        }
        let row = |(key, sums): (&Key, &S)| {
            let (key, label) = match key {
                Key::Day(day) => (json!(day.to_string()), json!(day.to_string())),
                Key::Word(word) => (json!(word), json!(word)),
                Key::Id(id) => (json!(id), json!(self.label(group_by, *id))),
                Key::None => (Value::Null, Value::Null),
            };
            let mut row = figures(sums);
            row["key"] = key;
            row["label"] = label;
            row
        };
        rows.iter().map(row).collect()
    }

    fn label(&self, group_by: &str, id: i64) -> Option<String> {
        self.names.iter().find(|((noun, known), _)| *noun == group_by && *known == id).map(|(_, name)| name.clone())
    }
}

#[allow(clippy::cast_precision_loss)] // A few hours in milliseconds fit an `f64` exactly.
fn seconds(ms: i64, count: i64) -> f64 {
    (ms / count) as f64 / 1000.0
}

/// The key of a row, in the order of the rows.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Day(NaiveDate),
    Word(String),
    Id(i64),
    None,
}

impl From<Option<i64>> for Key {
    fn from(id: Option<i64>) -> Self {
        id.map_or(Self::None, Self::Id)
    }
}
