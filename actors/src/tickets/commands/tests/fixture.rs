//! A company with queues, users, wrap-up types and channels, and one ticket with a clock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::id_blocks::IdBlocks;
use hotline_persistence::table::Stamps;
use hotline_persistence::tables::channels::{ChannelRow, ChannelStatus, ChannelType};
use hotline_persistence::tables::companies::CompanyRow;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::organization::{DirectoryQueue, DirectoryUser, DirectoryWrapupType, Organization};
use hotline_persistence::tables::queues::{self, Distribution};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::EventRow;
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId, QueueId, Slot, TicketId, UserId, WrapupTypeId};

use crate::Refusal;
use crate::tickets::{Author, Close, Command, Context, Decided, Open, Ticket, apply};

pub const COMPANY: CompanyId = CompanyId::new(1);

/// Its agents are Ana, Ben and Eva, who is inactive; its wrap-up types are `SOLVED` and `RETIRED`.
pub const SUPPORT: QueueId = QueueId::new(1);
/// Requires a wrap-up. Its agents are Ana and Carl; its wrap-up types are `SOLD` and `RETIRED`.
pub const SALES: QueueId = QueueId::new(2);
/// Inactive; everyone is its agent.
pub const OLD_QUEUE: QueueId = QueueId::new(3);
pub const MISSING_QUEUE: QueueId = QueueId::new(9);

/// Belongs to every queue.
pub const ANA: UserId = UserId::new(1);
pub const BEN: UserId = UserId::new(2);
pub const CARL: UserId = UserId::new(3);
/// Inactive.
pub const EVA: UserId = UserId::new(4);
pub const MISSING_USER: UserId = UserId::new(9);

pub const SOLVED: WrapupTypeId = WrapupTypeId::new(1);
pub const SOLD: WrapupTypeId = WrapupTypeId::new(2);
/// Inactive, and linked to every queue.
pub const RETIRED: WrapupTypeId = WrapupTypeId::new(3);
/// Linked to no queue.
pub const UNLINKED: WrapupTypeId = WrapupTypeId::new(4);
pub const MISSING_TYPE: WrapupTypeId = WrapupTypeId::new(9);

/// New tickets go to `SUPPORT`.
pub const PHONE: ChannelId = ChannelId::new(1);
pub const WEBCHAT: ChannelId = ChannelId::new(2);
pub const SOCIAL: ChannelId = ChannelId::new(3);
pub const MISSING_CHANNEL: ChannelId = ChannelId::new(9);

/// Another ticket of the same contact.
pub const OTHER_TICKET: TicketId = TicketId::new(900);

pub fn organization() -> Organization {
    Organization {
        version: 0,
        company: CompanyRow {
            id: COMPANY,
            name: "Acme".to_owned(),
            active: true,
            api_enabled: true,
            rate_per_minute: None,
            time_zone: "UTC".to_owned(),
            stop_words: vec!["stop".to_owned()],
            second_factor_required: false,
            slot: Slot::of_new(COMPANY),
            created_at: started_at(),
            updated_at: started_at(),
        },
        tokens: Vec::new(),
        channels: HashMap::from([
            (PHONE, channel(PHONE, ChannelType::Whatsapp, Some(SUPPORT))),
            (WEBCHAT, channel(WEBCHAT, ChannelType::Webchat, None)),
            (SOCIAL, channel(SOCIAL, ChannelType::Instagram, None)),
        ]),
        queues: HashMap::from([
            (SUPPORT, queue(SUPPORT, "Support", &[ANA, BEN, EVA])),
            (SALES, queue(SALES, "Sales", &[ANA, CARL])),
            (OLD_QUEUE, queue(OLD_QUEUE, "Old", &[ANA, BEN, CARL, EVA])),
        ]),
        users: HashMap::from([
            (ANA, user("Ana", true)),
            (BEN, user("Ben", true)),
            (CARL, user("Carl", true)),
            (EVA, user("Eva", false)),
        ]),
        wrapup_types: HashMap::from([
            (SOLVED, wrapup_type("Solved", true, &[SUPPORT])),
            (SOLD, wrapup_type("Sold", true, &[SALES])),
            (RETIRED, wrapup_type("Retired", false, &[SUPPORT, SALES, OLD_QUEUE])),
            (UNLINKED, wrapup_type("Unlinked", true, &[])),
        ]),
        former_users: HashMap::new(),
        global_variables: HashMap::new(),
    }
}

fn channel(id: ChannelId, kind: ChannelType, queue_id: Option<QueueId>) -> ChannelRow {
    ChannelRow {
        id,
        company_id: COMPANY,
        name: kind.as_str().to_owned(),
        kind,
        status: ChannelStatus::Connected,
        number: None,
        queue_id,
        last_error: None,
        quality: None,
        messaging_limit: None,
        public_key: format!("ch_{id}"),
        settings: serde_json::json!({}),
        created_at: started_at(),
        updated_at: started_at(),
    }
}

