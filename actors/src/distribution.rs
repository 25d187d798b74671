//! Distribution: chooses the agent of each new ticket.
//!
//! A company whose queues distribute tickets has an [`Assigner`]. It is locked from the choice to the ticket's entry in
//! the log, without any await in between: openings on all channels are serialized here, and no two get the same turn.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::queues::Distribution;
use hotline_persistence::{CompanyId, QueueId, TicketId, UserId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::id_map::IdMap;
use crate::tickets::{Open, Ticket, default_queue};

/// Pause before loads are counted again after a failure.
const COUNT_PAUSE: Duration = Duration::from_secs(5);

/// The assigners of the companies whose queues distribute tickets.
#[derive(Default)]
pub(crate) struct Assigners {
    assigners: IdMap<CompanyId, Arc<Assigner>>,
}

/// The assigner of one company.
#[derive(Default)]
pub(crate) struct Assigner {
    /// A panic during a decision leaves the state consistent: a decision changes it only after its entry is appended.
    state: Mutex<AssignmentState>,
    /// Notifies those that wait when a count has ended, successfully or not.
    count_ended: watch::Sender<()>,
}

#[derive(Default)]
struct AssignmentState {
    /// The last agent of each queue, since the process started.
    last_agents: HashMap<QueueId, UserId>,
    /// The agent of each open ticket, once counted: a few dozen bytes per open ticket.
    agents_by_ticket: HashMap<TicketId, UserId>,
    /// The number of open tickets of each agent.
    loads: HashMap<UserId, usize>,
    counting: Counting,
}

/// The state of the count of loads in the tables.
#[derive(Default)]
enum Counting {
    /// Not requested.
    #[default]
    Idle,
    /// The tables are being read; these tickets have changed since.
    Running(HashSet<TicketId>),
    /// The tables could not be read at this time.
    Failed(Instant),
    Done,
}

/// Whether the loads are known, for the opening of a ticket that depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountStatus {
    /// The loads are known.
    Known,
    /// A count is running.
    Running,
    /// The caller must count the loads.
    Required,
    /// A count has just failed, and the next one waits for [`COUNT_PAUSE`].
    Delayed,
}

impl Assigners {
    /// A company's assigner, created on first use.
    pub(crate) fn of(&self, company: CompanyId) -> Arc<Assigner> {
        if let Some(assigner) = self.assigners.get(&company) {
            return assigner.clone();
        }
        self.assigners.entry(company).or_default().clone()
    }

    /// Drops a company's assigner: turns restart, and loads are counted again.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { assigners } = self;
        assigners.remove(&company);
    }

    /// Records a ticket's agent, or none if it is closed or unassigned. To be called after each change is appended.
    pub(crate) fn record_assignment(&self, ticket: &Ticket) {
        self.record(ticket.row.company_id, ticket.row.id, agent_of(ticket));
    }

    /// Records the agent of an open ticket, or none if it is unassigned, closed, or deleted.
    pub(crate) fn record(&self, company: CompanyId, ticket: TicketId, agent: Option<UserId>) {
        // Locked after the map is released, so that a company's turn does not block other companies.
        let assigner = self.assigners.get(&company).map(|assigner| assigner.clone());
        if let Some(assigner) = assigner {
            assigner.state.lock().record(ticket, agent);
        }
    }
}

/// The agent of a ticket; `None` if it is unassigned or closed.
pub(crate) fn agent_of(ticket: &Ticket) -> Option<UserId> {
    ticket.row.user_id.filter(|_| ticket.is_open())
}

/// The queue that assigns an agent to a ticket opened like this, and how it chooses; `None` if the opening names an
/// agent, or its queue assigns none.
pub(crate) fn find_distribution(organization: &Organization, open: &Open) -> Option<(QueueId, Distribution)> {
    let channel = organization.channels.get(&open.channel)?;
    let queue = open.queue.or(default_queue(organization, channel)).filter(|_| open.user.is_none())?;
    let distribution = organization.queues.get(&queue)?.row.distribution;
    (distribution != Distribution::Manual).then_some((queue, distribution))
}

impl Assigner {
    /// The receiver is notified of the end of each count, from now on.
    pub(crate) fn subscribe_to_count_end(&self) -> watch::Receiver<()> {
        self.count_ended.subscribe()
    }

    /// Begins a count if one is needed.
    pub(crate) fn begin_count(&self, now: Instant) -> CountStatus {
        self.state.lock().begin_count(now)
    }

