//! The cluster under test: its members, its database, its companies, and the load on all of them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, select_all};
use hotline_persistence::PgPool;
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::balancer::{Balancer, Rule};
use crate::checker::{Verdict, check_held, check_shown};
use crate::database::Servers;
use crate::load::Load;
use crate::member::Member;
use crate::mix::{Door, Mix};
use crate::proxy::Flow;
use crate::support::process::{binary, data_folder, run};
use crate::support::{Api, Company, Reply, eventually, patience, wrong_events};

/// Enough companies that each of three members serves one, since slots are given in equal shares.
const COMPANIES_MAX: usize = 30;

/// Callers of each company. All of them share two processors with three members and two servers.
const CALLERS: usize = 3;

/// How soon after a fault every company can be changed again.
pub const FIRST_CHANGE_MAX: Duration = Duration::from_secs(10);

/// The same in the demo, which shows how soon it was, whatever else the machine does.
const SHOWN_CHANGE_MAX: Duration = Duration::from_secs(60);

/// How long `first_changes` waits for each answer.
const ASK_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a caller waits: longer than its edge (the member that forwards its calls to the owner) does.
const CALL_TIME_MAX: Duration = Duration::from_secs(8);

/// The pause before a caller without an answer tries another member.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The pause of `first_changes` between two requests to a member.
const PAUSE: Duration = Duration::from_millis(50);

/// Prints a note for anyone who examines a failed run.
fn note(text: &str) {
    if !crate::IS_WATCHED {
        println!("{text}");
    }
}

pub struct Rig {
    pub members: Vec<Member>,
    pub servers: Servers,
    /// The run's own connections; replaced after a failover.
    pub db: PgPool,
    pub companies: Vec<Company>,
    /// The addresses of the members that are up, for callers who choose among them.
    pub addresses: watch::Sender<Vec<SocketAddr>>,
    doors: Vec<watch::Sender<Door>>,
    /// The balancer of the callers. `None`: they choose a member themselves.
    balancer: Option<Balancer>,
    retry_ticker: JoinHandle<()>,
    shared: TempDir,
}

impl Rig {
    /// Starts this many members, with companies in each.
    pub async fn start(members: usize) -> Self {
        Self::start_with(members, false, binary()).await
    }

    /// The same, with another binary.
    pub async fn start_with_binary(binary: PathBuf, members: usize) -> Self {
        Self::start_with(members, false, binary).await
    }

    /// The same, with wall clocks that can be set.
    pub async fn start_with_clocks(members: usize) -> Self {
        Self::start_with(members, true, binary()).await
    }

    async fn start_with(members: usize, clocks: bool, binary: PathBuf) -> Self {
        let begun = Instant::now();
        let shared = data_folder();
        std::fs::create_dir(shared.path().join("media")).expect("a folder for files");
        let servers = Servers::start(shared.path()).await;
        let servers_started = begun.elapsed();
        let db = servers.primary.connect();
        let (over, _) = watch::channel(());
        let mut rig = Self {
            members: Vec::new(),
            servers,
            db,
            companies: Vec::new(),
            addresses: watch::Sender::default(),
            doors: Vec::new(),
            balancer: None,
            retry_ticker: tokio::spawn(async move { over.closed().await }),
            shared,
        };
        for number in 0..members {
            rig.add(number, clocks, &binary).await;
        }
        let members_started = begun.elapsed();
        rig.wait_until_balanced().await;
        let balanced = begun.elapsed();
        rig.create_companies().await;
        let companies_created = begun.elapsed();
        note(&format!(
            "servers {servers_started:.1?}, members {members_started:.1?}, balanced {balanced:.1?}, \
             companies {companies_created:.1?}"
        ));
        rig
    }

    async fn add(&mut self, number: usize, clock: bool, binary: &Path) {
        let mut member = Member::new(number, self.servers.primary.address, clock).await;
        binary.clone_into(&mut member.binary);
        member.serve(self.shared.path());
        self.members.push(member);
    }

    /// Starts a member again.
    pub fn serve(&mut self, number: usize) {
        self.members[number].serve(self.shared.path());
        self.open_doors();
    }

    /// Starts members again that were killed or drained: only a new process is given companies. Waits until all have
    /// their share.
    pub async fn serve_again(&mut self, members: &[usize]) {
        for member in members {
            if self.members[*member].is_up() {
                self.members[*member].stop();
            }
            self.serve(*member);
        }
        self.wait_until_balanced().await;
    }

    /// Waits until every member serves its share.
    pub async fn wait_until_balanced(&self) {
        let share = 1024 / self.up().count() as i64;
        for member in self.up() {
            eventually("every member has its share", || async { self.slots_of(&member.name).await >= share / 2 }).await;
        }
    }

    /// How many slots the member of this name serves.
    pub async fn slots_of(&self, member: &str) -> i64 {
        let statement = "select count(*) from slots s join lives l on l.life = s.life where l.node = $1";
        sqlx::query_scalar(statement).bind(member).fetch_one(&self.db).await.expect("a count")
    }

