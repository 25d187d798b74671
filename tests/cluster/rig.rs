//! The cluster under fault: its members, its database, its companies, and the load on all of them.

use std::time::{Duration, Instant};

use hotline_persistence::PgPool;
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::checker::{Verdict, check_held, check_shown};
use crate::database::Servers;
use crate::member::Member;
use crate::mix::{Door, Mix};
use crate::support::process::data_folder;
use crate::support::{Api, Company, Reply, eventually};

/// Companies at least; there are more until every member serves one.
const COMPANIES_MIN: usize = 3;

/// More are not needed to find one for each of three members: slots are given in equal shares.
const COMPANIES_MAX: usize = 30;

/// Callers of each company. All of them share two processors with three members and two servers.
const CALLERS: usize = 3;

/// How soon after a fault every company can be changed again.
pub const FIRST_CHANGE_MAX: Duration = Duration::from_secs(10);

/// How long a caller waits who asks whether a company can be changed.
const ASK_TIME_MAX: Duration = Duration::from_secs(2);

/// How soon callers that were not answered come again.
const COME_AGAIN: Duration = Duration::from_millis(100);

/// Pause of a caller that was told to come again.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a run goes on with `make cluster ARGS=long`.
const LONG: Duration = Duration::from_secs(8 * 60);

/// So many rounds of a fault; or, for long, as many as there is time for.
pub fn rounds(few: usize) -> impl Iterator<Item = usize> {
    let until = std::env::var_os("CLUSTER_LONG").map(|_| Instant::now() + LONG);
    (0..).take_while(move |round| until.map_or(*round < few, |until| Instant::now() < until))
}

pub struct Rig {
    pub members: Vec<Member>,
    pub servers: Servers,
    /// Connections of the run's own; another after a failover.
    pub db: PgPool,
    pub companies: Vec<Company>,
    doors: Vec<watch::Sender<Door>>,
    ticking: JoinHandle<()>,
    shared: TempDir,
}

/// The load on every company.
pub struct Load(Vec<Mix>);

impl Rig {
    /// Starts so many members, with companies in each.
    pub async fn start(members: usize) -> Self {
        let shared = data_folder();
        std::fs::create_dir(shared.path().join("media")).expect("a folder for files");
        let servers = Servers::start(shared.path()).await;
        let db = servers.primary.connect();
        let (over, _) = watch::channel(());
        let mut rig = Self {
            members: Vec::new(),
            servers,
            db,
            companies: Vec::new(),
            doors: Vec::new(),
            ticking: tokio::spawn(async move { over.closed().await }),
            shared,
        };
        for number in 0..members {
            rig.add(number).await;
        }
        rig.balanced().await;
        rig.found().await;
        rig
    }

    /// Adds a member.
    pub async fn add(&mut self, number: usize) {
        let mut member = Member::new(number, self.servers.primary.address).await;
        member.serve(self.shared.path());
        self.members.push(member);
    }

    /// Starts a member again.
    pub fn serve(&mut self, number: usize) {
        self.members[number].serve(self.shared.path());
        self.open_doors();
    }

    /// Waits until every member serves its share.
    pub async fn balanced(&self) {
        let share = 1024 / self.members.iter().filter(|member| member.is_up()).count() as i64;
        let statement = "select count(*) from slots s join lives l on l.life = s.life where l.node = $1";
        for member in self.members.iter().filter(|member| member.is_up()) {
            eventually("every member has its share", || async {
                let owned = sqlx::query_scalar::<_, i64>(statement).bind(&member.name).fetch_one(&self.db).await;
                owned.is_ok_and(|owned| owned >= share / 2)
            })
            .await;
        }
    }