fn queue(id: QueueId, name: &str, users: &[UserId]) -> DirectoryQueue {
    let row = queues::Queue {
        id,
        name: name.to_owned(),
        color: "#64748b".to_owned(),
        greeting: None,
        distribution: Distribution::Manual,
        wrapup_required: id == SALES,
        active: id != OLD_QUEUE,
        stamps: Stamps::of(started_at().into()),
    };
    DirectoryQueue { row, users: users.iter().copied().collect() }
}

fn user(name: &str, active: bool) -> DirectoryUser {
    DirectoryUser { name: name.to_owned(), active }
}

fn wrapup_type(name: &str, active: bool, queues: &[QueueId]) -> DirectoryWrapupType {
    DirectoryWrapupType { name: name.to_owned(), active, queues: queues.iter().copied().collect::<HashSet<_>>() }
}

fn started_at() -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_700_000_000_123).expect("a time")
}

pub fn ana() -> Author {
    Author { user: Some((ANA, "Ana".to_owned())), integration: None, source: Source::User }
}

/// The recorded changes of a command, and its reply.
pub struct CommandResult<R> {
    pub reply: R,
    pub changes: Vec<Change>,
}

impl<R> CommandResult<R> {
    /// The events among the changes.
    pub fn events(&self) -> Vec<&EventRow> {
        fn event(change: &Change) -> Option<&EventRow> {
            match change {
                Change::Event(row) => Some(row),
                _ => None,
            }
        }
        self.changes.iter().filter_map(event).collect()
    }

    /// The one event among the changes.
    pub fn event(&self) -> &EventRow {
        match self.events()[..] {
            [event] => event,
            ref events => panic!("one event is recorded, not {events:?}"),
        }
    }
}

/// One ticket to which commands are applied in turn.
pub struct Desk {
    pub organization: Organization,
    pub ids: IdBlocks,
    pub now: DateTime<Utc>,
    pub ticket: Ticket,
    /// How long after the contact's last message a phone channel accepts anything but templates.
    pub window: Option<TimeDelta>,
    /// Another open ticket of the contact on the channel, for the commands that follow.
    pub open_elsewhere: Option<TicketId>,
}

impl Desk {
    /// A ticket just opened by Ana on this channel, in the channel's default queue, unassigned.
    pub fn on(channel: ChannelId) -> Self {
        Self::opened(open(channel)).expect("the ticket opens").0
    }

    /// A ticket of a phone channel, closed without a wrap-up.
    pub fn with_closed_ticket() -> Self {
        let mut desk = Self::on(PHONE);
        desk.run(Close { wrapup_type: None, wrapup_note: None, author: ana() });
        desk
    }

    /// The ticket that `open` opens, and the recorded changes.
    pub fn opened(open: Open) -> Result<(Self, CommandResult<()>), Refusal> {
        let organization = organization();
        let ids = IdBlocks::unbacked();
        let mut cx = Context::new(started_at(), &organization, &ids);
        let ticket = open.decide(TicketId::new(77), &mut cx)?;
        let changes = cx.into_changes(&ticket);
        Ok((
            Self { organization, ids, now: started_at(), ticket, window: None, open_elsewhere: None },
            CommandResult { reply: (), changes },
        ))
    }

    /// Executes a command, one second after the previous one.
    pub fn try_run<C: Command>(&mut self, command: C) -> Result<CommandResult<C::Reply>, Refusal> {
        self.now += TimeDelta::seconds(1);
        let mut cx = Context::new(self.now, &self.organization, &self.ids);
        cx.open_elsewhere = self.open_elsewhere;
        cx.window = self.window;
        let Decided { reply, ticket, changes } = apply(command, &self.ticket, cx)?;
        self.ticket = ticket;
        Ok(CommandResult { reply, changes })
    }

    /// Executes a command that must succeed.
    pub fn run<C: Command>(&mut self, command: C) -> CommandResult<C::Reply> {
        self.try_run(command).unwrap_or_else(|refusal| panic!("refused: {refusal:?}"))
    }

    /// The refusal of a command, which must leave the ticket unchanged.
    pub fn expect_refusal<C: Command>(&mut self, command: C) -> Refusal {
        let before = self.ticket.clone();
        let refusal = self.try_run(command).err().expect("the command is refused");
        assert_eq!(self.ticket, before, "after {refusal:?}");
        refusal
    }
}

/// Ana opens a ticket for a contact with a number.
pub fn open(channel: ChannelId) -> Open {
    let number = Some("5511999990000".into());
    let contact = ContactRef { id: ContactId::new(5), name: "Zoe".into(), number, verified: false };
    Open {
        company: COMPANY,
        channel,
        contact: Arc::new(contact),
        reachable: true,
        queue: None,
        user: None,
        author: ana(),
    }
}
