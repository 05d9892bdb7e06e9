//! The supervisor's reports of itself to the other hosts of a cluster, and of the hosts to operators.

use std::sync::Arc;

use lockhouse_base::directories;
use lockhouse_cluster::{HostName, HostRecord, HostReport, HostStatus, ItemStore};
use lockhouse_messages::{HostActivity, HostListing, ListedHost, Response};
use lockhouse_protocol::Language;
use lockhouse_upstream::SharedFiles;

use super::Supervisor;
use crate::cluster::Cluster;

impl Supervisor {
    /// Makes this engine a part of a cluster, before the first front connects. Later calls have no effect.
    pub fn set_cluster(&self, cluster: Arc<Cluster>) {
        let rates = cluster.membership().rates();
        self.runs.share_rates(rates.clone());
        self.gate().share_rates(rates.clone());
        self.share_items(&cluster);
        self.gate().upstreams().places().begin(cluster.membership().clone());
        cluster.set_audit_directory(self.settings.audit.directory.clone());
        self.results.begin_copies(cluster.membership());
        let _ = self.cluster.set(cluster);
    }

    /// Lets all hosts share logins, skills and learned result types, if they have a key for that.
    fn share_items(&self, cluster: &Cluster) {
        let (gate, upstreams) = (self.gate(), self.gate().upstreams().clone());
        let places = directories::state().zip(directories::cache());
        let files =
            places.map(|(state, cache)| Arc::new(SharedFiles::new(state, cache)) as Arc<dyn ItemStore>);
        let skills = gate.saved_skills().and_then(|skills| skills.item_store());
        let stores = files.into_iter().chain(skills).collect();
        let Some(items) = cluster.share_items(stores) else { return };
        upstreams.sharing().begin(items.clone());
        if let Some(skills) = gate.saved_skills() {
            skills.sharing().begin(items.clone());
        }
    }

    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.get()
    }

    /// Returns why this host cannot reach the state that the hosts of the cluster share. Empty if it can.
    pub(crate) fn cluster_failures(&self) -> Vec<String> {
        let failure = self.cluster().and_then(|cluster| cluster.membership().failure());
        failure.into_iter().map(|failure| failure.to_string()).collect()
    }

    /// Answers another host which asks whether this one reaches the shared state.
    pub(crate) fn shared_state_for(&self, asking: &HostName) -> Response {
        let failure = self.cluster().and_then(|cluster| cluster.membership().failure_for(asking));
        Response::Reasons(failure.into_iter().map(|failure| failure.to_string()).collect())
    }

    /// Whether a run in this language would begin at once.
    pub(crate) fn has_free_worker(&self, language: Language) -> bool {
        let pool = self.pools.get(language.into()).and_then(Result::ok);
        pool.map(|pool| pool.stats()).is_some_and(|pool| pool.running < pool.places && pool.waiting == 0)
    }

    /// Returns what this host says of itself in its lease.
    pub(crate) fn host_report(&self) -> HostReport {
        let digests = self.digests_in_force();
        let free =
            self.pools.all().map(|pool| pool.stats()).map(|pool| pool.places.saturating_sub(pool.running));
        HostReport {
            draining: self.lifecycle.draining().is_cancelled() || self.is_withdrawn(),
            runs: self.lifecycle.runs_in_flight(),
            free: free.min().unwrap_or_default(),
            sessions: self.sessions.list().len(),
            configuration: digests.configuration.unwrap_or_default(),
            policy: digests.policy.unwrap_or_default(),
        }
    }

    /// Whether an operator has let this host of a cluster take no new work.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.cluster().is_some_and(|cluster| cluster.is_withdrawn())
    }

    /// Returns what is active on the other hosts of the cluster, for operators. There are none without a cluster.
    pub(crate) async fn list_elsewhere(&self) -> Vec<HostActivity> {
        match self.cluster() {
            Some(cluster) => cluster.peers().list_active().await,
            None => Vec::new(),
        }
    }

    /// Returns the hosts of the cluster, for operators. There are none without a cluster.
    pub(crate) fn list_hosts(&self) -> HostListing {
        let hosts = self.cluster().map(|cluster| cluster.membership().list()).unwrap_or_default();
        let listed = |HostStatus { host, heard, is_this }: HostStatus| {
            let HostRecord { address, version, started, report, .. } = host.record;
            // The lease has what this host was at its last renewal.
            let report = if is_this { self.host_report() } else { report };
            ListedHost {
                name: host.name.to_string(),
                is_this,
                address: address.to_string(),
                version,
                state: if report.draining { "draining" } else { "serving" }.to_owned(),
                runs: report.runs,
                free: report.free,
                sessions: report.sessions,
                started,
                heard_s: heard.as_secs(),
                configuration: report.configuration,
                policy: report.policy,
            }
        };
        let problem = self.cluster_failures().into_iter().next();
        HostListing { hosts: hosts.into_iter().map(listed).collect(), problem }
    }
}