    /// Ends a count with what was read from the tables (`None` if that failed), and notifies those that wait.
    pub(crate) fn end_count(&self, open_tickets: Option<Vec<(TicketId, UserId)>>, now: Instant) {
        self.state.lock().end_count(open_tickets, now);
        self.count_ended.send_replace(());
    }

    /// Chooses an agent, if a queue distributes the ticket and has an active agent. The choice holds the lock until the
    /// ticket is in the log.
    pub(crate) fn choose(&self, organization: &Organization, open: &Open) -> Option<Choice<'_>> {
        let (queue, distribution) = find_distribution(organization, open)?;
        let agents: BTreeSet<UserId> = organization.queues.get(&queue)?.users.iter().copied().collect();
        let is_active = |user: &UserId| organization.users.get(user).is_some_and(|user| user.active);
        let state = self.state.lock();
        let user = state.choose(queue, distribution, agents.into_iter().filter(is_active).collect())?;
        Some(Choice { state, queue, user })
    }
}

/// An agent's turn, while the ticket is being opened. If it is dropped before completion, the next turn is theirs.
pub(crate) struct Choice<'a> {
    state: MutexGuard<'a, AssignmentState>,
    queue: QueueId,
    user: UserId,
}

impl Choice<'_> {
    /// The chosen agent.
    pub(crate) fn user(&self) -> UserId {
        self.user
    }

    /// Completes the turn: the ticket is in the log.
    pub(crate) fn complete(mut self, ticket: &Ticket) {
        self.state.last_agents.insert(self.queue, self.user);
        self.state.record(ticket.row.id, agent_of(ticket));
    }
}

impl AssignmentState {
    /// Chooses one of `agents`, which are ordered by id; `None` if there are none.
    fn choose(&self, queue: QueueId, distribution: Distribution, agents: Vec<UserId>) -> Option<UserId> {
        // Starts after the last agent, so that agents with equal loads take turns.
        let next = self.last_agents.get(&queue).map_or(0, |last| agents.partition_point(|agent| agent <= last));
        let mut candidates = agents[next..].iter().chain(&agents[..next]).copied();
        match (distribution, &self.counting) {
            (Distribution::LeastBusy, Counting::Done) => {
                candidates.min_by_key(|agent| self.loads.get(agent).copied().unwrap_or(0))
            }
            _ => candidates.next(),
        }
    }

    fn record(&mut self, ticket: TicketId, agent: Option<UserId>) {
        match &mut self.counting {
            Counting::Idle | Counting::Failed(_) => return,
            Counting::Running(changed) => drop(changed.insert(ticket)),
            Counting::Done => {}
        }
        self.set_agent(ticket, agent);
    }

    fn set_agent(&mut self, ticket: TicketId, agent: Option<UserId>) {
        let previous_agent = match agent {
            Some(user) => self.agents_by_ticket.insert(ticket, user),
            None => self.agents_by_ticket.remove(&ticket),
        };
        if let Some(Entry::Occupied(mut load)) = previous_agent.map(|user| self.loads.entry(user)) {
            *load.get_mut() -= 1;
            if *load.get() == 0 {
                load.remove();
            }
        }
        if let Some(user) = agent {
            *self.loads.entry(user).or_default() += 1;
        }
    }

    /// Begins a count if one is needed. Changes are recorded from now on, and the tables are read after that, so that
    /// no change is missed.
    fn begin_count(&mut self, now: Instant) -> CountStatus {
        match self.counting {
            Counting::Done => CountStatus::Known,
            Counting::Running(_) => CountStatus::Running,
            Counting::Failed(at) if now.duration_since(at) < COUNT_PAUSE => CountStatus::Delayed,
            Counting::Idle | Counting::Failed(_) => {
                self.counting = Counting::Running(HashSet::new());
                CountStatus::Required
            }
        }
    }

