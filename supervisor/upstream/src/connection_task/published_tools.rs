//! Publishes the tools of an upstream server to callers: from the cache, or as listed by the server. Tools that no user
//! has accepted are marked.

use std::sync::Arc;

use lockhouse_base::files::FileVersion;
use lockhouse_catalog::{Catalogue, ToolChange};
use lockhouse_protocol::ServerName;
use tokio::sync::watch;

use super::LOG_TARGET;
use crate::change_notices::{ChangeNotice, ServerChangeNotices};
use crate::definition::ToolSelection;
use crate::tool_cache::ToolCache;
use crate::tool_pins::Pins;

/// Publishes the tools of one upstream server to its callers. Keeps the tools in a cache, and compares them with the
/// pins (accepted tool definitions).
pub(crate) struct PublishedTools {
    name: ServerName,
    selection: ToolSelection,
    cache: ToolCache,
    pins: Pins,
    notices: ServerChangeNotices,
    known: watch::Sender<Option<Arc<Catalogue>>>,
    /// Expired tools from the cache, which are published only if the server cannot be started.
    fallback: Option<Catalogue>,
    /// The version of the pins file (accepted tool definitions) with which the tools were last compared; `None` if the
    /// file did not exist.
    pinned: Option<FileVersion>,
}

impl PublishedTools {
    /// Creates the publisher of a server's tools, and the receiver by which callers read the published tools.
    pub(crate) fn new(
        name: ServerName,
        selection: ToolSelection,
        cache: ToolCache,
        pins: Pins,
        notices: ServerChangeNotices,
    ) -> (Self, watch::Receiver<Option<Arc<Catalogue>>>) {
        let (known, receiver) = watch::channel(None);
        (Self { name, selection, cache, pins, notices, known, fallback: None, pinned: None }, receiver)
    }

    /// Publishes the tools in the cache file, unless they have expired. Returns whether the server understood only the
    /// older MCP handshake (`initialize`) at its last connection. Returns false if the cache has no tools or they have
    /// expired.
    pub(super) fn load_cached(&mut self) -> bool {
        let Some(remembered) = self.cache.load() else { return false };
        let mut catalogue = remembered.catalogue;
        self.prepare(&mut catalogue);
        match remembered.expired {
            true => self.fallback = Some(catalogue),
            false => drop(self.known.send_replace(Some(Arc::new(catalogue)))),
        }
        remembered.legacy && !remembered.expired
    }

    /// Publishes expired tools from the cache, if there are any, because the server is not available.
    pub(super) fn publish_stale(&mut self) {
        if let Some(stale) = self.fallback.take() {
            tracing::warn!(
                target: LOG_TARGET,
                server = %self.name,
                "its tools are shown as they were when it was last seen"
            );
            self.known.send_replace(Some(Arc::new(stale)));
        }
    }

    /// Saves in the cache and publishes the tools that the server has listed on a new connection. `legacy_handshake` is
    /// whether the server understood only the older MCP handshake.
    pub(super) fn connected(&mut self, catalogue: Catalogue, legacy_handshake: bool) -> Arc<Catalogue> {
        self.fallback = None;
        self.pinned = self.pins.version();
        self.publish_listed(catalogue, legacy_handshake)
    }

    /// Saves in the cache and publishes the tools that the server has just listed. `legacy_handshake` is whether the
    /// server understood only the older MCP handshake.
    pub(super) fn publish_listed(&self, catalogue: Catalogue, legacy_handshake: bool) -> Arc<Catalogue> {
        self.cache.save(&catalogue, legacy_handshake);
        self.publish(catalogue)
    }

    /// Compares the tools with the accepted definitions (pins) again if the pins file has changed, and publishes the
    /// tools. Returns the published tools; `None` if the file has not changed.
    pub(super) fn recheck(&mut self, catalogue: &Catalogue) -> Option<Arc<Catalogue>> {
        let now = self.pins.version();
        let is_other = std::mem::replace(&mut self.pinned, now) != now;
        is_other.then(|| self.publish(catalogue.clone_tools()))
    }

    /// Tells AI clients that the state of the server may have changed, which the description of `run_code` shows until the
    /// server's tools are known.
    pub(super) fn announce_state(&self) {
        if self.known.borrow().is_none() {
            self.notices.send(ChangeNotice::Tools);
        }
    }

    /// Returns the tools as they were last published; none if no tools were.
    pub(super) fn published(&self) -> Arc<Catalogue> {
        self.known.borrow().clone().unwrap_or_default()
    }

    pub(super) fn has_unaccepted_tools(&self) -> bool {
        self.known.borrow().as_ref().is_some_and(|known| !known.is_accepted())
    }

    fn publish(&self, mut catalogue: Catalogue) -> Arc<Catalogue> {
        self.prepare(&mut catalogue);
        let catalogue = Arc::new(catalogue);
        let before = self.known.send_replace(Some(catalogue.clone()));
        if before.is_none_or(|before| !before.has_same_tools(&catalogue)) {
            self.notices.send(ChangeNotice::Tools);
        }
        catalogue
    }

    /// Removes the tools that the configuration excludes, and marks the tools that no user has accepted.
    fn prepare(&self, catalogue: &mut Catalogue) {
        catalogue.retain(|tool| self.selection.admits(tool));
        let name = &self.name;
        if let Err(error) = self.pins.compare(catalogue) {
            tracing::warn!(
                target: LOG_TARGET,
                server = %name,
                "{error}; until then each of its tools counts as changed"
            );
            return;
        }
        let hiding = catalogue.tools.iter().filter(|tool| tool.has_hidden_text).count();
        if hiding > 0 {
            tracing::warn!(
                target: LOG_TARGET,
                server = %name,
                "{hiding} of its tools have characters in their definitions that cannot be seen; models get U+FFFD in their place"
            );
        }
        let (changed, new) = (catalogue.count(ToolChange::Definition), catalogue.count(ToolChange::New));
        let changes: Vec<String> = [(changed, "not what they were"), (new, "new since they were accepted")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} of its tools are {what}"))
            .collect();
        if !changes.is_empty() {
            let changes = changes.join(", ");
            tracing::warn!(
                target: LOG_TARGET,
                server = %name,
                "{changes}; `lockhouse server diff {name}` shows them, and the command that accepts them"
            );
        }
    }
}
