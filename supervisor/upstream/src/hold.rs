//! The task that holds one connection: starts the server when it is needed, watches it, starts it again.

use std::sync::Arc;

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse, FusedFuture};
use lockhouse_catalog::{Catalogue, ToolChange};
use lockhouse_protocol::ServerName;
use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::broken::Reason;
use super::cache::Cache;
use super::callers::Callers;
use super::connection::{Offer, State};
use super::definition::{ServerDefinition, ServerLimits};
use super::followed::Followed;
use super::link::{Link, told};
use super::log::ServerLog;
use super::notices::{Notice, Notices};
use super::pins::{FileVersion, Pins};
use super::slots::Slots;
use super::start::{Refusal, Starter};
use super::status::Status;

const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// A server that lasted so long, or answered a call, is started again without the delay that it had earned before.
const STEADY: Duration = Duration::from_secs(60);
/// A server that was disconnected because it sent more than a server may is started again after this, and after twice as
/// long each further time, whatever it answered meanwhile.
const EXCESS_MIN: Duration = Duration::from_secs(10);
const EXCESS_MAX: Duration = Duration::from_secs(600);
/// Announced changes of a server's tools are looked at together, and no more often than this; of a server that goes on
/// announcing them, less and less often.
const RELIST_MIN: Duration = Duration::from_secs(1);
const RELIST_MAX: Duration = Duration::from_secs(60);
/// While tools wait to be accepted: how often it is looked whether a person has done so.
const ACCEPTANCE_EVERY: Duration = Duration::from_secs(1);
/// A server that lets a call time out and answers nothing in so long is started again.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long calls in flight may take once the server is to be closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
const SILENT: &str = "it does not answer any more";
/// Code and the model are not told what a server wrote; a person may look.
const LAST_WORDS_HINT: &str = "; `lockhouse server logs` shows its last words";

/// One server, from the start of Lockhouse to its end.
pub(super) struct Holder {
    pub(super) name: ServerName,
    pub(super) definition: ServerDefinition,
    pub(super) starter: Starter,
    pub(super) cache: Cache,
    pub(super) pins: Pins,
    pub(super) state: watch::Sender<State>,
    pub(super) known: watch::Sender<Option<Arc<Catalogue>>>,
    pub(super) signals: Arc<Signals>,
    /// Shared by all servers: so many start at one time.
    pub(super) starts: Arc<Semaphore>,
    pub(super) closing: CancellationToken,
}

/// What callers and the task that holds a connection tell each other.
#[derive(Debug)]
pub(super) struct Signals {
    /// Someone needs the server.
    pub(super) wanted: Notify,
    /// A call timed out.
    pub(super) suspect: Notify,
    pub(super) status: Mutex<Status>,
    pub(super) slots: Arc<Slots>,
    /// Where AI clients hear of changes, if they have the server directly.
    notices: Option<Notices>,
    pub(super) followed: Followed,
}

impl Signals {
    pub(super) fn new(limits: ServerLimits, notices: Option<Notices>) -> Self {
        let (wanted, suspect) = (Notify::new(), Notify::new());
        Self {
            wanted,
            suspect,
            status: Mutex::default(),
            slots: Slots::new(limits),
            notices,
            followed: Followed::default(),
        }
    }

    /// Whether AI clients have the server directly.
    pub(super) fn is_direct(&self) -> bool {
        self.notices.is_some()
    }

    /// Tells AI clients that have the server directly.
    pub(super) fn tell(&self, notice: Notice) {
        if let Some(notices) = &self.notices {
            notices.tell(notice);
        }
    }

    pub(super) fn status(&self) -> Status {
        self.status.lock().clone()
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock());
    }
}

/// When a server may be started again.
enum Next {
    AtOnce,
    Later {
        /// Whether it sent more than a server may.
        is_excess: bool,
    },
}

/// Why a connection is over.
enum Over {
    /// The server's side ended it, or it was given up, for this reason.
    Lost(Option<Reason>),
    /// Nobody has needed it for a while.
    Idle,
    Closing,
}

