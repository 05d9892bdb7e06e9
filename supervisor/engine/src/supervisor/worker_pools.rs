//! The pools of workers: one for each language, and one for Python with packages, whose zygote the first program that
//! needs it starts.

use std::num::NonZero;
use std::time::Duration;

use lockhouse_pool::{ControlGroupResult, Pool};
use lockhouse_protocol::Language;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::import_scan::mentions_import;
use super::settings::{EngineSettings, PackageSettings};
use super::unavailable_engine::EngineUnavailable;

/// With up to this many processors, upstream servers start after the zygotes, so that the first result does not wait for
/// what it does not need: docs/measurements.md has the effect with four servers on two processors.
const FEW_PROCESSORS_MAX: usize = 3;
/// The longest time by which upstream servers start later for that reason. Zygotes without packages need 0.02 s
/// (TypeScript) and 0.1 s (Python) on an idle machine.
const SERVER_DELAY_MAX: Duration = Duration::from_millis(300);

/// The kinds of workers. All workers of one pool are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerKind {
    /// Python with the standard modules only.
    Python,
    /// Python with the packages that the configuration names.
    PythonPackages,
    Typescript,
}

impl WorkerKind {
    pub(super) const ALL: [Self; 3] = [Self::Python, Self::PythonPackages, Self::Typescript];

    /// The name of the kind in health reports and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::PythonPackages => "python_packages",
            Self::Typescript => "typescript",
        }
    }
}

impl From<Language> for WorkerKind {
    fn from(language: Language) -> Self {
        match language {
            Language::Python => Self::Python,
            Language::Typescript => Self::Typescript,
        }
    }
}

type PoolResult = Result<Pool, EngineUnavailable>;

/// The pool of workers with packages, and the settings with which it was started.
#[derive(Debug)]
struct PackagePool {
    settings: PackageSettings,
    pool: PoolResult,
}

/// The pools of this process.
#[derive(Debug)]
pub(super) struct WorkerPools {
    python: PoolResult,
    typescript: PoolResult,
    /// `None` if the configuration names no packages. A reload replaces it.
    packages: Mutex<Option<PackagePool>>,
    groups: ControlGroupResult,
}

impl WorkerPools {
    /// Starts the pools of `languages`. The zygotes of all pools but the one with packages start at once.
    pub(super) fn start(
        settings: &EngineSettings,
        languages: &[Language],
        groups: ControlGroupResult,
    ) -> Self {
        let pool = |language: Language| {
            if !languages.contains(&language) {
                return Err(EngineUnavailable::NotStarted(language));
            }
            let pool = settings.pool(language).inspect_err(|error| {
                tracing::info!("{} is not available: {error}", language.as_str());
            });
            Ok(Pool::start(pool.map_err(Clone::clone)?.clone(), &groups))
        };
        // The zygote that needs less time starts first, so that on few processors the first result does not wait for what
        // it does not need.
        let (typescript, python) = (pool(Language::Typescript), pool(Language::Python));
        let pools = Self { python, typescript, packages: Mutex::default(), groups };
        pools.set_packages(settings.packages.clone());
        pools
    }

    /// Waits until the zygotes that start with the process are ready, or until upstream servers must not be delayed any
    /// longer. Does not wait on machines with processors for both.
    pub(super) fn zygotes_ready(&self) -> impl Future<Output = ()> + Send + use<> {
        let pools: Vec<Pool> = [&self.python, &self.typescript].into_iter().flatten().cloned().collect();
        let all_ready = async move {
            for pool in pools {
                let _ = pool.zygote_info().await;
            }
        };
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let delay_max = if processors > FEW_PROCESSORS_MAX { Duration::ZERO } else { SERVER_DELAY_MAX };
        async move { drop(timeout(delay_max, all_ready).await) }
    }

    /// Replaces the pool of workers with packages, if its settings have changed. Workers of the previous pool end with
    /// their runs and sessions.
    pub(super) fn set_packages(&self, settings: Option<PackageSettings>) {
        let mut packages = self.packages.lock();
        // Without a pool for Python, this process runs no Python.
        let settings = settings.filter(|_| self.python.is_ok());
        if packages.as_ref().map(|packages| &packages.settings) == settings.as_ref() {
            return;
        }
        *packages = settings.map(|settings| {
            let pool = settings.pool.clone().map_err(EngineUnavailable::from);
            PackagePool { pool: pool.map(|pool| Pool::start(pool, &self.groups)), settings }
        });
    }

    /// Returns the pool for a program: for Python, the one with packages if the program seems to import one of them.
    pub(super) fn for_program(&self, language: Language, code: &str) -> Result<Pool, EngineUnavailable> {
        if language == Language::Python
            && let Some(packages) = &*self.packages.lock()
            && mentions_import(code, &packages.settings.modules)
        {
            return packages.pool.clone();
        }
        match language {
            Language::Python => self.python.clone(),
            Language::Typescript => self.typescript.clone(),
        }
    }

    /// Returns the pool of a kind, or why there is none. `None` if the configuration names no packages.
    pub(super) fn get(&self, kind: WorkerKind) -> Option<PoolResult> {
        match kind {
            WorkerKind::Python => Some(self.python.clone()),
            WorkerKind::PythonPackages => self.packages.lock().as_ref().map(|packages| packages.pool.clone()),
            WorkerKind::Typescript => Some(self.typescript.clone()),
        }
    }

    /// Returns the names of the packages that programs can import.
    pub(super) fn package_names(&self) -> Vec<String> {
        self.packages.lock().as_ref().map(|packages| packages.settings.names.clone()).unwrap_or_default()
    }

    /// Returns all pools that exist.
    pub(super) fn all(&self) -> impl Iterator<Item = Pool> {
        WorkerKind::ALL.into_iter().filter_map(|kind| self.get(kind)?.ok())
    }
}