    /// Ends a count with what was read from the tables; `None` if that failed.
    fn end_count(&mut self, open_tickets: Option<Vec<(TicketId, UserId)>>, now: Instant) {
        let Some(open_tickets) = open_tickets else {
            // The recorded changes are dropped; the tables have them at the next count.
            *self = Self {
                last_agents: std::mem::take(&mut self.last_agents),
                counting: Counting::Failed(now),
                ..Self::default()
            };
            return;
        };
        let Counting::Running(changed) = std::mem::replace(&mut self.counting, Counting::Done) else { return };
        for (ticket, user) in open_tickets {
            // A change recorded meanwhile is newer.
            if !changed.contains(&ticket) {
                self.set_agent(ticket, Some(user));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueId = QueueId::new(1);

    fn agents() -> Vec<UserId> {
        vec![UserId::new(3), UserId::new(5), UserId::new(9)]
    }

    #[test]
    fn agents_take_turns_even_if_some_join_or_leave() {
        let mut state = AssignmentState::default();
        let mut next = |agents: Vec<UserId>| {
            let user = state.choose(QUEUE, Distribution::RoundRobin, agents);
            state.last_agents.extend(user.map(|user| (QUEUE, user)));
            user.map_or(0, |user| user.0)
        };
        assert_eq!([next(agents()), next(agents()), next(agents()), next(agents())], [3, 5, 9, 3]);
        assert_eq!(next(vec![UserId::new(3), UserId::new(9)]), 9, "the next agent has left");
        assert_eq!(next(vec![UserId::new(3), UserId::new(9), UserId::new(12)]), 12, "the new agent follows 9");
        assert_eq!(next(vec![UserId::new(1), UserId::new(3)]), 1);
        assert_eq!(next(Vec::new()), 0, "no agent");
    }

    #[test]
    fn the_least_busy_agent_is_chosen_and_equals_take_turns() {
        let mut state = AssignmentState::default();
        let now = Instant::now();
        assert_eq!((state.begin_count(now), state.begin_count(now)), (CountStatus::Required, CountStatus::Running));
        // Changes made while the tables are being read, which do not have them yet.
        state.record(TicketId::new(1), None);
        state.record(TicketId::new(2), Some(UserId::new(5)));
        let open_tickets = vec![
            (TicketId::new(1), UserId::new(9)),
            (TicketId::new(2), UserId::new(3)),
            (TicketId::new(3), UserId::new(3)),
        ];
        state.end_count(Some(open_tickets), now);
        assert_eq!(state.begin_count(now), CountStatus::Known);
        let choose = |state: &AssignmentState| state.choose(QUEUE, Distribution::LeastBusy, agents());
        assert_eq!(choose(&state), Some(UserId::new(9)));
        state.record(TicketId::new(4), Some(UserId::new(9)));
        state.last_agents.insert(QUEUE, UserId::new(9));
        assert_eq!(choose(&state), Some(UserId::new(3)), "each has one ticket: the agent after the last one");
        state.record(TicketId::new(3), Some(UserId::new(5)));
        state.record(TicketId::new(4), None);
        assert_eq!(state.loads, HashMap::from([(UserId::new(5), 2)]), "an agent without tickets takes no memory");
        assert_eq!(choose(&state), Some(UserId::new(3)));
    }

    #[test]
    fn a_failed_count_is_repeated_after_a_pause() {
        let (mut state, now) = (AssignmentState::default(), Instant::now());
        assert_eq!(state.begin_count(now), CountStatus::Required);
        state.record(TicketId::new(1), Some(UserId::new(3)));
        state.last_agents.insert(QUEUE, UserId::new(5));
        state.end_count(None, now);
        let has_counts = !state.agents_by_ticket.is_empty() || !state.loads.is_empty();
        assert!(!has_counts, "the next count reads the tables again");
        let choose = |state: &AssignmentState| state.choose(QUEUE, Distribution::LeastBusy, agents());
        assert_eq!(choose(&state), Some(UserId::new(9)), "without loads, agents take turns");
        // Until the next count begins, nothing is recorded.
        state.record(TicketId::new(2), Some(UserId::new(3)));
        assert!(state.agents_by_ticket.is_empty());
        assert_eq!(state.begin_count(now + COUNT_PAUSE / 2), CountStatus::Delayed);
        assert_eq!(state.begin_count(now + COUNT_PAUSE), CountStatus::Required);
        let open_tickets = vec![
            (TicketId::new(1), UserId::new(3)),
            (TicketId::new(2), UserId::new(3)),
            (TicketId::new(3), UserId::new(9)),
        ];
        state.end_count(Some(open_tickets), now);
        assert_eq!(state.loads, HashMap::from([(UserId::new(3), 2), (UserId::new(9), 1)]));
        assert_eq!(choose(&state), Some(UserId::new(5)));
    }

    #[test]
    fn nothing_is_recorded_before_the_first_count() {
        let mut state = AssignmentState::default();
        state.record(TicketId::new(1), Some(UserId::new(5)));
        assert!(state.agents_by_ticket.is_empty());
        let choice = state.choose(QUEUE, Distribution::LeastBusy, agents());
        assert_eq!(choice, Some(UserId::new(3)), "without loads, agents take turns");
    }
}