impl Holder {
    /// Until it is closed.
    pub(super) async fn hold(mut self) {
        let mut fallback = self.recall();
        let (mut backoff, mut excess) = (BACKOFF_MIN, EXCESS_MIN);
        let closing = self.closing.clone();
        while !closing.is_cancelled() {
            if matches!(*self.state.borrow(), State::Idle) {
                tokio::select! {
                    () = self.signals.wanted.notified() => {}
                    () = closing.cancelled() => return,
                }
                self.state.send_replace(State::Connecting);
            }
            let (begun, answered) = (Instant::now(), self.signals.status().answered);
            let started = tokio::select! {
                started = self.start() => started,
                () = closing.cancelled() => return,
            };
            let is_excess = match started {
                Ok((link, catalogue)) => {
                    fallback = None;
                    self.signals.note(|status| status.start = Some(begun.elapsed()));
                    match self.serve(link, catalogue).await {
                        Next::AtOnce => continue,
                        Next::Later { is_excess } => is_excess,
                    }
                }
                Err(refusal) => {
                    let is_excess = refusal.is_excess;
                    self.tell(refusal, &mut fallback);
                    is_excess
                }
            };
            if begun.elapsed() > EXCESS_MAX {
                excess = EXCESS_MIN;
            }
            if is_excess {
                tokio::select! {
                    () = tokio::time::sleep(excess) => {}
                    () = closing.cancelled() => return,
                }
                excess = (excess * 2).min(EXCESS_MAX);
                continue;
            }
            if begun.elapsed() >= STEADY || self.signals.status().answered > answered {
                backoff = BACKOFF_MIN;
            }
            // With jitter: servers that went down together do not come back at one moment.
            tokio::select! {
                () = tokio::time::sleep(backoff.mul_f64(0.5 + fastrand::f64())) => {}
                () = closing.cancelled() => return,
            }
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    /// When it is its turn; its time begins then.
    async fn start(&mut self) -> Result<(Link, Catalogue), Refusal> {
        let _turn = self.starts.clone().acquire_owned().await;
        self.starter.start().await
    }

    /// What was known of the server when we last ran. Tools that are too old come back, for the case that it does not.
    fn recall(&mut self) -> Option<Catalogue> {
        let remembered = self.cache.load()?;
        self.starter.legacy = remembered.legacy && !remembered.expired;
        let mut catalogue = remembered.catalogue;
        self.prepare(&mut catalogue);
        if remembered.expired {
            return Some(catalogue);
        }
        self.known.send_replace(Some(Arc::new(catalogue)));
        None
    }

    /// Takes away what the configuration does not admit, and marks what no person has accepted.
    fn prepare(&self, catalogue: &mut Catalogue) {
        catalogue.retain(|tool| self.definition.tools.admits(tool));
        let name = &self.name;
        if let Err(error) = self.pins.compare(catalogue) {
            tracing::warn!(server = %name, "{error}; until then each of its tools counts as changed");
            return;
        }
        let hiding = catalogue.tools.iter().filter(|tool| tool.hides).count();
        if hiding > 0 {
            tracing::warn!(
                server = %name,
                "{hiding} of its tools have characters in their definitions that cannot be seen; models get U+FFFD in their place"
            );
        }
        let (changed, new) = (catalogue.count(ToolChange::Definition), catalogue.count(ToolChange::New));
        let told: Vec<String> = [(changed, "not what they were"), (new, "new since they were accepted")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} of its tools are {what}"))
            .collect();
        if !told.is_empty() {
            let told = told.join(", ");
            tracing::warn!(
                server = %name,
                "{told}; `lockhouse server diff {name}` shows them, and the command that accepts them"
            );
        }
    }

    fn tell(&self, refusal: Refusal, fallback: &mut Option<Catalogue>) {
        let Refusal { reason, last_words, .. } = refusal;
        tracing::warn!(server = %self.name, "not available: {reason}{last_words}");
        self.signals.note(|status| status.last_error = Some(format!("{reason}{last_words}")));
        let hint = if last_words.is_empty() { "" } else { LAST_WORDS_HINT };
        if let Some(stale) = fallback.take() {
            tracing::warn!(server = %self.name, "its tools are shown as they were when it was last seen");
            self.known.send_replace(Some(Arc::new(stale)));
        }
        self.state.send_replace(State::Failed(format!("{reason}{hint}")));
    }

    /// One connection, until it is over, and when the next may follow.
    async fn serve(&self, mut link: Link, catalogue: Catalogue) -> Next {
        tracing::info!(server = %self.name, tools = catalogue.tools.len(), "connected");
        self.signals.note(|status| status.fell_back = self.starter.fell_back || self.starter.legacy);
        let pinned = self.pins.version();
        self.offer(&link.peer(), &link.callers(), catalogue);
        let over = self.watch(&mut link, pinned).await;
        // A caller that comes from now on waits for the next one.
        self.state.send_replace(if matches!(over, Over::Idle) { State::Idle } else { State::Connecting });
        let (ending, status, last_words) = link.end().await;
        match over {
            Over::Lost(reason) => {
                let is_excess = reason.as_ref().is_some_and(|reason| reason.is_excess);
                let how = reason.map(|reason| reason.words).or_else(|| status.map(told));
                let how = how.unwrap_or_else(|| "it closed its output".into());
                tracing::warn!(server = %self.name, "the connection ended: {how}{last_words}");
                if is_excess {
                    self.state.send_replace(State::Failed(how.clone()));
                    self.log_excess(&how);
                }
                self.signals.note(|status| {
                    status.reconnects += 1;
                    status.last_error = Some(format!("the connection ended: {how}{last_words}"));
                });
                Next::Later { is_excess }
            }
            Over::Idle => {
                tracing::info!(server = %self.name, "stopped: nobody has needed it for a while");
                Next::AtOnce
            }
            Over::Closing => {
                self.signals.note(|status| status.ending = Some(ending));
                Next::AtOnce
            }
        }
    }

    /// Notes among what the server wrote why it was disconnected.
    fn log_excess(&self, how: &str) {
        if let Some(path) = &self.starter.log {
            ServerLog::at(path).line(&format!("[Lockhouse disconnected the server: {how}]"));
        }
    }

    fn offer(&self, peer: &Peer<RoleClient>, callers: &Callers, catalogue: Catalogue) {
        self.cache.save(&catalogue, self.starter.legacy);
        self.publish(catalogue, peer.clone(), callers.clone());
    }

    /// The same tools, once a person may have accepted them.
    fn offer_again(&self) {
        let state = self.state.borrow().clone();
        if let State::Connected(offer) = state {
            self.publish(offer.catalogue.again(), offer.peer.clone(), offer.callers.clone());
        }
    }

    fn publish(&self, mut catalogue: Catalogue, peer: Peer<RoleClient>, callers: Callers) {
        self.prepare(&mut catalogue);
        let catalogue = Arc::new(catalogue);
        let before = self.known.send_replace(Some(catalogue.clone()));
        if before.is_none_or(|before| !before.is_like(&catalogue)) {
            self.signals.tell(Notice::Tools);
        }
        self.state.send_replace(State::Connected(Arc::new(Offer { catalogue, peer, callers })));
    }

    fn waits_for_acceptance(&self) -> bool {
        self.known.borrow().as_ref().is_some_and(|known| !known.is_accepted())
    }

    async fn watch(&self, link: &mut Link, mut pinned: Option<FileVersion>) -> Over {
        // Somebody needed it, whose turn has yet to come.
        self.signals.slots.touch();
        let idle = async {
            match self.definition.start.idle_stop {
                Some(limit) => self.signals.slots.idle_for(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(idle);
        let (peer, callers, changed) = (link.peer(), link.callers(), link.changed());
        let (mut pause, mut relisted) = (RELIST_MIN, Instant::now());
        // At most one at a time.
        let mut relisting: Fuse<BoxFuture<'_, ()>> = Fuse::terminated();
        loop {
            tokio::select! {
                how = link.ended() => return Over::Lost(how),
                () = self.closing.cancelled() => {
                    let _ = timeout(DRAIN_TIMEOUT, self.signals.slots.drained()).await;
                    return Over::Closing;
                }
                () = &mut idle => return Over::Idle,
                () = changed.notified(), if relisting.is_terminated() => {
                    relisting = self.relist(&peer, &callers, pause).boxed().fuse();
                }
                () = &mut relisting, if !relisting.is_terminated() => {
                    let is_calm = relisted.elapsed() > 2 * RELIST_MAX;
                    pause = if is_calm { RELIST_MIN } else { (pause * 2).min(RELIST_MAX) };
                    relisted = Instant::now();
                }
                () = tokio::time::sleep(ACCEPTANCE_EVERY), if self.waits_for_acceptance() => {
                    let now = self.pins.version();
                    if std::mem::replace(&mut pinned, now) != now {
                        self.offer_again();
                    }
                }
                () = self.signals.suspect.notified() => {
                    if !Link::answers(&peer, PING_TIMEOUT).await {
                        return Over::Lost(link.reason().or_else(|| Some(Reason::failed(SILENT))));
                    }
                }
            }
        }
    }

    async fn relist(&self, peer: &Peer<RoleClient>, callers: &Callers, pause: Duration) {
        tokio::time::sleep(pause).await;
        match self.starter.list(peer).await {
            Ok(catalogue) => self.offer(peer, callers, catalogue),
            Err(reason) => {
                tracing::warn!(server = %self.name, "its tools changed and cannot be listed: {reason}");
            }
        }
    }
}
