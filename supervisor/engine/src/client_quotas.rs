//! Quotas of each AI client: the rate of its runs, its concurrent runs and its CPU time. They prevent one client from
//! using up the capacity that all clients share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_cluster::LeasedRates;
use lockhouse_messages::Owner;
use lockhouse_policies::Rate;
use tokio::sync::Semaphore;

/// The CPU credit of each AI client, as burstable virtual machines have it: a client may use 50 ms at once before its
/// runs are scheduled as idle work, and the credit grows by one percent of the elapsed time. A unit is a nanosecond.
const CPU_CREDIT: Rate = Rate::new(10_000_000, Duration::from_secs(1), 50_000_000);

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

/// Counts the runs and the CPU time of each AI client, and checks them against the quotas.
#[derive(Debug)]
pub(crate) struct ClientQuotas {
    limits: ClientLimits,
    runs: KeyedLimiter<Owner>,
    /// Set in a cluster, where the rate of runs holds for all hosts together.
    of_cluster: Option<LeasedRates>,
    running: BTreeMap<Owner, ClientRuns>,
    cpu: KeyedLimiter<Owner>,
}

/// The runs of one AI client that wait or are active.
#[derive(Debug)]
struct ClientRuns {
    count: usize,
    /// Semaphore with one permit for each run of this AI client that may be active at the same time.
    places: Arc<Semaphore>,
}

impl ClientQuotas {
    pub(crate) fn new(limits: ClientLimits) -> Self {
        let (runs, running, cpu) = (KeyedLimiter::default(), BTreeMap::new(), KeyedLimiter::default());
        Self { limits, runs, of_cluster: None, running, cpu }
    }

    /// Lets the rate of runs hold for all hosts of a cluster together.
    pub(crate) fn share(&mut self, rates: LeasedRates) {
        self.of_cluster = Some(rates);
    }

    /// Admits one more run of an AI client. The run then counts as waiting or active, until [`Self::end_run`] is called.
    /// Before it starts, it must get a permit of the returned semaphore, and so waits until fewer of the client's runs
    /// are active than [`ClientLimits::running`] permits. Waiting runs become active in the order in which they began to
    /// wait.
    ///
    /// # Errors
    /// The quota that the client has reached: the number of its runs that wait or are active ([`ClientLimits::running`]
    /// and [`ClientLimits::waiting`] together), or the rate of its runs ([`ClientLimits::runs`]).
    pub(crate) fn admit_run(&mut self, owner: Owner) -> Result<Arc<Semaphore>, QuotaExceeded> {
        let ClientLimits { runs: rate, running: active_max, waiting: waiting_max, .. } = self.limits;
        let count = self.running.get(&owner).map_or(0, |runs| runs.count);
        if owner.is_limited() {
            if count >= active_max + waiting_max {
                return Err(QuotaExceeded::TooManyConcurrent { active_max, waiting_max });
            }
            let now = Instant::now();
            let reserved = match &self.of_cluster {
                Some(rates) => rates.reserve(&format!("runs {}", owner.to_hex()), rate),
                None => self.runs.bucket(owner, rate, now).reserve(Duration::ZERO, now).map(drop),
            };
            reserved.map_err(|retry_after| QuotaExceeded::RateLimit { retry_after })?;
        }
        let places = if owner.is_limited() { active_max } else { Semaphore::MAX_PERMITS };
        let runs = self
            .running
            .entry(owner)
            .or_insert_with(|| ClientRuns { count: 0, places: Arc::new(Semaphore::new(places)) });
        runs.count += 1;
        Ok(runs.places.clone())
    }

    /// Ends the count of an admitted run.
    pub(crate) fn end_run(&mut self, owner: Owner) {
        if let Some(runs) = self.running.get_mut(&owner) {
            runs.count -= 1;
            if runs.count == 0 {
                self.running.remove(&owner);
            }
        }
    }

    /// Returns the CPU time that a run of this AI client may use before it is scheduled as idle work. Returns `None`
    /// for the user at the command line and for an AI client on standard input, who have no limit.
    pub(crate) fn cpu_credit(&self, owner: Owner) -> Option<Duration> {
        let now = Instant::now();
        let left = || self.cpu.bucket(owner, CPU_CREDIT, now).remaining(now);
        owner.is_limited().then(|| Duration::from_nanos(left().into()))
    }

    /// Deducts the CPU time that a run has used from the CPU credit of its AI client. Deducts at most the full credit.
    pub(crate) fn charge_cpu(&self, owner: Owner, used: Duration) {
        let (now, full) = (Instant::now(), CPU_CREDIT.burst.get());
        let used = u32::try_from(used.as_nanos()).unwrap_or(full).min(full);
        if owner.is_limited() {
            self.cpu.bucket(owner, CPU_CREDIT, now).charge(used, now);
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
        let mut quotas = quotas("3/h", 1);
        assert!(quotas.admit_run(one).is_ok());
        assert!(quotas.admit_run(one).is_ok());
        let full = QuotaExceeded::TooManyConcurrent { active_max: 1, waiting_max: 1 };
        assert_eq!(quotas.admit_run(one).expect_err("full"), full);
        assert!(quotas.admit_run(other).is_ok());
        quotas.end_run(one);
        assert!(quotas.admit_run(one).is_ok());
        quotas.end_run(one);
        let refused = quotas.admit_run(one).expect_err("often");
        assert!(
            matches!(refused, QuotaExceeded::RateLimit { retry_after } if retry_after > Duration::from_secs(600)),
            "{refused}"
        );
    }

    #[test]
    fn a_run_beyond_the_active_ones_waits_for_its_place() {
        let (mut quotas, one) = (quotas("100/h", 1), owner_of_name("one"));
        let mut place = || quotas.admit_run(one).expect("room").try_acquire_owned();
        let first = place().expect("a place");
        assert!(place().is_err(), "the first run has the place");
        drop(first);
        quotas.end_run(one);
        assert!(quotas.admit_run(one).expect("room").try_acquire_owned().is_ok());
    }

    #[test]
    fn cpu_time_is_deducted_from_the_credit_of_its_client_and_a_run_uses_at_most_all_of_it() {
        let (quotas, full) = (quotas("1/h", 1), Duration::from_millis(50));
        let (one, other) = (owner_of_name("one"), owner_of_name("other"));
        assert_eq!(quotas.cpu_credit(one), Some(full));
        quotas.charge_cpu(one, Duration::from_millis(20));
        let left = quotas.cpu_credit(one).expect("a limit");
        assert!((Duration::from_millis(30)..Duration::from_millis(40)).contains(&left), "{left:?}");
        assert_eq!(quotas.cpu_credit(other), Some(full));
        quotas.charge_cpu(one, Duration::from_mins(1));
        assert_eq!(quotas.cpu_credit(one), Some(Duration::ZERO));
        let (now, bucket) = (Instant::now(), |at| quotas.cpu.bucket(one, CPU_CREDIT, at).remaining(at));
        // Without the bound, the credit of this minute would be missing for 100 minutes.
        assert_eq!(bucket(now + Duration::from_secs(10)), 50_000_000);
    }

    #[test]
    fn the_local_user_has_no_quota() {
        let mut quotas = quotas("1/h", 1);
        for _ in 0..50 {
            quotas.admit_run(Owner::LOCAL).expect("room").try_acquire_owned().expect("a place").forget();
        }
        (0..50).for_each(|_| quotas.end_run(Owner::LOCAL));
        assert!(quotas.running.is_empty());
    }
}
