//! One socket, from its first frame to its last.
//!
//! No message is missed and none is pushed twice. From the moment a socket is attached, the session's actor queues
//! everything new for it. Meanwhile the missed messages are read from the tables, once these contain everything that
//! was in the log at that moment. Both are ordered by message id, so a message that is not newer than the last one
//! pushed was already pushed.

mod catch_up;
mod end;
mod receipts;

use std::pin::Pin;
use std::time::Duration;

use actix_http::ws::{self, Message};
use actix_web::web::Data;
use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_actors::webchat::{AttachedSocket, DisconnectReason, Push, PushReceiver};
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus};
use hotline_persistence::tables::webchat_sessions::SessionRow;
use hotline_persistence::{MessageId, TicketId};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use self::end::{End, wait_for_close, wait_for_end};
use self::receipts::record_newest;
use super::SocketContext;
use super::frame_stream::{FrameReadError, FrameStream, FrameWriteError};
use super::frames::{ClientFrame, ServerFrame};
use crate::api::webchat::is_visible;
use crate::app::App;
use crate::metrics::Metrics;
use crate::visitors::guard::Webchat;
use crate::visitors::limits::{SocketPermit, VisitorLimits, VisitorOptions};
use crate::visitors::view::{AgentView, MessageView, SessionView};

/// How long a browser may take to report its newest message. Browsers normally do so at once.
const REPORT_TIME_MAX: Duration = Duration::from_secs(10);

/// Timeout for closing a socket.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum number of frames from a browser within [`FRAMES_TIME`]: typing, seen messages and pongs need a tenth of
/// this.
const FRAMES_MAX: u32 = 60;
const FRAMES_TIME: Duration = Duration::from_secs(10);

/// Maximum number of tickets with messages that were pushed and not yet seen. A contact has one open ticket; further
/// ones were closed meanwhile.
const UNSEEN_MAX: usize = 8;

/// The receivers of what the session's actor sends to a socket.
pub(super) struct ActorReceivers {
    pub(super) pushes: PushReceiver,
    /// The reason why the actor closes the socket.
    pub(super) close: watch::Receiver<Option<DisconnectReason>>,
}

/// A socket with its session.
pub(super) struct SocketSession {
    app: Data<App>,
    visitor_limits: Data<VisitorLimits>,
    options: VisitorOptions,
    context: SocketContext,
    /// Signals changes to the directory.
    directory_changes: watch::Receiver<()>,
    /// The version of the company when the admission was last checked; `None` before the first check.
    checked_version: Option<u64>,
    attached_socket: AttachedSocket,
    frame_stream: FrameStream,
    pushes: PushReceiver,
    /// When the session ended. Needed apart from `pushes`, which is not read before the browser has caught up.
    ended: watch::Receiver<Option<DateTime<Utc>>>,
    close: watch::Receiver<Option<DisconnectReason>>,
    stopping: watch::Receiver<bool>,
    position: CatchUpPosition,
    /// The newest message this browser has.
    last_pushed: Option<MessageId>,
    /// The newest message of each ticket to acknowledge as delivered.
    undelivered: Vec<(TicketId, MessageId)>,
    /// The newest message of each ticket that was pushed and not reported as seen.
    unseen: Vec<(TicketId, MessageId)>,
    /// The newest message that was reported as seen when `unseen` contained no ticket for it.
    seen_up_to: Option<MessageId>,
    /// The availability of agents that the browser received last.
    available: bool,
    /// By [`clock::instant`], which tests can advance.
    last_frame_at: std::time::Instant,
    next_ping_at: Instant,
    frame_count: u32,
    /// By [`clock::instant`], as `last_frame_at`.
    frames_since: std::time::Instant,
    _open: OpenSocket,
    _permit: SocketPermit,
}

/// Counts a socket as open.
struct OpenSocket(Data<Metrics>);

/// The browser's position in the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CatchUpPosition {
    /// The browser has not reported its newest message yet. The deadline is by [`clock::instant`].
    Unreported { until: std::time::Instant },
    /// Missed messages will be read at this time.
    Behind { at: Instant },
    /// Only new messages are pushed.
    CaughtUp,
}

/// An event that a socket waits for.
enum SocketEvent {
    End(End),
    Frame(Result<ws::Frame, FrameReadError>),
    Timer,
    Push(Option<Push>),
    /// The session has ended before the browser reported its newest message.
    Ended(DateTime<Utc>),
    /// A company's directory has changed.
    Changed,
}