    /// Makes companies until every member serves one.
    async fn found(&mut self) {
        loop {
            let owners = self.owners().await;
            let has_one = |member: &Member| owners.contains(&Some(member.name.clone()));
            if self.companies.len() >= COMPANIES_MIN && self.members.iter().all(has_one) {
                break;
            }
            assert!(self.companies.len() < COMPANIES_MAX, "no company for some member: {owners:?}");
            let name = format!("Company {}", self.companies.len());
            self.companies.push(Company::create(&self.db, &name).await);
        }
        for company in &self.companies {
            for member in &self.members {
                let api = member.api(&company.key);
                eventually("the company is seen everywhere", || async {
                    api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2)
                })
                .await;
            }
        }
        self.doors = self.companies.iter().map(|_| watch::channel(Door::default()).0).collect();
        self.open_doors();
        let doors = self.doors.clone();
        self.ticking = tokio::spawn(async move {
            // Whom one member did not answer comes to another, soon.
            loop {
                tokio::time::sleep(COME_AGAIN).await;
                doors.iter().for_each(|door| door.send_modify(|door| door.life += 1));
            }
        });
    }

    /// The member that serves each company; none: nobody does.
    pub async fn owners(&self) -> Vec<Option<String>> {
        let mut owners = Vec::new();
        for company in &self.companies {
            let statement =
                "select l.node from companies c join slots s on s.slot = c.slot join lives l on l.life = s.life
                 where c.id = $1";
            let owner = sqlx::query_scalar::<_, String>(statement).bind(company.id).fetch_optional(&self.db).await;
            owners.push(owner.expect("an answer"));
        }
        owners
    }

    /// The member that serves the first company.
    pub async fn owner(&self) -> usize {
        let owners = self.owners().await;
        let name = owners[0].clone().expect("somebody serves it");
        self.members.iter().position(|member| member.name == name).expect("a member")
    }

    /// Callers come to whoever is up.
    pub fn open_doors(&self) {
        self.open_doors_but(None);
    }

    /// The same, as a balancer that has taken one out.
    pub fn open_doors_but(&self, out: Option<usize>) {
        for (door, company) in self.doors.iter().zip(&self.companies) {
            let in_turn = self.members.iter().enumerate();
            let up = in_turn.filter(|(number, member)| member.is_up() && Some(*number) != out);
            let apis = up.map(|(_, member)| member.api(&company.key).within(Duration::from_secs(8))).collect();
            door.send_modify(|door| door.apis = apis);
        }
    }

    /// Begins the load.
    pub async fn load(&self) -> Load {
        let mut mixes = Vec::new();
        for (company, door) in self.companies.iter().zip(&self.doors) {
            let api = self.some_api(company);
            mixes.push(Mix::begin_with(&api, company, door.subscribe(), CALLERS).await);
        }
        Load(mixes)
    }

    fn some_api(&self, company: &Company) -> Api {
        let member = self.members.iter().find(|member| member.is_up()).expect("somebody is up");
        member.api(&company.key)
    }

    /// Waits until every company has been changed, live and plain, by a call that began after this; fails when that takes
    /// too long. Answers how long it took.
    pub async fn first_changes(&self, since: Instant) -> Duration {
        for company in &self.companies {
            let visitor = json!({"channelId": company.webchat, "visitor": {"name": "after a fault"}});
            self.changed(company, since, "/webchat/sessions", &visitor).await;
            let tag = json!({"name": format!("tag {}", rand::random::<u64>()), "color": "#112233"});
            self.changed(company, since, "/tags", &tag).await;
        }
        since.elapsed()
    }

    async fn changed(&self, company: &Company, since: Instant, path: &str, body: &serde_json::Value) {
        let up: Vec<_> = self.members.iter().filter(|member| member.is_up()).collect();
        for member in up.iter().cycle() {
            let request = member.api(&company.key).request(Method::POST, path).json(body).timeout(ASK_TIME_MAX);
            let reply = Reply::try_of(request).await;
            if reply.as_ref().is_some_and(|reply| reply.status == 201) {
                break;
            }
            let waited = since.elapsed();
            let words = || self.members.iter().map(Member::last_words).collect::<String>();
            assert!(waited < FIRST_CHANGE_MAX, "no {path} after {waited:?}: {reply:?}\n{}", words());
            tokio::time::sleep(PAUSE).await;
        }
        let waited = since.elapsed();
        assert!(waited < FIRST_CHANGE_MAX, "the first {path} took {waited:?}");
    }

    /// Ends the load on a cluster that is well, and compares with what there is.
    pub async fn end(mut self, load: Load) -> (Verdict, u64) {
        self.ticking.abort();
        self.doors.iter().for_each(|door| door.send_modify(|door| door.over = true));
        let mut seen = Vec::new();
        let (mut all, mut reads) = (Verdict::default(), 0);
        for (mix, company) in load.0.into_iter().zip(self.companies.clone()) {
            let api = self.some_api(&company);
            let record = mix.end_with(&api).await;
            reads += record.reads;
            for call in record.calls.iter().filter(|call| call.is_unknown()) {
                println!("nobody answered: {call:?}");
            }
            let shown = check_shown(&record, &api).await;
            seen.push((record, shown, company));
        }
        for member in self.members.iter_mut().filter(|member| member.is_up()) {
            member.stop();
        }
        for (record, shown, company) in seen {
            let verdict = check_held(&record, shown, &self.db, company.id.0).await;
            all.acknowledged += verdict.acknowledged;
            all.refused += verdict.refused;
            all.unknown += verdict.unknown;
            all.lost += verdict.lost;
            all.contradictions.extend(verdict.contradictions);
        }
        self.db.close().await;
        (all, reads)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.ticking.abort();
    }
}

impl Load {
    /// Waits until so many more changes of every company are acknowledged.
    pub async fn progress(&self, changes: u64) {
        for mix in &self.0 {
            mix.progress(changes).await;
        }
    }
}
