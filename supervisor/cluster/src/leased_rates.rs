//! Rates that hold for all hosts together. Each host takes blocks of units from the shared state ahead of need and spends them by
//! itself, so that no run or call waits for NATS.

mod allowance;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use lockhouse_policies::Rate;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use crate::shared_state::{SharedState, Unavailable};
use crate::state_table::Table;
use allowance::Allowance;

/// Maximum number of rates of which this host remembers its units. When there are more, those that were not used for long are
/// forgotten; if there are none, further rates are refused for a moment.
/// Bound: hosts of a cluster.
const RATES_MAX: usize = 10_000;
/// A block has this part of what may be used at once, divided by the number of hosts.
const BLOCK_SHARE: u32 = 8;
/// Maximum number of attempts to take a block while other hosts take theirs.
const ATTEMPTS_MAX: usize = 16;
/// How long a use waits that is refused because too many rates are in use.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// The rates of all hosts together. Clones share them.
#[derive(Clone, Debug)]
pub struct LeasedRates(Arc<LeasedRatesInner>);

#[derive(Debug)]
struct LeasedRatesInner {
    state: SharedState,
    allowances: Mutex<HashMap<String, Allowance>>,
    /// Number of hosts, which share what may be used.
    hosts: AtomicUsize,
    /// Whether the clock of this host is right. With a wrong one, it would take the units of the others, or give too many.
    has_right_clock: AtomicBool,
}

/// The stored state of a rate: that of a token bucket.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// When no unit is used any more, in microseconds since 1970.
    full_at: u64,
}

impl LeasedRates {
    pub(crate) fn new(state: SharedState) -> Self {
        let (allowances, hosts) = (Mutex::default(), AtomicUsize::new(1));
        let has_right_clock = AtomicBool::new(true);
        Self(Arc::new(LeasedRatesInner { state, allowances, hosts, has_right_clock }))
    }

    pub(crate) fn has_right_clock(&self) -> bool {
        self.0.has_right_clock.load(Ordering::Relaxed)
    }

    /// Says whether the clock of this host is right.
    pub(crate) fn set_clock(&self, is_right: bool) {
        let before = self.0.has_right_clock.swap(is_right, Ordering::Relaxed);
        if before && !is_right {
            tracing::error!(
                "the clock of this host is wrong: until that is mended, it permits its part of the rates, and shares none with the others"
            );
        }
    }

    pub(crate) fn set_hosts(&self, hosts: usize) {
        self.0.hosts.store(hosts.max(1), Ordering::Relaxed);
    }

    /// Takes one unit of a rate. All hosts together give at most what the rate permits, and one block for each host more.
    ///
    /// # Errors
    /// The time until there is a unit again, as far as it is known.
    pub fn reserve(&self, name: &str, rate: Rate) -> Result<(), Duration> {
        let (now, block) = (Instant::now(), self.block(rate));
        let mut allowances = self.0.allowances.lock();
        if allowances.len() >= RATES_MAX && !allowances.contains_key(name) {
            allowances.retain(|_, allowance| !allowance.is_idle(now));
            if allowances.len() >= RATES_MAX {
                return Err(FULL_RETRY);
            }
        }
        let allowance = allowances.entry(name.to_owned()).or_insert_with(|| Allowance::new(block, rate, now));
        let taken = allowance.take(now);
        if allowance.begin_refill(block) {
            let (rates, name) = (self.clone(), name.to_owned());
            tokio::spawn(async move { rates.refill(&name, rate, block).await });
        }
        taken
    }

    /// Number of units that this host takes at one time.
    fn block(&self, rate: Rate) -> u32 {
        let hosts = u32::try_from(self.0.hosts.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        (rate.burst.get() / BLOCK_SHARE.saturating_mul(hosts)).max(1)
    }

    async fn refill(&self, name: &str, rate: Rate, block: u32) {
        let charged = self.charge(name, rate, block).await;
        let hosts = u32::try_from(self.0.hosts.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        let wait = match self.0.allowances.lock().get_mut(name) {
            None => return,
            Some(allowance) => {
                let now = Instant::now();
                // Until NATS is there again, each host has its part of the rate.
                let wait = match charged {
                    Ok(wait) => {
                        allowance.share_again();
                        wait
                    }
                    Err(_) => allowance.charge_alone(rate, block, hosts, now),
                };
                allowance.wait_until(now + wait);
                wait
            }
        };
        sleep(wait).await;
        if let Some(allowance) = self.0.allowances.lock().get_mut(name) {
            allowance.refill(block);
        }
    }

    /// Takes units from the shared bucket, even if it has not so many. Returns the time until they are there.
    async fn charge(&self, name: &str, rate: Rate, units: u32) -> Result<Duration, Unavailable> {
        if !self.0.has_right_clock.load(Ordering::Relaxed) {
            return Err(Unavailable::wrong_clock());
        }
        let key = HEXLOWER.encode(&Sha256::digest(name));
        let hosts = u64::try_from(self.0.hosts.load(Ordering::Relaxed)).unwrap_or(u64::MAX);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (cost, burst) = (micros(unit(rate) * units), micros(unit(rate) * rate.burst.get()));
        for _ in 0..ATTEMPTS_MAX {
            let now = micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
            let stored = self.0.state.get(Table::Rates, &key).await?;
            let before =
                stored.as_ref().and_then(|stored| serde_json::from_slice::<Record>(&stored.value).ok());
            // What hosts with right clocks can have used: a later time is that of a wrong one.
            let latest =
                now.saturating_add(burst).saturating_add(cost.saturating_mul(2 * hosts.saturating_add(1)));
            let before = before.map_or(now, |before| before.full_at.clamp(now, latest));
            let full_at = before.saturating_add(cost);
            // A number.
            let value = serde_json::to_vec(&Record { full_at }).unwrap_or_default().into();
            let written = match &stored {
                Some(stored) => self.0.state.update(Table::Rates, &key, value, stored.revision).await?,
                None => self.0.state.create(Table::Rates, &key, value).await?,
            };
            if written.is_some() {
                return Ok(Duration::from_micros((full_at - now).saturating_sub(burst)));
            }
        }
        Err(Unavailable::changing())
    }
}

/// Returns the time in which a rate permits one unit.
fn unit(rate: Rate) -> Duration {
    rate.per / rate.calls.get()
}
