//! How much one AI client may have of what all share, where several come in through one door.

mod credit;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::client_allowance::Allowance;
use lockhouse_base::principal::Owner;
use lockhouse_policies::Rate;

use credit::CpuCredit;

/// `[clients]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Requests of any kind, each with what its body costs besides.
    pub requests: Rate,
    /// Runs of code.
    pub runs: Rate,
    /// Runs at one time, with those that wait.
    pub running: usize,
    /// Sessions at one time.
    pub sessions: usize,
}

/// Why a run does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRun {
    #[error("this client has begun as many runs as it may for now; there is room again in {:.1} s", wait.as_secs_f64().max(0.1))]
    TooOften { wait: Duration },
    #[error(
        "{max} runs of this client are under way, and there can be no more at one time; wait for the answer of one"
    )]
    TooMany { max: usize },
}

/// What each client uses. Copies are the same.
#[derive(Clone, Debug)]
pub struct Quotas(Arc<Used>);

#[derive(Debug)]
struct Used {
    limits: ClientLimits,
    runs: Allowance,
    running: Mutex<BTreeMap<Owner, usize>>,
    cpu: CpuCredit,
}

/// A run that counts until this is dropped.
#[derive(Debug)]
pub struct Running {
    quotas: Quotas,
    owner: Owner,
}

impl Quotas {
    pub fn new(limits: ClientLimits) -> Self {
        let runs = Allowance::new(limits.runs);
        Self(Arc::new(Used { limits, runs, running: Mutex::default(), cpu: CpuCredit::default() }))
    }

    /// One more run.
    pub fn run(&self, owner: Owner) -> Result<Running, NoRun> {
        let max = self.0.limits.running;
        let mut running = self.0.running.lock();
        let count = running.get(&owner).copied().unwrap_or_default();
        if owner.is_limited() && count >= max {
            return Err(NoRun::TooMany { max });
        }
        self.0.runs.take(owner, Instant::now()).map_err(|wait| NoRun::TooOften { wait })?;
        running.insert(owner, count + 1);
        Ok(Running { quotas: self.clone(), owner })
    }

    /// CPU time that a run of this client has before it gives way to all other work. None: it never does.
    pub fn cpu_credit(&self, owner: Owner) -> Option<Duration> {
        self.0.cpu.left(owner, Instant::now())
    }

    /// Takes what a run has used of it.
    pub fn charge_cpu(&self, owner: Owner, used: Duration) {
        self.0.cpu.charge(owner, used, Instant::now());
    }
}

impl Drop for Running {
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

    fn quotas(runs: &str, running: usize) -> Quotas {
        let rate = |text: &str| Rate::parse(text).expect("a rate");
        Quotas::new(ClientLimits { requests: rate("10/min"), runs: rate(runs), running, sessions: 1 })
    }

    #[test]
    fn what_one_client_uses_is_left_to_another() {
        let (one, other) = (Owner::of_name("one"), Owner::of_name("other"));
        let quotas = quotas("3/h", 2);
        let first = quotas.run(one).expect("room");
        let _second = quotas.run(one).expect("room");
        assert_eq!(quotas.run(one).expect_err("full"), NoRun::TooMany { max: 2 });
        assert!(quotas.run(other).is_ok());
        drop(first);
        assert!(quotas.run(one).is_ok());
        let told = quotas.run(one).expect_err("often");
        assert!(matches!(told, NoRun::TooOften { wait } if wait > Duration::from_secs(600)), "{told}");
    }

    #[test]
    fn who_started_the_process_has_it_for_themselves() {
        let quotas = quotas("1/h", 1);
        let runs: Vec<Running> = (0..50).map(|_| quotas.run(Owner::LOCAL).expect("room")).collect();
        drop(runs);
        assert!(quotas.0.running.lock().is_empty());
    }
}
