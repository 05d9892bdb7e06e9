//! The part of `lockhouse serve --http` in a cluster.

use std::process::ExitCode;
use std::sync::Arc;

use lockhouse_base::own_host;
use lockhouse_cluster::{HostLease, HostListener, LeaseEnd, Membership};
use lockhouse_config::Settings;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_engine::{Cluster, serve_cluster};

use crate::cli::{UNAVAILABLE, USAGE, print_error};

/// This host as a member of its cluster.
pub(super) struct ClusterMember {
    cluster: Arc<Cluster>,
    lease: HostLease,
    listener: HostListener,
    has_ended: bool,
}

impl ClusterMember {
    /// Joins the cluster, if the configuration names one.
    ///
    /// # Errors
    /// The exit status. This process has printed why it does not start.
    pub(super) async fn join(settings: &Settings) -> Result<Option<Self>, ExitCode> {
        let settings = settings.cluster().map_err(|error| print_error(&error, USAGE))?;
        let Some(settings) = settings else { return Ok(None) };
        let joined = Membership::join(&settings, env!("CARGO_PKG_VERSION")).await;
        let (membership, lease) = joined.map_err(|error| print_error(&error, UNAVAILABLE))?;
        let listener = match HostListener::bind(&membership, settings.listen).await {
            Ok(listener) => listener,
            Err(error) => {
                lease.leave().await;
                return Err(print_error(&error, UNAVAILABLE));
            }
        };
        own_host::set(membership.tag(), membership.fence().clone());
        tracing::info!("this host has joined the cluster as {}", membership.name());
        let cluster = Arc::new(Cluster::new(membership));
        Ok(Some(Self { cluster, lease, listener, has_ended: false }))
    }

    pub(super) fn engine_part(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Copies the last values and the end of the audit log, and gives the lease up, unless it has ended.
    pub(super) async fn leave(self, supervisor: &Supervisor) {
        tokio::join!(supervisor.finish_value_copies(), self.cluster.finish_audit_copies());
        if !self.has_ended {
            self.lease.leave().await;
        }
    }
}

/// Keeps the lease of this host and serves the other hosts, until the lease has ended. Waits for ever without a cluster.
pub(super) async fn serve(member: &mut Option<ClusterMember>, supervisor: &Arc<Supervisor>) -> LeaseEnd {
    let Some(ClusterMember { cluster, lease, listener, has_ended }) = member else {
        return std::future::pending().await;
    };
    let end = serve_cluster(supervisor, cluster, lease, listener).await;
    *has_ended = true;
    end
}
