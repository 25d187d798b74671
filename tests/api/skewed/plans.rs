//! The query plans that PostgreSQL reports for the statements of the service.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The statements that load the directory of a company (`tables/organization.rs`) and read more than a few rows.
const DIRECTORY: [&str; 5] = [
    "select * from queues where company_id = any($1)",
    "select company_id, queue_id, user_id from queue_users where company_id = any($1)",
    "select company_id, id, name, active from users where company_id = any($1)",
    "from wrapup_types t where t.company_id = any($1)",
    "select company_id, key, value from global_variables where company_id = any($1)",
];

/// The plans that were reported, one for each statement.
#[derive(Clone, Default)]
pub struct Plans(Arc<Mutex<Vec<Value>>>);

impl Plans {
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock())
    }
}

impl<S: tracing::Subscriber> Layer<S> for Plans {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Message(String);
        impl Visit for Message {
            fn record_str(&mut self, field: &Field, value: &str) {
                if field.name() == "message" {
                    self.0 = value.to_owned();
                }
            }

            fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
        }
        if event.metadata().target() != "sqlx::postgres::notice" {
            return;
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        if let Some(at) = message.0.find('{').filter(|_| message.0.starts_with("duration:")) {
            let plan = serde_json::from_str(&message.0[at..]).expect("a plan is JSON");
            self.0.lock().push(plan);
        }
    }
}

/// The number of rows that a plan's scans looked at, kept or not.
pub fn rows_read(plan: &Value) -> u64 {
    let figure = |name: &str| plan[name].as_u64().unwrap_or_default();
    let is_scan = plan["Relation Name"].is_string() || plan["Node Type"] == "Bitmap Index Scan";
    let read = figure("Actual Rows") + figure("Rows Removed by Filter") + figure("Rows Removed by Index Recheck");
    let own = if is_scan { read * figure("Actual Loops") } else { 0 };
    own + plan["Plans"].as_array().into_iter().flatten().map(rows_read).sum::<u64>()
}

/// The number of rows that statements read. Each statement that loads the directory counts once: how often the
/// directory is loaded while a call is made depends on when the notifications of earlier calls arrive.
pub fn rows_read_by(plans: &[Value]) -> u64 {
    let mut loaded: BTreeMap<&str, u64> = BTreeMap::new();
    let mut read = 0;
    for plan in plans {
        let (text, rows) = (plan["Query Text"].as_str().unwrap_or_default(), rows_read(&plan["Plan"]));
        match DIRECTORY.iter().find(|statement| text.contains(**statement)) {
            Some(statement) => {
                let most = loaded.entry(statement).or_default();
                *most = rows.max(*most);
            }
            None => read += rows,
        }
    }
    read + loaded.values().sum::<u64>()
}

#[test]
fn the_directory_is_loaded_with_these_statements() {
    let loads = concat!(
        include_str!("../../../persistence/src/tables/organization.rs"),
        include_str!("../../../persistence/src/tables/global_variables.rs")
    );
    for statement in DIRECTORY {
        assert!(loads.contains(statement), "{statement} no longer loads the directory");
    }
}
