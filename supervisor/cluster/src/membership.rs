//! The part of this host in its cluster.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockhouse_base::fence::{Fence, since_boot};
use lockhouse_base::log_throttle::LogThrottle;
use lockhouse_base::sealing_key::SealingKey;
use lockhouse_messages::{Base64Bytes, HostTag};
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout};

use crate::host_key::HostKey;
use crate::host_record::{HostRecord, HostReport};
use crate::host_table::{Host, HostStatus, HostTable, Place};
use crate::join_error::JoinError;
use crate::lease::{HostLease, LeaseEnd, RENEWAL_INTERVAL, Renewal, is_right};
use crate::leased_rates::LeasedRates;
use crate::revocations::{self, TokenDigest};
use crate::sealed_storage::SealedStorage;
use crate::session_places::SessionPlaces;
use crate::settings::{ClusterSettings, HostName};
use crate::shared_state::{Change, SharedState, Unavailable};
use crate::signed_lease::verify;
use crate::state_table::Table;

/// Minimum time between two readings of all leases, and maximum time for one.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);

/// The part of this host in its cluster. Clones share it.
#[derive(Clone, Debug)]
pub struct Membership(Arc<MembershipInner>);

#[derive(Debug)]
struct MembershipInner {
    name: HostName,
    key: HostKey,
    state: SharedState,
    fence: Fence,
    table: Mutex<HostTable>,
    /// The lease of this host, but for its clock and its report.
    record: HostRecord,
    /// When the leases were last read at once.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
    places: SessionPlaces,
    rates: LeasedRates,
    /// The key that seals the items that all hosts share. `None` if they share none.
    sealing: Option<SealingKey>,
    copies_audit: bool,
    /// Where copies of stored values are. `None` if there are none.
    value_storage: Option<Arc<SealedStorage>>,
    /// Why the last renewal failed. `None` if it succeeded.
    failure: Mutex<Option<Unavailable>>,
    /// Warnings of leases that do not count.
    warnings: LogThrottle,
}

