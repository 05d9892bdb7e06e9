//! Quotas of each AI client: the rate of its runs, its concurrent runs and its CPU time. They prevent one client from
//! using up the capacity that all clients share.

mod cpu_credit;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::client_rate_limiter::ClientRateLimiter;
use lockhouse_messages::Owner;
use lockhouse_policies::Rate;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use cpu_credit::CpuCredit;

/// The quotas of each AI client, from the configuration table `[clients]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Rate limit of one AI client's requests. A request with a large body counts as several requests.
    pub requests: Rate,
    /// Rate limit of one AI client's runs.
    pub runs: Rate,
    /// Maximum number of active runs of one AI client, including the runs that wait for a worker.
    pub running: usize,
    /// Maximum number of further runs of one AI client, which wait until fewer of its runs are active.
    pub waiting: usize,
    /// Maximum number of open sessions of one AI client.
    pub sessions: usize,
}

/// Why a run was refused: which quota its AI client exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    #[error("this client reached its rate limit for runs; retry in {:.1} s", retry_after.as_secs_f64().max(0.1))]
    RateLimit { retry_after: Duration },
    #[error(
        "this client has {active_max} active runs and {waiting_max} that wait for them, which is the limit"
    )]
    TooManyConcurrent { active_max: usize, waiting_max: usize },
}

/// Counts the runs and the CPU time of each AI client, and checks them against the quotas. Clones share the counts.
#[derive(Clone, Debug)]
pub struct ClientQuotas(Arc<Usage>);

#[derive(Debug)]
struct Usage {
    limits: ClientLimits,
    runs: ClientRateLimiter,
    running: Mutex<BTreeMap<Owner, ClientRuns>>,
    cpu: CpuCredit,
}

/// The runs of one AI client that wait or are active.
#[derive(Debug)]
struct ClientRuns {
    count: usize,
    /// Semaphore with one permit for each run of this AI client that may be active at the same time.
    places: Arc<Semaphore>,
}

/// The permission for one run of an AI client. The run counts as waiting or active until this value is
/// dropped.
#[derive(Debug)]
pub struct RunPermit {
    quotas: ClientQuotas,
    owner: Owner,
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
}

impl ClientQuotas {
    pub fn new(limits: ClientLimits) -> Self {
        let runs = ClientRateLimiter::new(limits.runs);
        Self(Arc::new(Usage { limits, runs, running: Mutex::default(), cpu: CpuCredit::default() }))
    }

    /// Admits one more run of an AI client. The run then counts as waiting or active. Before it starts, it must wait
    /// with [`RunPermit::wait_for_place`] until fewer of the client's runs are active than [`ClientLimits::running`]
    /// permits.
    ///
    /// # Errors
    /// The quota that the client has reached: the number of its runs that wait or are active ([`ClientLimits::running`]
    /// and [`ClientLimits::waiting`] together), or the rate of its runs ([`ClientLimits::runs`]).
    pub fn admit_run(&self, owner: Owner) -> Result<RunPermit, QuotaExceeded> {
        let ClientLimits { running: active_max, waiting: waiting_max, .. } = self.0.limits;
        let mut running = self.0.running.lock();
        let count = running.get(&owner).map_or(0, |runs| runs.count);
        if owner.is_limited() && count >= active_max + waiting_max {
            return Err(QuotaExceeded::TooManyConcurrent { active_max, waiting_max });
        }
        self.0
            .runs
            .take(owner, Instant::now())
            .map_err(|retry_after| QuotaExceeded::RateLimit { retry_after })?;
        let places = if owner.is_limited() { active_max } else { Semaphore::MAX_PERMITS };
        let runs = running
            .entry(owner)
            .or_insert_with(|| ClientRuns { count: 0, places: Arc::new(Semaphore::new(places)) });
        runs.count += 1;
        Ok(RunPermit { quotas: self.clone(), owner, places: runs.places.clone(), place: None })
    }

    /// Returns the CPU time that a run of this AI client may use before it is scheduled as idle work. Returns `None`
    /// for the user at the command line and for an AI client on standard input, who have no limit.
    pub fn cpu_credit(&self, owner: Owner) -> Option<Duration> {
        self.0.cpu.remaining(owner, Instant::now())
    }

    /// Deducts the CPU time that a run has used from the CPU credit of its AI client.
    pub fn charge_cpu(&self, owner: Owner, used: Duration) {
        self.0.cpu.charge(owner, used, Instant::now());
    }
}

impl RunPermit {
    /// Waits until fewer runs of the AI client are active than its quota permits; from then on, this run counts as
    /// active. Waiting runs become active in the order in which they began to wait.
    pub async fn wait_for_place(&mut self) {
        self.place = self.places.clone().acquire_owned().await.ok();
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        let mut running = self.quotas.0.running.lock();
        if let Some(runs) = running.get_mut(&self.owner) {
            runs.count -= 1;
            if runs.count == 0 {
                running.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_base::principal::owner_of_name;

    fn quotas(runs: &str, running: usize) -> ClientQuotas {
        let rate = |text: &str| Rate::parse(text).expect("a rate");
        ClientQuotas::new(ClientLimits {
            requests: rate("10/min"),
            runs: rate(runs),
            running,
            waiting: 1,
            sessions: 1,
        })
    }

    #[test]
    fn quotas_of_clients_are_independent() {
        let (one, other) = (owner_of_name("one"), owner_of_name("other"));
        let quotas = quotas("3/h", 1);
        let first = quotas.admit_run(one).expect("room");
        let _second = quotas.admit_run(one).expect("room");
        let full = QuotaExceeded::TooManyConcurrent { active_max: 1, waiting_max: 1 };
        assert_eq!(quotas.admit_run(one).expect_err("full"), full);
        assert!(quotas.admit_run(other).is_ok());
        drop(first);
        assert!(quotas.admit_run(one).is_ok());
        let refused = quotas.admit_run(one).expect_err("often");
        assert!(
            matches!(refused, QuotaExceeded::RateLimit { retry_after } if retry_after > Duration::from_secs(600)),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn a_run_beyond_the_active_ones_waits_for_its_place() {
        let (quotas, one) = (quotas("100/h", 1), owner_of_name("one"));
        let mut first = quotas.admit_run(one).expect("room");
        first.wait_for_place().await;
        let mut second = quotas.admit_run(one).expect("room to wait");
        tokio::select! {
            biased;
            () = second.wait_for_place() => panic!("the first run has the place"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        second.wait_for_place().await;
    }

    #[test]
    fn the_local_user_has_no_quota() {
        let quotas = quotas("1/h", 1);
        let runs: Vec<RunPermit> = (0..50).map(|_| quotas.admit_run(Owner::LOCAL).expect("room")).collect();
        drop(runs);
        assert!(quotas.0.running.lock().is_empty());
    }
}
