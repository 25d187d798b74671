//! The requests to the grown database: every list of the API document with every filter, alone and in pairs, and every
//! report. A new list or filter is included without being named here.

use hotline_persistence::PgPool;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::seed::Company;

/// Rows of a page.
const PAGE_ROWS: u32 = 100;

/// The page that is requested beside the first.
const FAR_PAGE: u32 = 100;

/// Lists whose filters are also requested in pairs: those that grow with use.
const LARGE_LISTS: [&str; 4] = ["/contacts", "/tickets", "/messages", "/crm/cards"];

/// The parameter with the order of open tickets.
const SORT: &str = "sort";

/// A request that is measured.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    /// Maximum p95, in milliseconds.
    pub aim_ms: f64,
}

/// The statements that find [`Known`] ids, by the name of their filter. No row has this `profileId`, because finding
/// nothing must not take long either.
const IDS: [(&str, &str); 19] = [
    ("contactId", "select contact_id from tickets where company_id = $1 order by id desc limit 1"),
    ("ticketId", "select id from tickets where company_id = $1 order by id desc limit 1"),
    ("tagId", "select max(id) from tags where company_id = $1"),
    ("contactListId", "select max(id) from contact_lists where company_id = $1"),
    ("campaignId", "select coalesce(max(id), 0) from campaigns where company_id = $1"),
    ("webhookId", "select max(id) from webhooks where company_id = $1"),
    ("queueId", "select max(id) from queues where company_id = $1"),
    ("userId", "select max(id) from users where company_id = $1"),
    ("assignedToUserId", "select max(id) from users where company_id = $1"),
    ("channelId", "select min(id) from channels where company_id = $1"),
    ("wrapupTypeId", "select max(id) from wrapup_types where company_id = $1"),
    ("categoryId", "select max(id) from wrapup_categories where company_id = $1"),
    ("boardId", "select max(id) from boards where company_id = $1"),
    ("listId", "select max(id) from board_lists where company_id = $1"),
    ("crmBoardListId", "select max(id) from board_lists where company_id = $1"),
    ("statusId", "select max(id) from card_statuses where company_id = $1"),
    ("businessId", "select max(id) from businesses where company_id = $1"),
    ("originId", "select max(id) from card_origins where company_id = $1"),
    ("profileId", "select 1::bigint from companies where id = $1"),
];