impl SocketSession {
    pub(super) fn new(
        app: Data<App>,
        visitor_limits: Data<VisitorLimits>,
        context: SocketContext,
        attached_socket: AttachedSocket,
        permit: SocketPermit,
        frame_stream: FrameStream,
        ActorReceivers { pushes, close }: ActorReceivers,
    ) -> Self {
        let (now, options) = (clock::instant(), visitor_limits.options);
        // Checks the admission again, because the directory may have changed since the handshake was admitted.
        let mut directory_changes = app.engine.directory().changes();
        directory_changes.mark_changed();
        Self {
            context,
            directory_changes,
            checked_version: None,
            attached_socket,
            frame_stream,
            ended: pushes.end_receiver(),
            pushes,
            close,
            stopping: app.stopping(),
            position: CatchUpPosition::Unreported { until: now + REPORT_TIME_MAX },
            last_pushed: None,
            undelivered: Vec::new(),
            unseen: Vec::new(),
            seen_up_to: None,
            available: false,
            last_frame_at: now,
            next_ping_at: Instant::now() + options.heartbeat,
            frame_count: 0,
            frames_since: now,
            _open: OpenSocket::of(app.metrics.clone()),
            _permit: permit,
            options,
            visitor_limits,
            app,
        }
    }

    /// Runs until one side ends the socket.
    pub(super) async fn run(mut self: Box<Self>) {
        let Err(end) = self.serve().await;
        if matches!(end, End::TooSlow) {
            self.app.metrics.sockets.add_cut();
        }
        // The visitor counts as absent from here on.
        let frame_stream = self.detach();
        frame_stream.close(end.close_reason(), CLOSE_TIME_MAX).await;
    }

    /// Returns the connection and drops everything else, which detaches the socket from its session.
    fn detach(self: Box<Self>) -> FrameStream {
        self.frame_stream
    }