impl Membership {
    /// Joins the cluster. `version` is that of this program. From now on, the lease must be kept: see [`Self::keep`].
    ///
    /// # Errors
    /// [`JoinError`]
    pub async fn join(settings: &ClusterSettings, version: &str) -> Result<(Self, HostLease), JoinError> {
        let key = HostKey::load(&settings.key_file)?;
        let value_storage = settings.values.as_ref().map(SealedStorage::new).transpose()?.map(Arc::new);
        let state = SharedState::connect(&settings.connection, settings.replicas).await?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| JoinError::NoRandomNumbers)?;
        let record = HostRecord {
            tag: HostTag::of_bits(u128::from_ne_bytes(random)),
            address: address(settings).await.ok_or(JoinError::NoAddress)?,
            key: Base64Bytes(key.public().to_vec()),
            version: version.to_owned(),
            started: unix_time().as_secs(),
            clock: 0,
            has_left: false,
            report: HostReport::default(),
        };
        let (name, fence) = (settings.connection.name.clone(), Fence::default());
        let first = with_clock(&record, HostReport::default());
        let identity = (name.clone(), key.clone());
        let lease = HostLease::take(state.clone(), identity, &first, fence.clone()).await?;
        let table = Mutex::new(HostTable::new(name.clone(), record.clone()));
        let places = SessionPlaces::new(state.clone(), record.tag);
        let rates = LeasedRates::new(state.clone());
        let failure = Mutex::default();
        let sealing = settings.shared_key.clone();
        let copies_audit = settings.copies_audit;
        let inner = MembershipInner {
            name,
            key,
            state,
            fence,
            table,
            record,
            refreshed: tokio::sync::Mutex::default(),
            places,
            rates,
            sealing,
            copies_audit,
            value_storage,
            failure,
            warnings: LogThrottle::default(),
        };
        let membership = Self(Arc::new(inner));
        // Before the first request: an id of a host that is not known yet would count as lost.
        let state = membership.0.state.clone();
        state
            .for_each(Table::Hosts, |key, value| {
                if let Some(record) = verify(key, value) {
                    membership.note(key, record);
                }
                Ok::<_, Unavailable>(())
            })
            .await?;
        Ok((membership, lease))
    }

    /// Whether the clock of this host was right at its last renewal.
    pub(crate) fn has_right_clock(&self) -> bool {
        self.0.rates.has_right_clock()
    }

    pub fn name(&self) -> &HostName {
        &self.0.name
    }

    /// Returns the tag of this life of this host.
    pub fn tag(&self) -> HostTag {
        self.0.record.tag
    }

    /// Returns whether this host may act.
    pub fn fence(&self) -> &Fence {
        &self.0.fence
    }

    /// Returns where sessions are.
    pub fn session_places(&self) -> &SessionPlaces {
        &self.0.places
    }

    /// Returns the rates that hold for all hosts together.
    pub fn rates(&self) -> &LeasedRates {
        &self.0.rates
    }

    /// Returns the host that made an id with this tag.
    pub fn locate(&self, tag: HostTag) -> Place {
        self.0.table.lock().locate(tag)
    }

    /// Returns the host that made an id with this tag. Asks NATS if this host does not know it.
    pub async fn locate_or_read(&self, tag: HostTag) -> Place {
        match self.locate(tag) {
            Place::Nowhere => {
                self.refresh().await;
                self.locate(tag)
            }
            place => place,
        }
    }

    /// Returns the other hosts.
    pub fn others(&self) -> Vec<Host> {
        self.0.table.lock().list_others()
    }

    /// Returns all hosts, for reports.
    pub fn list(&self) -> Vec<HostStatus> {
        self.0.table.lock().list(Instant::now())
    }

    /// Reads the leases that this host has not heard of, before something counts as that of a host that has ended. At most once a second,
    /// and not while NATS is away.
    async fn refresh(&self) {
        let mut refreshed = self.0.refreshed.lock().await;
        if refreshed.is_some_and(|at| at.elapsed() < REFRESH_INTERVAL) || self.failure().is_some() {
            return;
        }
        let note = |key: &str, value: &[u8]| {
            if let Some(record) = verify(key, value)
                && matches!(self.locate(record.tag), Place::Nowhere)
            {
                self.note(key, record);
            }
            Ok::<_, Unavailable>(())
        };
        let read = timeout(REFRESH_TIMEOUT, self.0.state.for_each(Table::Hosts, note)).await;
        if !matches!(read, Ok(Ok(()))) {
            tracing::debug!("the leases could not be read");
        }
        *refreshed = Some(Instant::now());
    }

    /// Answers another host which asks whether this one reaches the shared state: why not, or `None` if it does. If not, the other host
    /// counts as alive from now on for as long as after a renewal of its lease, because it goes on then.
    pub fn failure_for(&self, asking: &HostName) -> Option<Unavailable> {
        let failure = self.failure()?;
        self.0.table.lock().note_alive(asking, Instant::now());
        Some(failure)
    }

    /// Returns why the last renewal of the lease failed. `None` if it succeeded.
    pub fn failure(&self) -> Option<Unavailable> {
        self.0.failure.lock().clone()
    }

    /// Returns the key that seals the items that all hosts share. `None` if they share none.
    pub(crate) fn sealing(&self) -> Option<&SealingKey> {
        self.0.sealing.as_ref()
    }

    /// Whether the audit log of this host is copied to the shared state.
    pub(crate) fn copies_audit(&self) -> bool {
        self.0.copies_audit
    }

    /// Returns where copies of stored values are. `None` if there are none.
    pub(crate) fn value_storage(&self) -> Option<&Arc<SealedStorage>> {
        self.0.value_storage.as_ref()
    }

    pub(crate) fn state(&self) -> &SharedState {
        &self.0.state
    }

    pub(crate) fn key(&self) -> &HostKey {
        &self.0.key
    }

    /// Returns the other host with this public key.
    pub(crate) fn host_with_key(&self, key: &[u8]) -> Option<Host> {
        self.0.table.lock().find(|record| record.key.0 == key)
    }

    /// Tells the other hosts which tokens were revoked here, which `own` returns, and calls `revoke` for those that were revoked on any
    /// host.
    pub async fn share_revocations(
        &self,
        own: impl Fn() -> Vec<TokenDigest>,
        revoke: impl Fn(TokenDigest),
    ) -> Infallible {
        revocations::share(&self.0.state, own, revoke).await
    }

    /// Renews the lease of this host and hears those of the others, until the lease has ended. `report` returns the part of
    /// the lease that changes. `all_agree` asks all other hosts whether they cannot reach the shared state either: then nobody can count
    /// this host as ended.
    pub async fn keep(
        &self,
        lease: &mut HostLease,
        report: impl Fn() -> HostReport,
        all_agree: impl AsyncFn() -> bool,
    ) -> LeaseEnd {
        let renewing = async {
            loop {
                let record = with_clock(&self.0.record, report());
                let begun = since_boot();
                match lease.renew(&record).await {
                    Ok(Renewal::Renewed) => drop(self.0.failure.lock().take()),
                    Ok(Renewal::Unavailable(reason)) => {
                        tracing::warn!("the lease of this host was not renewed: {reason}");
                        *self.0.failure.lock() = Some(reason);
                        if all_agree().await {
                            lease.extend(begun);
                        }
                    }
                    Err(end) => return end,
                }
                sleep(RENEWAL_INTERVAL).await;
            }
        };
        tokio::select! {
            end = renewing => end,
            never = self.hear() => match never {},
        }
    }

    /// Hears the leases of all hosts.
    async fn hear(&self) -> Infallible {
        let hear = async |Change { key, value }: Change| {
            // A lease that NATS has removed ends by its age, as one that nobody renews.
            let Some(stored) = value else { return };
            let Some(record) = verify(&key, &stored.value) else {
                return self.0.warnings.write(|times| {
                    tracing::warn!(
                        "what NATS has as the lease of {key:?} is not signed by a host, and does not count{times}"
                    );
                });
            };
            if key == self.0.name.as_str() && record.tag == self.0.record.tag {
                let clock = UNIX_EPOCH + Duration::from_millis(record.clock);
                self.0.rates.set_clock(is_right(clock, stored.written));
            }
            self.note(&key, record);
        };
        self.0.state.follow(Table::Hosts, hear).await
    }

    /// Notes a lease that was written.
    fn note(&self, key: &str, record: HostRecord) {
        // Other versions may have keys of other forms.
        let Ok(name) = key.parse::<HostName>() else { return };
        let mut table = self.0.table.lock();
        if let Err(refusal) = table.change(name, record, Instant::now()) {
            self.0.warnings.write(|times| {
                tracing::warn!("a lease of the host {key} is not accepted: {refusal}{times}");
            });
        }
        self.0.rates.set_hosts(table.count());
    }
}

/// Returns where the other hosts find this one.
async fn address(settings: &ClusterSettings) -> Option<SocketAddr> {
    if let Some(address) = settings.address {
        return Some(address);
    }
    if !settings.listen.ip().is_unspecified() {
        return Some(settings.listen);
    }
    for server in &settings.connection.servers {
        for server in tokio::net::lookup_host(server.host_and_port()).await.into_iter().flatten() {
            let own: IpAddr =
                if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            // Sends nothing, and lets the kernel choose the address.
            let socket = UdpSocket::bind((own, 0)).await.ok()?;
            if socket.connect(server).await.is_ok()
                && let Ok(own) = socket.local_addr()
            {
                return Some((own.ip(), settings.listen.port()).into());
            }
        }
    }
    None
}

fn with_clock(record: &HostRecord, report: HostReport) -> HostRecord {
    let clock = unix_time().as_millis().try_into().unwrap_or(u64::MAX);
    HostRecord { clock, report, ..record.clone() }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
