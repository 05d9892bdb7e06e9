//! The lease of this host: while it renews it, the others count the host as alive.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use lockhouse_base::fence::{Fence, since_boot};

use crate::host_key::HostKey;
use crate::host_record::HostRecord;
use crate::join_error::JoinError;
use crate::settings::HostName;
use crate::shared_state::{SharedState, Unavailable};
use crate::signed_lease::{sign, verify};
use crate::state_table::Table;

/// Time between two renewals.
pub(crate) const RENEWAL_INTERVAL: Duration = Duration::from_secs(4);
/// Time after the start of its last renewal after which the host itself counts its lease as ended, before the others do.
const FENCE_AFTER: Duration = Duration::from_secs(20);
/// Age up to which a life of a host ends if another host writes leases under its name. An older one writes over them: the others ignore the
/// lease of a host that is not the first one of its name.
const YIELDS_UNTIL: Duration = Duration::from_mins(1);
/// Maximum difference between the clocks of this host and of the NATS servers.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(5);

/// Whether the clock of a host shows nearly the same time as that of the NATS server.
pub(crate) fn is_right(own: SystemTime, of_server: SystemTime) -> bool {
    difference(own, of_server) <= CLOCK_SKEW_MAX
}

fn difference(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|behind| behind.duration())
}

/// Why this host is no longer a member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseEnd {
    #[error(
        "this host could not renew its lease for {} s, and the others count it as ended. Its runs and sessions are lost",
        FENCE_AFTER.as_secs()
    )]
    Expired,
    #[error("another process has joined the cluster as {0}. Each host needs a name of its own")]
    Superseded(HostName),
}

/// The lease of this host.
#[derive(Debug)]
pub struct HostLease {
    state: SharedState,
    name: HostName,
    key: HostKey,
    /// As it was at the start of this life.
    record: HostRecord,
    revision: u64,
    /// When this life began, since the start of the machine.
    begun: Duration,
    fence: Fence,
}

/// The result of an attempt to renew a lease.
#[derive(Debug)]
pub(crate) enum Renewal {
    Renewed,
    /// It was not renewed, and may still be valid.
    Unavailable(Unavailable),
}

impl HostLease {
    /// Takes the lease of this host. An earlier life of the host, which has the same key, loses its own.
    pub(crate) async fn take(
        state: SharedState,
        (name, key): (HostName, HostKey),
        record: &HostRecord,
        fence: Fence,
    ) -> Result<Self, JoinError> {
        let begun = since_boot();
        let value = signed(&key, &name, record)?;
        let revision = match state.create(Table::Hosts, name.as_str(), value.clone()).await? {
            Some(revision) => revision,
            None => replace(&state, &name, record, value).await?,
        };
        let lease = Self { state, name, key, record: record.clone(), revision, begun, fence };
        if let Err(error) = lease.check_clock().await {
            lease.leave().await;
            return Err(error);
        }
        lease.extend(begun);
        Ok(lease)
    }

    /// Compares the clock of this host with that of the NATS server.
    async fn check_clock(&self) -> Result<(), JoinError> {
        let Some(stored) = self.state.get(Table::Hosts, self.name.as_str()).await? else {
            return Ok(());
        };
        let now = SystemTime::now();
        match is_right(now, stored.written) {
            true => Ok(()),
            false => {
                let seconds = difference(now, stored.written).as_secs();
                Err(JoinError::Clock { seconds, limit: CLOCK_SKEW_MAX.as_secs() })
            }
        }
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// [`LeaseEnd`] if the lease has ended. The host must not act any more.
    pub(crate) async fn renew(&mut self, record: &HostRecord) -> Result<Renewal, LeaseEnd> {
        // A process that was stopped for a long time must not come back.
        if !self.fence.is_open() {
            return Err(LeaseEnd::Expired);
        }
        let begun = since_boot();
        match self.write(record).await {
            Ok(Some(revision)) => {
                self.revision = revision;
                self.extend(begun);
                Ok(Renewal::Renewed)
            }
            Ok(None) => Err(LeaseEnd::Superseded(self.name.clone())),
            Err(unavailable) => Ok(Renewal::Unavailable(unavailable)),
        }
    }

    /// Writes the lease. Returns its revision, or `None` if another process has the name.
    async fn write(&self, record: &HostRecord) -> Result<Option<u64>, Unavailable> {
        let (name, value) = (self.name.as_str(), signed(&self.key, &self.name, record)?);
        if let Some(revision) = self.state.update(Table::Hosts, name, value.clone(), self.revision).await? {
            return Ok(Some(revision));
        }
        // The answer to an earlier renewal was lost, NATS was away for longer than a lease lasts, or another one wrote.
        let written = match self.state.get(Table::Hosts, name).await? {
            None => self.state.create(Table::Hosts, name, value).await?,
            Some(stored) if self.is_superseded_by(verify(name, &stored.value)) => return Ok(None),
            Some(stored) => self.state.update(Table::Hosts, name, value, stored.revision).await?,
        };
        // The next renewal sees who wrote meanwhile.
        written.map(Some).ok_or_else(Unavailable::changing)
    }

    /// Whether a lease under the name of this host ends the lease of this life. What is not signed does not.
    fn is_superseded_by(&self, found: Option<HostRecord>) -> bool {
        let own = &self.record;
        let is_young = || since_boot().saturating_sub(self.begun) < YIELDS_UNTIL;
        found.is_some_and(|found| match found.key == own.key {
            true => found.tag != own.tag && found.started >= own.started,
            false => is_young(),
        })
    }

    /// Lets this host act for [`FENCE_AFTER`] from a moment on.
    pub(crate) fn extend(&self, begun: Duration) {
        self.fence.extend_until(begun + FENCE_AFTER);
    }

    /// Gives the lease up, so that the others know at once that this host has ended.
    pub async fn leave(self) {
        let last = HostRecord { has_left: true, ..self.record.clone() };
        if let Err(error) = self.write(&last).await {
            tracing::warn!("the lease of this host stays until it ends by itself: {error}");
        }
    }
}

async fn replace(
    state: &SharedState,
    name: &HostName,
    record: &HostRecord,
    value: Bytes,
) -> Result<u64, JoinError> {
    let taken = |address| JoinError::NameTaken { name: name.clone(), address };
    let Some(stored) = state.get(Table::Hosts, name.as_str()).await? else {
        return state.create(Table::Hosts, name.as_str(), value).await?.ok_or_else(|| taken(None));
    };
    let other = verify(name.as_str(), &stored.value);
    let address = other.as_ref().map(|other| other.address);
    if other.is_some_and(|other| other.key != record.key && !other.has_left) {
        return Err(taken(address));
    }
    let replaced = state.update(Table::Hosts, name.as_str(), value, stored.revision).await?;
    replaced.ok_or_else(|| taken(address))
}

fn signed(key: &HostKey, name: &HostName, record: &HostRecord) -> Result<Bytes, Unavailable> {
    sign(key, name, record).ok_or_else(Unavailable::unsigned)
}
