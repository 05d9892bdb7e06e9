//! The parts, wired: configuration in, executions answered, everything ended in order.

mod direct;
mod fronts;
mod gauges;
mod health;
mod policy_warnings;
mod reload;
mod runs;
mod settings;
mod unavailable;

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use lockhouse_audit::{Audit, AuditError};
use lockhouse_base::language::Language;
use lockhouse_base::lifecycle::Life;
use lockhouse_gate::results::Results;
use lockhouse_gate::skills::Skills;
use lockhouse_gate::{Approvers, Gate};
use lockhouse_messages::FrontEnd;
use lockhouse_policies::Policy;
use lockhouse_pool::{ControlGroups, Pool, PoolError, Prepared};
use lockhouse_upstream::Upstreams;

use crate::direct::Direct;
use crate::executions::Executions;
use crate::quotas::Quotas;
use crate::runs::Runs;
use crate::sessions::Sessions;
pub use direct::Landed;
pub use gauges::set as set_gauges;
pub use health::Health;
use reload::InForce;
pub use runs::CodeRequest;
pub use settings::{RunSettings, Settings};
pub use unavailable::{MissingProgram, NoEngine, NotPrepared};

/// Bytes of a frame that are not the reply itself.
const FRAME_OVERHEAD: usize = 1024;

/// The running supervisor.
#[derive(Debug)]
pub struct Supervisor {
    /// As it was started. Of what is loaded later, servers and policy alone count.
    settings: Settings,
    in_force: Mutex<Arc<InForce>>,
    retired: Mutex<Vec<Upstreams>>,
    results: Arc<Results>,
    approvers: Arc<Approvers>,
    sessions: Sessions,
    executions: Executions,
    runs: Runs,
    direct: Direct,
    fronts: Mutex<Vec<Weak<dyn FrontEnd>>>,
    quotas: Quotas,
    life: Life,
    python: Result<Pool, NoEngine>,
    typescript: Result<Pool, NoEngine>,
}

impl Supervisor {
    /// Connects to every server and warms the pools of `languages`. An engine that is missing is told to whoever asks
    /// for its language; the other one works.
    pub fn start(settings: Settings, policy: Policy, languages: &[Language]) -> Result<Self, AuditError> {
        let results = Results::in_memory(settings.results);
        Self::start_with(settings, policy, languages, results)
    }

    /// The same with results that others may read.
    pub fn start_with(
        settings: Settings,
        policy: Policy,
        languages: &[Language],
        results: Results,
    ) -> Result<Self, AuditError> {
        let audit = Audit::open(settings.audit.clone())?;
        for refusal in &settings.refused {
            tracing::warn!("{refusal}");
        }
        let upstreams = Upstreams::connect(settings.servers.clone(), &settings.places);
        audit.keep_out(upstreams.secrets());
        let skills = settings.skills.enabled.then(|| Arc::new(Skills::new(&settings.skills)));
        let reply_bytes_max = settings.limits.conversation.frame_bytes as usize - FRAME_OVERHEAD;
        let results = Arc::new(results);
        let gate = Gate::new(policy, audit.clone(), upstreams, skills, results.clone(), reply_bytes_max);
        // Before the first zygote: what is started from here on is started in our part of the hierarchy.
        let groups = ControlGroups::take();
        let pool = |language: Language| {
            if !languages.contains(&language) {
                return Err(NoEngine::NotStarted(language));
            }
            let pool = settings.pool(language).inspect_err(|error| {
                tracing::info!("{} is not available: {error}", language.as_str());
            });
            let pool = pool.map_err(Clone::clone)?;
            Ok(Pool::start(pool.clone(), &groups))
        };
        let (python, typescript) = (pool(Language::Python), pool(Language::Typescript));
        let in_force = Mutex::new(InForce::new(gate, settings.digest.clone()));
        let approvers = Arc::new(Approvers::new(settings.approvals, settings.own_policy.clone()));
        let sessions = Sessions::new(settings.sessions);
        let (life, retired) = (Life::new(settings.drain), Mutex::default());
        let quotas = Quotas::new(settings.clients);
        let runs = Runs::new(settings.runs, results.clone());
        Ok(Self {
            settings,
            in_force,
            retired,
            results,
            approvers,
            sessions,
            executions: Executions::default(),
            runs,
            direct: Direct::default(),
            fronts: Mutex::default(),
            life,
            quotas,
            python,
            typescript,
        })
    }

    /// How a language's zygote sees this host, or why there is none.
    pub async fn prepared(&self, language: Language) -> Result<Prepared, NotPrepared> {
        let pool = self.pool(language).map_err(Clone::clone)?;
        Ok(pool.prepared().await?)
    }

    /// Ends only when a language's zygote finds that a protection is missing or does not hold: why nothing may be served.
    pub async fn unprotected(&self) -> Arc<PoolError> {
        let of = async |language| match self.prepared(language).await {
            Err(NotPrepared::Pool(error)) if matches!(*error, PoolError::Unprotected { .. }) => error,
            _ => std::future::pending().await,
        };
        tokio::select! {
            reason = of(Language::Python) => reason,
            reason = of(Language::Typescript) => reason,
        }
    }

    fn pool(&self, language: Language) -> Result<&Pool, &NoEngine> {
        match language {
            Language::Python => self.python.as_ref(),
            Language::Typescript => self.typescript.as_ref(),
        }
    }

    fn pools(&self) -> impl Iterator<Item = &Pool> {
        [&self.python, &self.typescript].into_iter().flatten()
    }

    /// Where this process is in its life.
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Who is asked about calls that the policy leaves to a person.
    pub fn approvers(&self) -> &Arc<Approvers> {
        &self.approvers
    }

    /// What was too long to be shown.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// What runs now.
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    pub(crate) fn direct(&self) -> &Direct {
        &self.direct
    }

    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// Code without a record may run, and each of its calls finds out by itself whether it has one.
fn note(written: Result<(), AuditError>) {
    if let Err(error) = written {
        tracing::error!("{error}");
    }
}