    /// The members that have a life, in the order of their names, each with the number of its life.
    pub async fn lives(&self) -> Vec<(String, i64)> {
        sqlx::query_as("select node, life from lives order by node").fetch_all(&self.db).await.expect("lives")
    }

    /// The folder of what all members share.
    pub fn shared(&self) -> &Path {
        self.shared.path()
    }

    /// Creates companies until every member serves one, and keeps one of each member.
    async fn create_companies(&mut self) {
        loop {
            let owners = self.owners().await;
            let of_each = self.members.iter().map(|member| {
                let owned = owners.iter().position(|owner| owner.as_ref() == Some(&member.name))?;
                self.companies.get(owned).cloned()
            });
            if let Some(of_each) = of_each.collect() {
                self.companies = of_each;
                break;
            }
            assert!(self.companies.len() < COMPANIES_MAX, "no company for some member: {owners:?}");
            let name = format!("Company {}", self.companies.len());
            self.companies.push(Company::create(&self.db, &name).await);
        }
        for company in &self.companies {
            self.wait_until_known(company).await;
        }
        self.doors = self.companies.iter().map(|_| watch::channel(Door::default()).0).collect();
        self.open_doors();
        let doors = self.doors.clone();
        self.retry_ticker = tokio::spawn(async move {
            // A caller without an answer from one member soon comes to another.
            loop {
                tokio::time::sleep(RETRY_PAUSE).await;
                doors.iter().for_each(|door| door.send_modify(|door| door.life += 1));
            }
        });
    }

    /// Makes a company without load that this member serves, and waits until every member has read it.
    pub async fn another_company_of(&self, member: usize) -> Company {
        for number in 0..COMPANIES_MAX {
            let company = Company::create(&self.db, &format!("Another {number}")).await;
            if self.owner_name(&company).await.as_ref() == Some(&self.members[member].name) {
                self.wait_until_known(&company).await;
                return company;
            }
        }
        panic!("no company for {}", self.members[member].name);
    }

