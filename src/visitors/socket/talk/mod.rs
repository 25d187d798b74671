//! One socket, from its first frame to its last.
//!
//! No message is missed and none is pushed twice. From the moment it is attached, the session queues everything for
//! this socket. Meanwhile the past is read from the tables, once they contain everything that was in the log at that
//! moment. Both are ordered by message id, so a message that is not newer than the last one pushed was already pushed.

mod end;
mod noted;
mod past;

use std::pin::Pin;
use std::time::Duration;

use actix_web::web::Data;
use actix_ws::{Message, MessageStream, ProtocolError};
use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_actors::webchat::{Attached, CutReason, Push, Pushed};
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus};
use hotline_persistence::tables::webchat_sessions::SessionRow;
use hotline_persistence::{MessageId, TicketId};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use self::end::{End, has_ended, is_too_large, was_cut};
use self::noted::note;
use super::frames::{Frame, Heard};
use super::{Out, Page};
use crate::api::webchat::is_shown;
use crate::app::App;
use crate::visitors::guard::Door;
use crate::visitors::limits::{SocketPermit, VisitorOptions, Visitors};
use crate::visitors::view::{AgentView, MessageView, SessionView};

/// How long a browser may take to report its newest message. It normally does so at once.
const AFTER_TIME_MAX: Duration = Duration::from_secs(10);

/// Timeout for closing a socket.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum number of frames from a browser within [`FRAMES_TIME`]: typing, seen messages and pongs need a tenth of
/// this.
const FRAMES_MAX: u32 = 60;
const FRAMES_TIME: Duration = Duration::from_secs(10);

/// Maximum number of tickets with messages that were pushed and not yet seen. A contact has one open ticket; further
/// ones were closed meanwhile.
const UNSEEN_MAX: usize = 8;

/// The channels from the session's actor to a socket.
pub(super) struct Feed {
    pub(super) pushes: Pushed,
    /// The reason why the actor closes the socket.
    pub(super) cut: watch::Receiver<Option<CutReason>>,
}

/// A socket with its session.
pub(super) struct Talk {
    app: Data<App>,
    visitors: Data<Visitors>,
    options: VisitorOptions,
    page: Page,
    /// Changes of the directory, and the version of the company that was seen.
    changes: watch::Receiver<()>,
    seen: u64,
    attached: Attached,
    out: Out,
    pushes: Pushed,
    /// When the session ended: pushes are not taken before the browser has said what it holds.
    ended: watch::Receiver<Option<DateTime<Utc>>>,
    cut: watch::Receiver<Option<CutReason>>,
    stopping: watch::Receiver<bool>,
    position: Position,
    /// The newest message this browser has.
    shown: Option<MessageId>,
    /// Agents' messages to acknowledge as delivered, by ticket.
    arrived: Vec<(TicketId, MessageId)>,
    /// Agents' messages that were pushed and are not known to be seen, by ticket.
    unseen: Vec<(TicketId, MessageId)>,
    available: bool,
    /// By the service's clock.
    heard_at: std::time::Instant,
    beat_at: Instant,
    frames: u32,
    /// By the service's clock.
    frames_since: std::time::Instant,
    _place: SocketPermit,
}

/// The browser's position in the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Not reported yet. The deadline is by the service's clock.
    Unsaid { until: std::time::Instant },
    /// The past must be read, at this time.
    Behind { at: Instant },
    /// Only new messages are pushed.
    CaughtUp,
}

/// The event that a socket waits for.
enum Event {
    End(End),
    Heard(Option<Result<Message, ProtocolError>>),
    Due,
    Told(Option<Push>),
    /// The session has ended before the browser said what it holds.
    Ended(DateTime<Utc>),
    /// Something of some company has changed.
    Changed,
}

impl Talk {
    pub(super) fn new(
        app: Data<App>,
        visitors: Data<Visitors>,
        page: Page,
        attached: Attached,
        place: SocketPermit,
        out: Out,
        Feed { pushes, cut }: Feed,
    ) -> Self {
        let (now, options) = (clock::instant(), visitors.options);
        let stopping = app.stopping();
        // What has changed since the handshake was admitted is looked at as well.
        let mut changes = app.engine.directory().changes();
        changes.mark_changed();
        app.figures.sockets.add_opened();
        Self {
            page,
            changes,
            seen: 0,
            attached,
            out,
            ended: pushes.ended(),
            pushes,
            cut,
            stopping,
            position: Position::Unsaid { until: now + AFTER_TIME_MAX },
            shown: None,
            arrived: Vec::new(),
            unseen: Vec::new(),
            available: false,
            heard_at: now,
            beat_at: Instant::now() + options.heartbeat,
            frames: 0,
            frames_since: now,
            _place: place,
            options,
            visitors,
            app,
        }
    }