/// Ids of the measured company, for filters and paths.
struct Known(Vec<(&'static str, i64)>);

impl Known {
    async fn find(db: &PgPool, company: &Company) -> Outcome<Self> {
        let mut known = Vec::new();
        for (name, statement) in IDS {
            known.push((name, sqlx::query_scalar(statement).bind(company.id).fetch_one(db).await?));
        }
        Ok(Self(known))
    }

    fn id(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, id)| *id)
    }

    /// The values to request of a filter; several, if one value has few rows and another many.
    fn values(&self, name: &str, schema: &Value) -> Vec<String> {
        if name == SORT {
            return ["activity", "waiting"].map(str::to_owned).to_vec();
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        if let Some(id) = self.id(name) {
            return vec![id.to_string()];
        }
        let days = |days| (chrono::Utc::now() - chrono::TimeDelta::days(days)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        match (name, schema["type"].as_str(), schema["format"].as_str()) {
            (_, Some("boolean"), _) => vec!["true".to_owned(), "false".to_owned()],
            (_, _, Some("date-time")) if name == "from" => vec![days(7)],
            (_, _, Some("date-time")) => vec![days(300), days(1)],
            ("search", ..) => ["ana", "ana 1234", "nobody is called this"].map(str::to_owned).to_vec(),
            ("number", ..) => vec!["5531000000777".to_owned()],
            ("email", ..) => vec!["c777@example.com".to_owned()],
            ("code", ..) => vec!["code 777".to_owned()],
            ("origin", ..) => vec!["shop".to_owned()],
            ("after", ..) => vec!["1".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// A filter with a value, as part of a query.
fn filter(name: &str, value: &str) -> String {
    // The API sorts only open tickets.
    let before = if name == SORT { "&status=open" } else { "" };
    format!("{before}&{}", form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish())
}

/// Every list of the document.
pub async fn lists(db: &PgPool, company: &Company, aim_ms: f64) -> Outcome<Vec<Request>> {
    lists_with(&Known::find(db, company).await?, aim_ms)
}

/// Fails if a list has a filter or path without a known value. Called before the database is generated, which takes
/// long.
pub fn check() -> Outcome<()> {
    let known = Known(IDS.iter().map(|(name, _)| (*name, 1)).collect());
    lists_with(&known, 0.0).map(|_| ())
}

fn lists_with(known: &Known, aim_ms: f64) -> Outcome<Vec<Request>> {
    let document = hotline::routes::document();
    let mut requests = Vec::new();
    for (path, item) in document["paths"].as_object().ok_or("no paths")? {
        let Some(path) = path.strip_prefix(hotline::web::admission::modules::API) else { continue };
        let Some(parameters) = item["get"]["parameters"].as_array() else { continue };
        // Lists of a provider's templates, and of a visitor's session.
        let is_elsewhere = path.ends_with("/templates") || path.contains("{sessionId}");
        if is_elsewhere || !parameters.iter().any(|parameter| parameter["name"] == "page") {
            continue;
        }
        let mut path_with_ids = path.to_owned();
        let mut filters: Vec<(&str, Vec<String>)> = Vec::new();
        for parameter in parameters {
            let name = parameter["name"].as_str().ok_or("a parameter has no name")?;
            if parameter["in"] == "path" {
                let id = known.id(name).ok_or_else(|| format!("{path} has an id that is not known here"))?;
                path_with_ids = path_with_ids.replace(&format!("{{{name}}}"), &id.to_string());
            } else if !["page", "perPage", "order", "cursor"].contains(&name) {
                let values = known.values(name, &parameter["schema"]);
                if values.is_empty() {
                    return Err(format!("{path} has a filter {name} that no value is known for").into());
                }
                filters.push((name, values));
            }
        }
        let mut queries = vec![String::new(), "&order=desc".to_owned()];
        for (name, values) in &filters {
            queries.extend(values.iter().map(|value| filter(name, value)));
        }
        if LARGE_LISTS.contains(&path) {
            queries.extend(pairs(&filters));
        }
        for query in queries {
            for page in [1, FAR_PAGE] {
                let path = format!("{path_with_ids}?perPage={PAGE_ROWS}&page={page}{query}");
                requests.push(Request { path, aim_ms });
            }
        }
    }
    Ok(requests)
}

/// Every pair of filters, each with its first value, in both orders of the list: combined filters mostly request the
/// newest rows.
fn pairs(filters: &[(&str, Vec<String>)]) -> Vec<String> {
    let mut pairs = Vec::new();
    for (index, (one, values)) in filters.iter().enumerate() {
        for (other, other_values) in &filters[index + 1..] {
            // The two ends of a time span: the later value is the end.
            let is_span =
                one.ends_with("From") && other.ends_with("To") && one[..one.len() - 4] == other[..other.len() - 2];
            let until = if is_span { other_values.last() } else { other_values.first() };
            // `filter` adds a status to `sort`.
            let is_sorted_status = *one == "status" && *other == SORT;
            if let (Some(value), Some(until), false) = (values.first(), until, is_sorted_status) {
                let pair = filter(one, value) + &filter(other, until);
                pairs.push(format!("{pair}&order=desc"));
                pairs.push(pair);
            }
        }
    }
    pairs
}

/// Every report, by everything it can be grouped by, over a month and over a year, and the dashboards.
pub fn reports(aim_ms: f64, dashboard_aim_ms: f64) -> Outcome<Vec<Request>> {
    let document = hotline::routes::document();
    let day = |days| (chrono::Utc::now() - chrono::TimeDelta::days(days)).format("%Y-%m-%dT00:00:00Z").to_string();
    let mut requests = Vec::new();
    for (path, item) in document["paths"].as_object().ok_or("no paths")? {
        let Some(path) = path.strip_prefix(hotline::web::admission::modules::API) else { continue };
        if path.starts_with("/dashboards/") {
            requests.push(Request { path: path.to_owned(), aim_ms: dashboard_aim_ms });
        }
        if !path.starts_with("/reports/") {
            continue;
        }
        let parameters = item["get"]["parameters"].as_array().ok_or("a report has no parameters")?;
        let groups = parameters.iter().find(|parameter| parameter["name"] == "groupBy");
        let groups: Vec<String> = match groups.and_then(|groups| groups["schema"]["enum"].as_array()) {
            Some(groups) => groups.iter().filter_map(Value::as_str).map(|group| filter("groupBy", group)).collect(),
            None => vec![String::new()],
        };
        for group in groups {
            for days in [30, 365] {
                for zone in ["America/Sao_Paulo", "Asia/Kathmandu"] {
                    let zone = filter("timeZone", zone);
                    let path = format!("{path}?from={}&to={}{zone}{group}", day(days), day(0));
                    requests.push(Request { path, aim_ms });
                }
            }
        }
    }
    Ok(requests)
}
