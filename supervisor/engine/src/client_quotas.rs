//! Quotas of each AI client: the rate of its runs, its concurrent runs and its CPU time. They prevent one client from
//! using up the capacity that all clients share.

mod cpu_credit;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::client_rate_limiter::ClientRateLimiter;
use lockhouse_base::principal::Owner;
use lockhouse_policies::Rate;

use cpu_credit::CpuCredit;

/// The quotas of each AI client, from the configuration table `[clients]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Rate limit of one AI client's requests. A request with a large body counts as several requests.
    pub requests: Rate,
    /// Rate limit of one AI client's runs.
    pub runs: Rate,
    /// Maximum number of concurrent runs of one AI client, including the runs that wait for a worker.
    pub running: usize,
    /// Maximum number of open sessions of one AI client.
    pub sessions: usize,
}

/// Why a run was refused: which quota its AI client exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    #[error("this client reached its rate limit for runs; retry in {:.1} s", retry_after.as_secs_f64().max(0.1))]
    RateLimit { retry_after: Duration },
    #[error("this client has {max} active runs, the maximum; wait for one of them to end")]
    TooManyConcurrent { max: usize },
}

/// Counts the runs and the CPU time of each AI client, and checks them against the quotas. Clones share the counts.
#[derive(Clone, Debug)]
pub struct ClientQuotas(Arc<Usage>);

#[derive(Debug)]
struct Usage {
    limits: ClientLimits,
    runs: ClientRateLimiter,
    running: Mutex<BTreeMap<Owner, usize>>,
    cpu: CpuCredit,
}

/// The permission for one run of an AI client. The run counts as one of the client's concurrent runs until the permit
/// is dropped.
#[derive(Debug)]
pub struct RunPermit {
    quotas: ClientQuotas,
    owner: Owner,
}

impl ClientQuotas {
    pub fn new(limits: ClientLimits) -> Self {
        let runs = ClientRateLimiter::new(limits.runs);
        Self(Arc::new(Usage { limits, runs, running: Mutex::default(), cpu: CpuCredit::default() }))
    }

    /// Admits one more run of an AI client, or returns the quota that the client exceeded as `Err`.
    pub fn admit_run(&self, owner: Owner) -> Result<RunPermit, QuotaExceeded> {
        let max = self.0.limits.running;
        let mut running = self.0.running.lock();
        let count = running.get(&owner).copied().unwrap_or_default();
        if owner.is_limited() && count >= max {
            return Err(QuotaExceeded::TooManyConcurrent { max });
        }
        self.0
            .runs
            .take(owner, Instant::now())
            .map_err(|retry_after| QuotaExceeded::RateLimit { retry_after })?;
        running.insert(owner, count + 1);
        Ok(RunPermit { quotas: self.clone(), owner })
    }

    /// Returns the CPU time that a run of this AI client may use before it is scheduled as idle work. Returns `None`
    /// for the local user, who has no limit.
    pub fn cpu_credit(&self, owner: Owner) -> Option<Duration> {
        self.0.cpu.remaining(owner, Instant::now())
    }

    /// Deducts the CPU time that a run has used from the CPU credit of its AI client.
    pub fn charge_cpu(&self, owner: Owner, used: Duration) {
        self.0.cpu.charge(owner, used, Instant::now());
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        let mut running = self.quotas.0.running.lock();
        if let Some(count) = running.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas(runs: &str, running: usize) -> ClientQuotas {
        let rate = |text: &str| Rate::parse(text).expect("a rate");
        ClientQuotas::new(ClientLimits { requests: rate("10/min"), runs: rate(runs), running, sessions: 1 })
    }

    #[test]
    fn quotas_of_clients_are_independent() {
        let (one, other) = (Owner::from_name("one"), Owner::from_name("other"));
        let quotas = quotas("3/h", 2);
        let first = quotas.admit_run(one).expect("room");
        let _second = quotas.admit_run(one).expect("room");
        assert_eq!(quotas.admit_run(one).expect_err("full"), QuotaExceeded::TooManyConcurrent { max: 2 });
        assert!(quotas.admit_run(other).is_ok());
        drop(first);
        assert!(quotas.admit_run(one).is_ok());
        let refused = quotas.admit_run(one).expect_err("often");
        assert!(
            matches!(refused, QuotaExceeded::RateLimit { retry_after } if retry_after > Duration::from_secs(600)),
            "{refused}"
        );
    }

    #[test]
    fn the_local_user_has_no_quota() {
        let quotas = quotas("1/h", 1);
        let runs: Vec<RunPermit> = (0..50).map(|_| quotas.admit_run(Owner::LOCAL).expect("room")).collect();
        drop(runs);
        assert!(quotas.0.running.lock().is_empty());
    }
}