    /// Runs until one side ends the socket.
    pub(super) async fn run(mut self, mut incoming: MessageStream) {
        let Err(end) = self.talk(&mut incoming).await;
        if matches!(end, End::TooSlow) {
            self.app.figures.sockets.add_cut();
        }
        let out = self.out.session.clone();
        // The visitor counts as absent from here on.
        drop(self);
        // A browser that reads nothing does not receive this either.
        let _ = timeout(GOODBYE_TIME_MAX, out.close(end.reason())).await;
    }

    fn session(&self) -> &SessionRow {
        &self.attached.row
    }

    async fn talk(&mut self, incoming: &mut MessageStream) -> Result<std::convert::Infallible, End> {
        self.available = self.is_available();
        let session = SessionView::from(self.session());
        let heartbeat_s = self.options.heartbeat.as_secs();
        self.write(&Frame::Hello { session, available: self.available, heartbeat_s }).await?;
        loop {
            let due_at = self.due_at();
            let is_caught_up = self.position == Position::CaughtUp;
            let is_unsaid = matches!(self.position, Position::Unsaid { .. });
            let event = tokio::select! {
                biased;
                end = was_cut(&mut self.cut) => Event::End(end),
                _ = self.stopping.wait_for(|stopping| *stopping) => Event::End(End::Stopping),
                _ = self.changes.changed() => Event::Changed,
                at = has_ended(&mut self.ended), if is_unsaid => Event::Ended(at),
                message = incoming.recv() => Event::Heard(message),
                () = sleep_until(due_at) => Event::Due,
                push = self.pushes.next(), if is_caught_up => Event::Told(push),
            };
            match event {
                Event::End(end) => return Err(end),
                Event::Heard(message) => self.hear(message).await?,
                Event::Due => self.tick().await?,
                Event::Changed => self.check_door()?,
                Event::Told(push) => self.pass_on(push).await?,
                Event::Ended(at) => {
                    self.write(&Frame::ended(at)).await?;
                    return Err(End::SessionOver);
                }
            }
        }
    }

    /// The time of the next timer.
    fn due_at(&self) -> Instant {
        match self.position {
            Position::Unsaid { until } => {
                let left = until.saturating_duration_since(clock::instant());
                (Instant::now() + left).min(self.beat_at)
            }
            Position::Behind { at } => at.min(self.beat_at),
            Position::CaughtUp => self.beat_at,
        }
    }

    async fn tick(&mut self) -> Result<(), End> {
        let now = Instant::now();
        match self.position {
            Position::Unsaid { until } if until <= clock::instant() => return Err(End::Malformed("say `after` first")),
            Position::Behind { at } if at <= now => {
                // Boxed: the future is large, and a socket needs it once.
                let catching_up: Pin<Box<dyn Future<Output = _>>> = Box::pin(self.catch_up());
                catching_up.await?;
            }
            _ => {}
        }
        if self.beat_at <= now {
            let options = self.options;
            if clock::instant().saturating_duration_since(self.heard_at) >= options.silence_max {
                return Err(End::Silent);
            }
            self.beat_at = now + options.heartbeat;
            self.write(&Frame::Ping).await?;
            let available = self.is_available();
            if available != self.available {
                self.available = available;
                self.write(&Frame::Presence { available }).await?;
            }
        }
        Ok(())
    }

    /// Ends the socket when its webchat would not be opened any more.
    fn check_door(&mut self) -> Result<(), End> {
        let company = self.session().company_id;
        let version = self.app.engine.directory().company(company).map_or(0, |known| known.version);
        if std::mem::replace(&mut self.seen, version) == version {
            return Ok(());
        }
        let stands = Door::stands(company, self.page.channel, self.page.origin.as_ref(), &self.app);
        if stands { Ok(()) } else { Err(End::NotAdmitted) }
    }

    fn is_available(&self) -> bool {
        let organization = self.app.engine.directory().company(self.session().company_id);
        organization.is_some_and(|organization| self.app.engine.attendance.is_there(&organization, self.page.channel))
    }