    fn session(&self) -> &SessionRow {
        &self.attached_socket.row
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, End> {
        self.available = self.is_available();
        let session = SessionView::from(self.session());
        let heartbeat_s = self.options.heartbeat.as_secs();
        self.push(&ServerFrame::Hello { session, available: self.available, heartbeat_s }).await?;
        loop {
            let next_timer_at = self.next_timer_at();
            let is_caught_up = self.position == CatchUpPosition::CaughtUp;
            let is_unreported = matches!(self.position, CatchUpPosition::Unreported { .. });
            let event = tokio::select! {
                biased;
                end = wait_for_close(&mut self.close) => SocketEvent::End(end),
                _ = self.stopping.wait_for(|stopping| *stopping) => SocketEvent::End(End::Stopping),
                _ = self.directory_changes.changed() => SocketEvent::Changed,
                at = wait_for_end(&mut self.ended), if is_unreported => SocketEvent::Ended(at),
                frame = self.frame_stream.next() => SocketEvent::Frame(frame),
                () = sleep_until(next_timer_at) => SocketEvent::Timer,
                push = self.pushes.next(), if is_caught_up => SocketEvent::Push(push),
            };
            match event {
                SocketEvent::End(end) => return Err(end),
                SocketEvent::Frame(frame) => self.on_frame(frame).await?,
                SocketEvent::Timer => self.on_timer().await?,
                SocketEvent::Changed => self.check_admission()?,
                SocketEvent::Push(push) => self.on_push(push).await?,
                SocketEvent::Ended(at) => {
                    self.push(&ServerFrame::ended(at)).await?;
                    return Err(End::SessionOver);
                }
            }
        }
    }

    fn next_timer_at(&self) -> Instant {
        match self.position {
            CatchUpPosition::Unreported { until } => {
                let remaining = until.saturating_duration_since(clock::instant());
                (Instant::now() + remaining).min(self.next_ping_at)
            }
            CatchUpPosition::Behind { at } => at.min(self.next_ping_at),
            CatchUpPosition::CaughtUp => self.next_ping_at,
        }
    }

    async fn on_timer(&mut self) -> Result<(), End> {
        let now = Instant::now();
        match self.position {
            CatchUpPosition::Unreported { until } if until <= clock::instant() => {
                return Err(End::Malformed("say `after` first"));
            }
            CatchUpPosition::Behind { at } if at <= now => {
                // Boxed: the future is large, and a socket needs it once.
                let catching_up: Pin<Box<dyn Future<Output = _>>> = Box::pin(self.catch_up());
                catching_up.await?;
            }
            _ => {}
        }
        if self.next_ping_at <= now {
            let options = self.options;
            if clock::instant().saturating_duration_since(self.last_frame_at) >= options.silence_max {
                return Err(End::Silent);
            }
            self.next_ping_at = now + options.heartbeat;
            self.push(&ServerFrame::Ping).await?;
            let available = self.is_available();
            if available != self.available {
                self.available = available;
                self.push(&ServerFrame::Presence { available }).await?;
            }
        }
        Ok(())
    }

    /// Ends the socket if its webchat would no longer admit it.
    fn check_admission(&mut self) -> Result<(), End> {
        let company = self.session().company_id;
        // A company that has left the directory has no webchat.
        let organization = self.app.engine.directory().company(company).ok_or(End::NotAdmitted)?;
        let version = organization.version;
        if self.checked_version.replace(version) == Some(version) {
            return Ok(());
        }
        let is_admitted = Webchat::revalidate(company, self.context.channel, self.context.origin.as_ref(), &self.app);
        if is_admitted { Ok(()) } else { Err(End::NotAdmitted) }
    }

    fn is_available(&self) -> bool {
        let organization = self.app.engine.directory().company(self.session().company_id);
        organization
            .is_some_and(|organization| self.app.engine.attendance.is_attended(&organization, self.context.channel))
    }

    async fn on_frame(&mut self, frame: Result<ws::Frame, FrameReadError>) -> Result<(), End> {
        let text = match frame {
            Ok(ws::Frame::Text(text)) => text,
            Ok(ws::Frame::Ping(bytes)) => {
                self.count_frame()?;
                return self.write(Message::Pong(bytes)).await;
            }
            Ok(ws::Frame::Pong(_)) => return self.count_frame(),
            Ok(ws::Frame::Binary(_) | ws::Frame::Continuation(_)) => return Err(End::Binary),
            Ok(ws::Frame::Close(reason)) => return Err(End::Gone(reason)),
            Err(FrameReadError::TooLarge) => return Err(End::TooLarge),
            Err(FrameReadError::Closed) => return Err(End::Gone(None)),
            Err(FrameReadError::Invalid) => return Err(End::Broken),
        };
        let text = str::from_utf8(&text).map_err(|_| End::Broken)?;
        self.count_frame()?;
        match serde_json::from_str(text).map_err(|_| End::Malformed("not a frame of this protocol"))? {
            ClientFrame::After { id } => {
                if matches!(self.position, CatchUpPosition::Unreported { .. }) {
                    self.last_pushed = id;
                    self.position = CatchUpPosition::Behind { at: Instant::now() };
                }
            }
            ClientFrame::Typing { typing } => self.attached_socket.set_typing(typing),
            ClientFrame::Seen { up_to } => self.acknowledge_seen(up_to),
            ClientFrame::Pong | ClientFrame::Unknown => {}
        }
        Ok(())
    }

    /// Counts a frame against the browser's limit, and records that the browser is present.
    fn count_frame(&mut self) -> Result<(), End> {
        let now = clock::instant();
        self.last_frame_at = now;
        self.attached_socket.record_presence();
        if now.saturating_duration_since(self.frames_since) >= FRAMES_TIME {
            self.frames_since = now;
            self.frame_count = 0;
        }
        self.frame_count += 1;
        if self.frame_count > FRAMES_MAX { Err(End::TooManyFrames) } else { Ok(()) }
    }

    /// Pushes everything in the queue, and then acknowledges what was delivered.
    async fn on_push(&mut self, push: Option<Push>) -> Result<(), End> {
        let mut next = Some(push.ok_or(End::Lost)?);
        while let Some(push) = next {
            match push {
                Push::Message(row) => self.push_message(&row).await?,
                Push::Status(update) => self.push(&update.into()).await?,
                Push::Typing { agent, typing } => {
                    let agent = agent.map(|name| AgentView { name: name.to_string() });
                    self.push(&ServerFrame::Typing { typing, agent }).await?;
                }
                Push::Ended(at) => {
                    self.acknowledge_delivered();
                    self.push(&ServerFrame::ended(at)).await?;
                    return Err(End::SessionOver);
                }
            }
            next = self.pushes.next_now();
        }
        self.acknowledge_delivered();
        Ok(())
    }

    /// Pushes a message, unless this browser has it already.
    async fn push_message(&mut self, row: &MessageRow) -> Result<(), End> {
        if Some(row.id) <= self.last_pushed || !is_visible(self.session(), row) {
            return Ok(());
        }
        let message = MessageView::of(row, &self.session().id, self.app.media.links());
        self.push(&ServerFrame::Message { message: Box::new(message) }).await?;
        self.last_pushed = Some(row.id);
        self.app.metrics.sockets.add_pushed();
        if row.direction == Direction::Outbound && row.status != MessageStatus::Read {
            record_newest(&mut self.unseen, row);
            if self.unseen.len() > UNSEEN_MAX {
                self.unseen.remove(0);
            }
            if matches!(row.status, MessageStatus::Queued | MessageStatus::Sent) {
                record_newest(&mut self.undelivered, row);
            }
        }
        Ok(())
    }

    async fn push(&mut self, frame: &ServerFrame) -> Result<(), End> {
        let text = serde_json::to_string(frame).map_err(|error| {
            tracing::error!(%error, "could not encode a socket frame");
            End::Lost
        })?;
        self.write(Message::Text(text.into())).await
    }

    async fn write(&mut self, message: Message) -> Result<(), End> {
        // Without this process's lease, another process may serve the company, and its new messages are not known here.
        if !self.app.engine.store().may_act() {
            return Err(End::Moved);
        }
        tokio::select! {
            biased;
            written = self.frame_stream.write(message) => written.map_err(|error| match error {
                FrameWriteError::TooSlow => End::TooSlow,
                FrameWriteError::Closed => End::Gone(None),
            }),
            end = wait_for_close(&mut self.close) => Err(end),
            _ = self.stopping.wait_for(|stopping| *stopping) => Err(End::Stopping),
        }
    }
}

impl OpenSocket {
    fn of(metrics: Data<Metrics>) -> Self {
        metrics.sockets.add_opened();
        Self(metrics)
    }
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.0.sockets.add_closed();
    }
}