    async fn wait_until_known(&self, company: &Company) {
        for member in &self.members {
            let api = member.api(&company.key);
            eventually("the company is seen everywhere", || async {
                api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2)
            })
            .await;
        }
    }

    /// The name of the member that serves a company.
    pub async fn owner_name(&self, company: &Company) -> Option<String> {
        let statement = "select l.node from companies c join slots s on s.slot = c.slot join lives l on l.life = s.life
             where c.id = $1";
        sqlx::query_scalar(statement).bind(company.id).fetch_optional(&self.db).await.expect("an answer")
    }

    /// The name of the member that serves each company; `None`: none does.
    pub async fn owners(&self) -> Vec<Option<String>> {
        let mut owners = Vec::new();
        for company in &self.companies {
            owners.push(self.owner_name(company).await);
        }
        owners
    }

    /// The member that serves the first company.
    pub async fn owner(&self) -> usize {
        self.owner_of(&self.companies[0]).await
    }

    /// The member that serves this company.
    pub async fn owner_of(&self, company: &Company) -> usize {
        let name = self.owner_name(company).await.expect("somebody serves it");
        self.members.iter().position(|member| member.name == name).expect("a member")
    }

    /// Makes a member give all of its companies to the others (`hotline cluster drain`); it stays, as an edge.
    pub async fn drain(&self, member: usize) {
        let (command, url) = (data_folder(), crate::database::url(self.servers.primary.address));
        let name = &self.members[member].name;
        let drained = run(command.path(), &["cluster", "drain", name, "--database-url", &url]);
        assert!(drained.status.success(), "{}", String::from_utf8_lossy(&drained.stderr));
        eventually("it serves nothing", || async { self.slots_of(name).await == 0 }).await;
    }

    /// Callers send their requests to the members that are up.
    pub fn open_doors(&self) {
        self.addresses.send_replace(self.up().map(Member::address).collect());
        if let Some(balancer) = &self.balancer {
            return balancer.set(self.up().map(Member::address).collect());
        }
        for (door, company) in self.doors.iter().zip(&self.companies) {
            let apis = self.up().map(|member| member.api(&company.key).within(CALL_TIME_MAX)).collect();
            door.send_modify(|door| door.apis = apis);
        }
    }

    /// From here on a balancer chooses the member of each call.
    pub fn balance(&mut self, by: Rule) {
        let doors = self.companies.iter().cloned().zip(self.doors.iter().cloned()).collect();
        self.balancer = Some(Balancer::in_front_of(self.up().map(Member::address).collect(), doors, by));
    }

    /// The standby takes the primary's place, and every member's new connections lead there.
    pub async fn fail_over(&mut self) {
        self.servers.fail_over().await;
        for member in &self.members {
            member.to_database.set_target(self.servers.primary.address);
        }
        self.db = self.servers.primary.connect();
    }

    /// Nothing passes any longer between this member and the others, in either direction.
    pub fn isolate(&self, member: usize) {
        let isolated = &self.members[member];
        isolated.from_peers.set_flow(Flow::Held, Flow::Held);
        let others = self.up().filter(|other| other.name != isolated.name);
        others.for_each(|other| other.from_peers.hold_process(Some(isolated.pid())));
    }

    /// Lets everything pass between members again.
    pub fn rejoin(&self) {
        for member in &self.members {
            member.from_peers.set_flow(Flow::Open, Flow::Open);
            member.from_peers.hold_process(None);
        }
    }

    fn up(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_up())
    }

    /// Begins the load.
    pub async fn load(&self) -> Load {
        let begun = Instant::now();
        let mixes = self.companies.iter().zip(&self.doors).map(async |(company, door)| {
            let api = self.some_api(company);
            Mix::begin_with(&api, company, door.subscribe(), CALLERS).await
        });
        let mixes = join_all(mixes).await;
        note(&format!("the load of {} companies began within {:.1?}", mixes.len(), begun.elapsed()));
        Load(mixes)
    }

    fn some_api(&self, company: &Company) -> Api {
        let member = self.up().next().expect("somebody is up");
        member.api(&company.key)
    }

    /// Waits until every company has been changed, live and plain, by a call that began after this one; fails if that
    /// takes too long. Returns how long after `since` it was.
    pub async fn first_changes(&self, since: Instant) -> Duration {
        let changes = self.companies.iter().map(async |company| {
            let visitor = json!({"channelId": company.webchat, "visitor": {"name": "after a fault"}});
            self.request_change(company, since, "/webchat/sessions", &visitor).await;
            let tag = json!({"name": format!("tag {}", rand::random::<u64>()), "color": "#112233"});
            self.request_change(company, since, "/tags", &tag).await;
        });
        join_all(changes).await;
        since.elapsed()
    }

    /// Requests a change at all members in parallel until one makes it: a paused member delays no request to another.
    async fn request_change(&self, company: &Company, since: Instant, path: &str, body: &serde_json::Value) {
        let attempts = Mutex::new(String::new());
        let ask = async |member: &Member| {
            loop {
                let begun = since.elapsed();
                let request = member.api(&company.key).request(Method::POST, path).json(body).timeout(ASK_TIME_MAX);
                let status = Reply::try_of(request).await.map(|reply| reply.status);
                if status.is_some_and(|status| status == 201) {
                    return;
                }
                let line = format!("{} {begun:.1?} to {:.1?}: {status:?}\n", member.name, since.elapsed());
                attempts.lock().push_str(&line);
                tokio::time::sleep(PAUSE).await;
            }
        };
        let asking: Vec<_> = self.up().map(|member| Box::pin(ask(member))).collect();
        let time_max = if crate::IS_WATCHED { patience(SHOWN_CHANGE_MAX) } else { FIRST_CHANGE_MAX };
        let time_left = time_max.saturating_sub(since.elapsed());
        let changed = timeout(time_left, select_all(asking)).await;
        let last_words = || self.members.iter().map(Member::last_words).collect::<String>();
        let attempts = attempts.lock();
        assert!(changed.is_ok(), "no {path} of company {} after {time_max:?}:\n{attempts}{}", company.id, last_words());
    }

    /// Ends the load on a healthy cluster, and compares its record with the database. Returns the verdict, and how many
    /// reads there were.
    pub async fn end(mut self, load: Load) -> (Verdict, u64) {
        self.retry_ticker.abort();
        self.balancer = None;
        self.doors.iter().for_each(|door| door.send_modify(|door| door.over = true));
        let mut seen = Vec::new();
        let (mut all, mut reads) = (Verdict::default(), 0);
        for (mix, company) in load.0.into_iter().zip(self.companies.clone()) {
            let api = self.some_api(&company);
            let record = mix.end_with(&api).await;
            reads += record.reads;
            for call in record.calls.iter().filter(|call| call.is_unknown()) {
                note(&format!("nobody answered: {call:?}"));
            }
            let shown = check_shown(&record, &api).await;
            seen.push((record, shown, company));
        }
        // All at once: no member is left to give slots to.
        self.up().for_each(|member| member.signal(Signal::SIGTERM));
        self.members.iter_mut().filter(|member| member.is_up()).for_each(Member::wait_for_clean_stop);
        for (record, shown, company) in seen {
            let verdict = check_held(&record, shown, &self.db, company.id.0).await;
            all.acknowledged += verdict.acknowledged;
            all.refused += verdict.refused;
            all.unknown += verdict.unknown;
            all.lost += verdict.lost;
            all.contradictions.extend(verdict.contradictions);
            all.contradictions.extend(wrong_events(&self.db, company.id).await);
        }
        self.db.close().await;
        (all, reads)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.retry_ticker.abort();
    }
}
