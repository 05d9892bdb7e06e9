//! The part of this engine in a cluster, as its requests see it: which host has what they name, and the connections to the others.

mod peers;

use std::cmp::Reverse;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lockhouse_cluster::{AuditCopies, Host, ItemStore, Membership, SharedItems};

use peers::Peers;
pub(crate) use peers::{ForwardedCaller, HostPeer};

/// The part of this engine in a cluster.
#[derive(Debug)]
pub struct Cluster {
    membership: Membership,
    peers: Peers,
    /// Empty if the hosts share none.
    items: OnceLock<SharedItems>,
    /// Empty if the audit log is not copied.
    audit_copies: OnceLock<AuditCopies>,
    /// Whether an operator has let this host take no new work.
    is_withdrawn: AtomicBool,
}

impl Cluster {
    pub fn new(membership: Membership) -> Self {
        Self {
            peers: Peers::new(membership.clone()),
            membership,
            items: OnceLock::new(),
            audit_copies: OnceLock::new(),
            is_withdrawn: AtomicBool::new(false),
        }
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Lets all hosts share the items of these stores, if they have a key for that. Returns what they share.
    pub(crate) fn share_items(&self, stores: Vec<Arc<dyn ItemStore>>) -> Option<SharedItems> {
        let items = SharedItems::new(&self.membership, stores)?;
        Some(self.items.get_or_init(|| items).clone())
    }

    /// Keeps what all hosts share up to date. Waits for ever if they share nothing.
    pub(crate) async fn keep_items(&self) -> Infallible {
        match self.items.get() {
            Some(items) => items.keep().await,
            None => std::future::pending().await,
        }
    }

    /// Copies the audit log in this directory to the shared state, if the configuration says so.
    pub(crate) fn set_audit_directory(&self, directory: PathBuf) {
        if let Some(copies) = AuditCopies::new(&self.membership, directory) {
            let _ = self.audit_copies.set(copies);
        }
    }

    /// Keeps the copies of the audit log complete. Waits for ever if it is not copied.
    pub(crate) async fn copy_audit(&self) -> Infallible {
        match self.audit_copies.get() {
            Some(copies) => copies.keep().await,
            None => std::future::pending().await,
        }
    }

    /// Copies what the audit log has at the end of this process.
    pub async fn finish_audit_copies(&self) {
        if let Some(copies) = self.audit_copies.get() {
            copies.finish().await;
        }
    }

    /// Returns why the copies of the audit log lack something. `None` if they do not.
    pub(crate) fn audit_failure(&self) -> Option<String> {
        self.audit_copies.get()?.failure()
    }

    /// Lets this host take no new work, or take it again. The other hosts learn it from its lease.
    pub(crate) fn set_withdrawn(&self, is_withdrawn: bool) {
        self.is_withdrawn.store(is_withdrawn, Ordering::Relaxed);
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Relaxed)
    }

    /// Returns the hosts with free workers, those with most of them first.
    pub(crate) fn hosts_with_room(&self) -> Vec<Host> {
        let mut hosts = self.membership.others();
        hosts.retain(|host| host.record.report.free > 0 && !host.record.report.draining);
        hosts.sort_by_key(|host| Reverse(host.record.report.free));
        hosts
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }
}