    async fn hear(&mut self, message: Option<Result<Message, ProtocolError>>) -> Result<(), End> {
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(bytes))) => {
                self.count_frame()?;
                self.out.window.wrote(bytes.len());
                return self.out.session.pong(&bytes).await.map_err(|_| End::Gone(None));
            }
            Some(Ok(Message::Pong(_) | Message::Nop)) => return self.count_frame(),
            Some(Ok(Message::Binary(_) | Message::Continuation(_))) => return Err(End::Binary),
            Some(Ok(Message::Close(reason))) => return Err(End::Gone(reason)),
            Some(Err(ProtocolError::Overflow)) => return Err(End::TooLarge),
            Some(Err(ProtocolError::Io(error))) if is_too_large(&error) => return Err(End::TooLarge),
            Some(Err(ProtocolError::Io(_))) | None => return Err(End::Gone(None)),
            Some(Err(_)) => return Err(End::Broken),
        };
        self.count_frame()?;
        match serde_json::from_str(&text).map_err(|_| End::Malformed("not a frame of this protocol"))? {
            Heard::After { id } => {
                if matches!(self.position, Position::Unsaid { .. }) {
                    self.shown = id;
                    self.position = Position::Behind { at: Instant::now() };
                }
            }
            Heard::Typing { typing } => self.attached.types(typing),
            Heard::Seen { up_to } => self.note_seen(up_to),
            Heard::Pong | Heard::Unknown => {}
        }
        Ok(())
    }

    /// Every frame proves that the browser is present, and counts against its limit.
    fn count_frame(&mut self) -> Result<(), End> {
        let now = clock::instant();
        self.heard_at = now;
        self.attached.heard();
        if now.saturating_duration_since(self.frames_since) >= FRAMES_TIME {
            self.frames_since = now;
            self.frames = 0;
        }
        self.frames += 1;
        if self.frames > FRAMES_MAX { Err(End::TooManyFrames) } else { Ok(()) }
    }

    /// Pushes everything in the queue, and then acknowledges what was delivered.
    async fn pass_on(&mut self, push: Option<Push>) -> Result<(), End> {
        let mut next = Some(push.ok_or(End::Lost)?);
        while let Some(push) = next {
            match push {
                Push::Said(row) => self.show(&row).await?,
                Push::Moved(moved) => self.write(&moved.into()).await?,
                Push::Typing { agent, typing } => {
                    let agent = agent.map(|name| AgentView { name: name.to_string() });
                    self.write(&Frame::Typing { typing, agent }).await?;
                }
                Push::Ended(at) => {
                    self.note_arrived();
                    self.write(&Frame::ended(at)).await?;
                    return Err(End::SessionOver);
                }
            }
            next = self.pushes.next_now();
        }
        self.note_arrived();
        Ok(())
    }

    /// Pushes a message, unless this browser has it already.
    async fn show(&mut self, row: &MessageRow) -> Result<(), End> {
        if Some(row.id) <= self.shown || !is_shown(self.session(), row) {
            return Ok(());
        }
        let message = MessageView::of(row, &self.session().id, self.app.media.links());
        self.write(&Frame::Message { message: Box::new(message) }).await?;
        self.shown = Some(row.id);
        self.app.figures.sockets.add_pushed();
        if row.direction == Direction::Outbound && row.status != MessageStatus::Read {
            note(&mut self.unseen, row);
            if self.unseen.len() > UNSEEN_MAX {
                self.unseen.remove(0);
            }
            if matches!(row.status, MessageStatus::Queued | MessageStatus::Sent) {
                note(&mut self.arrived, row);
            }
        }
        Ok(())
    }

    async fn write(&mut self, frame: &Frame) -> Result<(), End> {
        let text = serde_json::to_string(frame).map_err(|error| {
            tracing::error!(%error, "could not encode a socket frame");
            End::Lost
        })?;
        tokio::select! {
            biased;
            sent = self.out.text(text) => sent,
            end = was_cut(&mut self.cut) => Err(end),
            _ = self.stopping.wait_for(|stopping| *stopping) => Err(End::Stopping),
        }
    }
}

impl Out {
    /// Writes a text once its reader has taken enough of what was written before.
    async fn text(&mut self, text: String) -> Result<(), End> {
        self.window.room().await;
        self.window.wrote(text.len());
        self.session.text(text).await.map_err(|_| End::Gone(None))
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.app.figures.sockets.add_closed();
    }
}
