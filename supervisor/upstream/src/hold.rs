//! The task that holds one connection: starts the server when it is needed, watches it, starts it again.
//!
//! [`Lifecycle`] decides; this carries out what it decides, and tells it what happens.

mod connected;
mod lifecycle;
mod tools;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lockhouse_catalog::Catalogue;
use lockhouse_protocol::ServerName;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

pub(super) use tools::Tools;

use self::connected::{Connected, Happening};
use self::lifecycle::{Effect, Event, Lifecycle, Over, Pause};
use super::link::{Link, LinkEnd, told};
use super::log::ServerLog;
use super::signals::{Answers, Signals};
use super::start::{Refusal, Started, Starter};
use super::state::{Offer, State};
use super::status::Status;

/// Of all lines in the log about what becomes of a server: commands that tell this themselves leave it out of the log.
const LOG_TARGET: &str = "lockhouse_upstream::hold";
/// How long calls in flight may take once the server is to be closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Code and the model are not told what a server wrote; a person may look.
const LAST_WORDS_HINT: &str = "; `lockhouse server logs` shows its last words";

/// One server, from the start of Lockhouse to its end.
pub(super) struct Holder {
    pub(super) name: ServerName,
    pub(super) starter: Arc<Starter>,
    pub(super) tools: Tools,
    /// After this time without a call the server is stopped.
    pub(super) idle_stop: Option<Duration>,
    pub(super) state: watch::Sender<State>,
    pub(super) status: watch::Sender<Status>,
    pub(super) signals: Arc<Signals>,
    /// Marked as seen when an attempt to connect begins.
    pub(super) answers: watch::Receiver<Answers>,
    /// Whether the server understands only the older handshake, as far as is known.
    pub(super) older: bool,
    /// Shared by all servers: so many start at one time.
    pub(super) starts: Arc<Semaphore>,
    pub(super) closing: CancellationToken,
}

