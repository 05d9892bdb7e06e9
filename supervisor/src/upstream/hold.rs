//! The task that holds one connection: starts the server, waits for its end, starts it again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lockhouse_protocol::ServerName;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::connection::{Offer, State};
use super::definition::ServerDefinition;
use super::link::{self, Link, Refusal};
use super::secrets::Secrets;
use super::status::Status;
use crate::catalog::Catalogue;

const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// A server that lasted so long is started again without the delay that it had earned before.
const STEADY: Duration = Duration::from_secs(60);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Code and the model are not told what a server wrote; a person may look.
const LAST_WORDS_HINT: &str = "; `lockhouse tools list` shows its last words";

/// One server, from the start of Lockhouse to its end.
pub(super) struct Holder {
    pub(super) name: ServerName,
    pub(super) definition: ServerDefinition,
    pub(super) secrets: Secrets,
    pub(super) state: watch::Sender<State>,
    pub(super) known: watch::Sender<Option<Arc<Catalogue>>>,
    pub(super) status: Arc<Mutex<Status>>,
    pub(super) wanted: Arc<Notify>,
    pub(super) closing: CancellationToken,
}

impl Holder {
    /// Until `closing`.
    pub(super) async fn hold(self) {
        let closing = self.closing.clone();
        let mut legacy = false;
        let mut backoff = BACKOFF_MIN;
        while !closing.is_cancelled() {
            if matches!(*self.state.borrow(), State::Idle) {
                tokio::select! {
                    () = self.wanted.notified() => {}
                    () = closing.cancelled() => return,
                }
                self.state.send_replace(State::Connecting);
            }
            let begun = Instant::now();
            let started = tokio::select! {
                started = link::start(&self.name, &self.definition, &self.secrets, &mut legacy) => started,
                () = closing.cancelled() => return,
            };
            match started {
                Ok((link, catalogue)) => {
                    self.note(|status| {
                        status.start = Some(begun.elapsed());
                        status.fell_back = legacy;
                    });
                    self.serve(link, catalogue).await;
                }
                Err(Refusal { reason, last_words, .. }) => {
                    tracing::warn!(server = %self.name, "not available: {reason}{last_words}");
                    self.note(|status| status.last_error = Some(format!("{reason}{last_words}")));
                    let hint = if last_words.is_empty() { "" } else { LAST_WORDS_HINT };
                    self.state.send_replace(State::Failed(format!("{reason}{hint}")));
                }
            }
            if begun.elapsed() >= STEADY {
                backoff = BACKOFF_MIN;
            }
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = closing.cancelled() => return,
            }
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    /// One connection, until it ends.
    async fn serve(&self, link: Link, catalogue: Catalogue) {
        tracing::info!(server = %self.name, tools = catalogue.tools.len(), "connected");
        let catalogue = Arc::new(catalogue);
        self.known.send_replace(Some(catalogue.clone()));
        self.state.send_replace(State::Connected(Arc::new(Offer {
            catalogue,
            peer: link.peer(),
            callers: link.callers(),
        })));
        // A caller that comes from then on waits for the next one.
        let over = || drop(self.state.send_replace(State::Connecting));
        let (how, last_words) = link.until_the_end(&self.closing, over).await;
        if !self.closing.is_cancelled() {
            tracing::warn!(server = %self.name, "the connection ended: {how}{last_words}");
            self.note(|status| {
                status.reconnects += 1;
                status.last_error = Some(format!("the connection ended: {how}{last_words}"));
            });
        }
    }

    fn note(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
