//! The tools of a server as callers see them: as they were last seen, as it offers them, and which of them no person has
//! accepted.

use std::sync::Arc;

use lockhouse_catalog::{Catalogue, ToolChange};
use lockhouse_protocol::ServerName;
use tokio::sync::watch;

use super::LOG_TARGET;
use crate::cache::Cache;
use crate::definition::ToolSelection;
use crate::notices::{DirectNotices, Notice};
use crate::pins::{FileVersion, Pins};

/// The tools of one server.
pub(crate) struct Tools {
    name: ServerName,
    selection: ToolSelection,
    cache: Cache,
    pins: Pins,
    notices: DirectNotices,
    known: watch::Sender<Option<Arc<Catalogue>>>,
    /// Tools that are too old to be shown before the server has failed.
    fallback: Option<Catalogue>,
    /// The pins that the tools were last compared with.
    pinned: Option<FileVersion>,
}

impl Tools {
    /// With where callers see them.
    pub(crate) fn new(
        name: ServerName,
        selection: ToolSelection,
        cache: Cache,
        pins: Pins,
        notices: DirectNotices,
    ) -> (Self, watch::Receiver<Option<Arc<Catalogue>>>) {
        let (known, receiver) = watch::channel(None);
        (Self { name, selection, cache, pins, notices, known, fallback: None, pinned: None }, receiver)
    }

    /// Takes what was known of the server when we last ran. Whether it understood only the older handshake.
    pub(super) fn recall(&mut self) -> bool {
        let Some(remembered) = self.cache.load() else { return false };
        let mut catalogue = remembered.catalogue;
        self.prepare(&mut catalogue);
        match remembered.expired {
            true => self.fallback = Some(catalogue),
            false => drop(self.known.send_replace(Some(Arc::new(catalogue)))),
        }
        remembered.legacy && !remembered.expired
    }

    /// The server is not available: tools that are too old are better than none.
    pub(super) fn fall_back(&mut self) {
        if let Some(stale) = self.fallback.take() {
            tracing::warn!(
                target: LOG_TARGET,
                server = %self.name,
                "its tools are shown as they were when it was last seen"
            );
            self.known.send_replace(Some(Arc::new(stale)));
        }
    }

    /// The tools of a new connection, as callers have them.
    pub(super) fn connected(&mut self, catalogue: Catalogue, older: bool) -> Arc<Catalogue> {
        self.fallback = None;
        self.pinned = self.pins.version();
        self.listed(catalogue, older)
    }

    /// The tools as the server has just listed them.
    pub(super) fn listed(&self, catalogue: Catalogue, older: bool) -> Arc<Catalogue> {
        self.cache.save(&catalogue, older);
        self.publish(catalogue)
    }

    /// The same tools once more, if the pins have changed since they were compared with them.
    pub(super) fn compared_again(&mut self, catalogue: &Catalogue) -> Option<Arc<Catalogue>> {
        let now = self.pins.version();
        let is_other = std::mem::replace(&mut self.pinned, now) != now;
        is_other.then(|| self.publish(catalogue.again()))
    }

    pub(super) fn wait_for_acceptance(&self) -> bool {
        self.known.borrow().as_ref().is_some_and(|known| !known.is_accepted())
    }

    fn publish(&self, mut catalogue: Catalogue) -> Arc<Catalogue> {
        self.prepare(&mut catalogue);
        let catalogue = Arc::new(catalogue);
        let before = self.known.send_replace(Some(catalogue.clone()));
        if before.is_none_or(|before| !before.is_like(&catalogue)) {
            self.notices.tell(Notice::Tools);
        }
        catalogue
    }

    /// Takes away what the configuration does not admit, and marks what no person has accepted.
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
        let hiding = catalogue.tools.iter().filter(|tool| tool.hides).count();
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