/// What the task waits for.
enum Wait {
    Demand,
    /// With how long it took.
    Start(BoxFuture<'static, (Result<Started, Refusal>, Duration)>),
    Connection(Box<Connected>),
    Drain(Box<Link>, BoxFuture<'static, ()>),
    End(Over, BoxFuture<'static, LinkEnd>),
    Pause(BoxFuture<'static, ()>),
}

impl Holder {
    /// Until it is closed.
    pub(super) async fn hold(mut self) {
        self.older = self.tools.recall();
        let is_lazy = matches!(*self.state.borrow(), State::Idle);
        let (mut lifecycle, mut effects) = Lifecycle::begin(is_lazy, Instant::now());
        let mut wait = Wait::Demand;
        loop {
            for effect in effects {
                wait = match self.perform(effect, wait) {
                    Some(wait) => wait,
                    None => return,
                };
            }
            let event = self.next(&mut wait).await;
            effects = lifecycle.on(event, Instant::now());
        }
    }

    /// What is waited for after this effect; `None` at the end.
    fn perform(&mut self, effect: Effect, wait: Wait) -> Option<Wait> {
        Some(match (effect, wait) {
            (Effect::PublishIdle, wait) => self.publish(State::Idle, wait),
            (Effect::PublishConnecting, wait) => self.publish(State::Connecting, wait),
            (Effect::AwaitDemand, _) => Wait::Demand,
            (Effect::Connect, _) => self.connect(),
            (Effect::Pause(pause), _) => Wait::Pause(sleep(pause.drawn()).boxed()),
            (Effect::ListTools(after), Wait::Connection(mut connected)) => {
                connected.list_tools(self.name.clone(), after, self.starter.limits.start_timeout);
                Wait::Connection(connected)
            }
            (Effect::Ping, Wait::Connection(mut connected)) => {
                connected.ping();
                Wait::Connection(connected)
            }
            (Effect::Drain, Wait::Connection(connected)) => {
                let slots = self.signals.slots.clone();
                let drained = async move { drop(timeout(DRAIN_TIMEOUT, slots.drained()).await) };
                Wait::Drain(Box::new(connected.link), drained.boxed())
            }
            (Effect::Disconnect(over), Wait::Connection(connected)) => {
                Wait::End(over, connected.link.end().boxed())
            }
            (Effect::Disconnect(over), Wait::Drain(link, _)) => Wait::End(over, link.end().boxed()),
            (Effect::Finish, _) => return None,
            // These are asked of a connection alone.
            (Effect::ListTools(_) | Effect::Ping | Effect::Drain | Effect::Disconnect(_), wait) => wait,
        })
    }

    fn publish(&self, state: State, wait: Wait) -> Wait {
        self.state.send_replace(state);
        wait
    }

    /// Starts the server when it is its turn; its time begins then.
    fn connect(&mut self) -> Wait {
        self.answers.mark_unchanged();
        let (starts, starter, older, begun) =
            (self.starts.clone(), self.starter.clone(), self.older, Instant::now());
        let start = async move {
            let _turn = starts.acquire_owned().await;
            let started = starter.start(older).await;
            (started, begun.elapsed())
        };
        Wait::Start(start.boxed())
    }

    async fn next(&mut self, wait: &mut Wait) -> Event {
        match wait {
            Wait::Demand => tokio::select! {
                () = self.signals.wanted.notified() => Event::Wanted,
                () = self.closing.cancelled() => Event::CloseRequested,
            },
            Wait::Start(start) => {
                let started = tokio::select! {
                    started = start => started,
                    () = self.closing.cancelled() => return Event::CloseRequested,
                };
                match started {
                    (Ok(started), took) => {
                        *wait = Wait::Connection(Box::new(self.connected(started, took)));
                        Event::Connected
                    }
                    (Err(refusal), _) => self.refused(refusal),
                }
            }
            Wait::Connection(connected) => self.next_of(connected).await,
            Wait::Drain(_, drained) => {
                drained.await;
                Event::Drained
            }
            Wait::End(over, end) => {
                let end = end.await;
                self.disconnected(over, end)
            }
            Wait::Pause(pause) => tokio::select! {
                () = pause => Event::PauseOver,
                () = self.closing.cancelled() => Event::CloseRequested,
            },
        }
    }

    async fn next_of(&mut self, connected: &mut Connected) -> Event {
        loop {
            let waits = self.tools.wait_for_acceptance();
            match connected.next(&self.signals, &self.closing, waits).await {
                Happening::Event(event) => return event,
                Happening::Listed(Ok(catalogue)) => {
                    self.offer(connected, self.tools.listed(catalogue, self.older));
                    return Event::ToolsListed;
                }
                Happening::Listed(Err(fault)) => {
                    let (name, reason) = (&self.name, fault.reason(None));
                    tracing::warn!(server = %name, "its tools changed and cannot be listed: {reason}");
                    return Event::ToolsListed;
                }
                Happening::AcceptanceDue => self.compare_again(connected),
            }
        }
    }

    fn connected(&mut self, started: Started, took: Duration) -> Connected {
        let Started { link, catalogue, older } = started;
        tracing::info!(server = %self.name, tools = catalogue.tools.len(), "connected");
        self.older = older;
        self.status.send_modify(|status| (status.start, status.fell_back) = (Some(took), older));
        // Somebody needed it, whose turn has yet to come.
        self.signals.slots.touch();
        let (slots, idle_stop) = (self.signals.slots.clone(), self.idle_stop);
        let idle = async move {
            match idle_stop {
                Some(limit) => slots.idle_for(limit).await,
                None => std::future::pending().await,
            }
        };
        let connected = Connected::new(link, idle.boxed());
        let catalogue = self.tools.connected(catalogue, older);
        self.offer(&connected, catalogue);
        connected
    }

    fn offer(&self, connected: &Connected, catalogue: Arc<Catalogue>) {
        let (peer, callers) = (connected.peer.clone(), connected.callers.clone());
        self.state.send_replace(State::Connected(Arc::new(Offer { catalogue, peer, callers })));
    }

    /// The same tools, once a person may have accepted them.
    fn compare_again(&mut self, connected: &Connected) {
        let State::Connected(offer) = self.state.borrow().clone() else { return };
        if let Some(catalogue) = self.tools.compared_again(&offer.catalogue) {
            self.offer(connected, catalogue);
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Event {
        let Refusal { reason, last_words, is_excess, .. } = refusal;
        tracing::warn!(server = %self.name, "not available: {reason}{last_words}");
        // What failed this time may be the process, not the era.
        self.older = false;
        self.status.send_modify(|status| status.last_error = Some(format!("{reason}{last_words}")));
        let hint = if last_words.is_empty() { "" } else { LAST_WORDS_HINT };
        self.tools.fall_back();
        self.state.send_replace(State::Failed(format!("{reason}{hint}")));
        Event::Refused { is_excess }
    }

    fn disconnected(&self, over: &Over, end: LinkEnd) -> Event {
        let LinkEnd { ending, status, last_words } = end;
        match over {
            Over::Lost(reason) => {
                let is_excess = reason.as_ref().is_some_and(|reason| reason.is_excess);
                let how = reason.as_ref().map(|reason| reason.words.clone()).or_else(|| status.map(told));
                let how = how.unwrap_or_else(|| "it closed its output".into());
                tracing::warn!(server = %self.name, "the connection ended: {how}{last_words}");
                if is_excess {
                    self.state.send_replace(State::Failed(how.clone()));
                    self.log_excess(&how);
                }
                self.status.send_modify(|status| {
                    status.reconnects += 1;
                    status.last_error = Some(format!("the connection ended: {how}{last_words}"));
                });
            }
            Over::Idle => {
                tracing::info!(server = %self.name, "stopped: nobody has needed it for a while");
            }
            Over::Closing => self.status.send_modify(|status| status.ending = Some(ending)),
        }
        Event::Disconnected { has_answered: self.answers.has_changed().unwrap_or(false) }
    }

    /// Notes among what the server wrote why it was disconnected.
    fn log_excess(&self, how: &str) {
        if let Some(path) = &self.starter.log {
            ServerLog::at(path).line(&format!("[Lockhouse disconnected the server: {how}]"));
        }
    }
}

impl Pause {
    fn drawn(self) -> Duration {
        match self {
            Self::Exactly(pause) => pause,
            Self::About(pause) => pause.mul_f64(0.5 + fastrand::f64()),
        }
    }
}
