//! A load balancer in front of the members: it asks each whether it is ready, and sends callers to those that are.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::mix::Door;
use crate::support::{Api, Company, Reply};

/// How often each member is asked.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// How long the balancer waits for a member's answer.
const ASK_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a caller waits: longer than its edge (the member that forwards its calls to the owner) does.
const CALL_TIME_MAX: Duration = Duration::from_secs(8);

/// To which of the ready members a company's callers are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Any.
    Any,
    /// One per company, which changes only when the ready members do, as if chosen by a request's content.
    OnePerCompany,
}

pub struct Balancer {
    members: watch::Sender<Vec<SocketAddr>>,
    probing: JoinHandle<()>,
}

impl Balancer {
    /// A balancer in front of the members at these addresses. A company's door has the members that its callers use.
    pub fn in_front_of(members: Vec<SocketAddr>, doors: Vec<(Company, watch::Sender<Door>)>, rule: Rule) -> Self {
        let (members, addresses) = watch::channel(members);
        Self { members, probing: tokio::spawn(route_callers(addresses, doors, rule)) }
    }

    /// Replaces the members.
    pub fn set(&self, members: Vec<SocketAddr>) {
        self.members.send_replace(members);
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.probing.abort();
    }
}

/// Asks all members in a loop whether they are ready. Gives each company's door the ready members by the rule.
async fn route_callers(
    members: watch::Receiver<Vec<SocketAddr>>,
    doors: Vec<(Company, watch::Sender<Door>)>,
    rule: Rule,
) {
    let mut clients: Vec<(SocketAddr, Api)> = Vec::new();
    let mut ready_before = Vec::new();
    loop {
        let addresses = members.borrow().clone();
        // In the given order, and with the existing connections.
        let mut previous = std::mem::take(&mut clients);
        for address in addresses {
            let index = previous.iter().position(|(known, _)| *known == address);
            clients.push(index.map_or_else(|| (address, Api::new(address, "")), |index| previous.swap_remove(index)));
        }
        let answers = clients.iter().map(async |(address, api)| {
            let request = api.anonymous(Method::GET, "/health/ready").timeout(ASK_TIME_MAX);
            let is_ready = Reply::try_of(request).await.is_some_and(|reply| reply.status == 200);
            is_ready.then(|| (*address, api.clone()))
        });
        let ready: Vec<_> = join_all(answers).await.into_iter().flatten().collect();
        let addresses: Vec<SocketAddr> = ready.iter().map(|(address, _)| *address).collect();
        if addresses != ready_before {
            for (number, (company, door)) in doors.iter().enumerate() {
                let is_chosen = |index: usize| rule == Rule::Any || index == number % ready.len();
                let chosen = ready.iter().enumerate().filter(|(index, _)| is_chosen(*index));
                let apis = chosen.map(|(_, (_, api))| api.with_key(&company.key).within(CALL_TIME_MAX)).collect();
                door.send_modify(|door| door.apis = apis);
            }
            ready_before = addresses;
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}
