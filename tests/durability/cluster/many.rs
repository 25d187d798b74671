//! How long it takes until another process serves thousands of companies.

use super::*;

/// Companies of the two processes together.
const MANY: i64 = 3_000;

/// From the end of a process to an answer of the next one: the limit of `docs/cluster.md`.
const TAKEOVER_TIME_MAX: Duration = Duration::from_secs(10);

/// Companies with a token, two channels, a queue and three users each.
async fn seed(cluster: &TestCluster) {
    let db = &cluster.database.db;
    let companies = "insert into companies (name) select 'Company ' || number from generate_series(1, $1) number";
    sqlx::query(companies).bind(MANY).execute(db).await.expect("companies");
    for statement in [
        "insert into tokens (company_id, name, prefix, hash, permissions)
         select id, 'token', 'sk_live', sha256(id::text::bytea), '{}' from companies",
        "insert into channels (company_id, name, type, status, public_key)
         select id, kind, kind, 'disconnected', kind || id from companies, unnest(array['whatsapp', 'webchat']) kind",
        "insert into queues (company_id, name) select id, 'Support' from companies",
        "insert into users (company_id, name, email)
         select id, 'User ' || number, number || '@' || id from companies, generate_series(1, 3) number",
    ] {
        sqlx::query(statement).execute(db).await.expect(statement);
    }
}

/// Kills one of two processes. Returns how long no process answered for its companies.
async fn takeover() -> Duration {
    let (cluster, one, two) = (TestCluster::new().await, Node::new("one"), Node::new("two"));
    seed(&cluster).await;
    let begun = Instant::now();
    let first = cluster.serve(&one);
    println!("a start with {MANY} companies: {:?}", begun.elapsed());
    let second = cluster.serve(&two);
    cluster.wait_until_owned(&one, 460..=564).await;
    cluster.wait_until_owned(&two, 460..=564).await;
    let addresses = Addresses::default();
    addresses.lock().push(first.address);
    let company = loop {
        let company = Company::create(&cluster.database.db, "Theirs").await;
        let node =
            "select node from companies c join slots s using (slot) join lives l on l.life = s.life where c.id = $1";
        let node: String =
            sqlx::query_scalar(node).bind(company.id).fetch_one(&cluster.database.db).await.expect("its process");
        if node == two.name {
            break company;
        }
    };
    let wait_for_answer = async || {
        let reply = ask(&addresses, &company, |api| api.request(Method::GET, "/tags")).await;
        reply.data(200);
    };
    wait_for_answer().await;

    second.kill();
    let begun = Instant::now();
    wait_for_answer().await;
    let took = begun.elapsed();
    let log = first.log();
    let line = log.lines().rfind(|line| line.contains("loaded slots")).expect("the slots were read");
    println!("taken over after {took:?}: {line}");
    assert!(log.contains("fenced an unresponsive process of the cluster"), "{log}");
    cluster.wait_until_owned(&one, 1024..=1024).await;
    drop(first);
    cluster.database.drop().await;
    took
}

#[actix_web::test]
async fn thousands_of_companies_are_taken_over() {
    takeover().await;
}

#[actix_web::test]
async fn thousands_of_companies_are_taken_over_in_time_measured() {
    let took = takeover().await;
    assert!(took < TAKEOVER_TIME_MAX, "{took:?}");
}
