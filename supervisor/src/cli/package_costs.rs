//! What the Python packages of the configuration cost: memory for each package, and time for each run.

use std::time::{Duration, Instant};

use lockhouse_engine::supervisor::{CodeRequest, PrepareError, Supervisor, WorkerKind};
use lockhouse_protocol::{Language, LoadedPackage};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::table;

/// The number of measured runs, with packages and without.
const RUNS: usize = 5;

/// What packages cost.
#[derive(Debug, Default)]
pub(super) struct PackageCosts {
    packages: Vec<LoadedPackage>,
    /// The median time of a run, without and with the packages.
    plain_run: Duration,
    package_run: Duration,
}

/// Why programs cannot use the packages.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackageError {
    #[error("1 + 1 has no value")]
    NoValue,
    /// The message of a failed run.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    NotPrepared(#[from] PrepareError),
}

/// Runs trivial programs in workers with and without packages. `None` if the configuration names no packages.
pub(super) async fn measure(supervisor: &Supervisor) -> Option<Result<PackageCosts, PackageError>> {
    let packages = supervisor.settings().packages.as_ref()?;
    let module = packages.modules.first()?;
    // A worker with packages is selected by the word; nothing is imported.
    let program = format!("# import {module}\n1 + 1");
    if let Err(reason) = run(supervisor, &program).await {
        return Some(Err(reason));
    }
    let prepared = match supervisor.wait_until_prepared(WorkerKind::PythonPackages).await {
        Ok(prepared) => prepared,
        Err(error) => return Some(Err(error.into())),
    };
    let (mut plain, mut with_packages) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        plain.extend(run(supervisor, "1 + 1").await);
        with_packages.extend(run(supervisor, &program).await);
    }
    let (plain_run, package_run) = (median(plain), median(with_packages));
    Some(Ok(PackageCosts { packages: prepared.packages, plain_run, package_run }))
}

async fn run(supervisor: &Supervisor, program: &str) -> Result<Duration, PackageError> {
    let began = Instant::now();
    let request = CodeRequest::new(Language::Python, program);
    let answer = supervisor.run_code(request, &CancellationToken::new()).await;
    match answer.value.as_deref() {
        Some(value) if value.get() == "2" => Ok(began.elapsed()),
        _ => Err(answer.error.map_or(PackageError::NoValue, |error| PackageError::Failed(error.message))),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

impl PackageCosts {
    pub(super) fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }

    pub(super) fn to_json(&self) -> Value {
        let package = |package: &LoadedPackage| {
            json!({
                "name": package.name, "version": package.version, "memory_mib": mib(package.memory_kib),
                "import_ms": package.import_ms,
            })
        };
        json!({
            "packages": self.packages.iter().map(package).collect::<Vec<_>>(),
            "run_ms": ms(self.plain_run), "run_with_packages_ms": ms(self.package_run),
        })
    }

    /// Prints a table of the packages, and a line about the time of a run.
    pub(super) fn print(&self) {
        if self.is_empty() {
            return println!("no packages are configured");
        }
        let row = |package: &LoadedPackage| {
            let LoadedPackage { name, version, memory_kib, import_ms } = package;
            vec![name.clone(), version.clone(), format!("{:.1}", mib(*memory_kib)), import_ms.to_string()]
        };
        let rows: Vec<Vec<String>> = self.packages.iter().map(row).collect();
        println!("{}", table::render(&["package", "version", "MB", "import ms"], &rows));
        let memory: u64 = self.packages.iter().map(|package| package.memory_kib).sum();
        println!(
            "\nThe packages take {:.0} MB while they are loaded. A run with them takes {:.1} ms, a run without them {:.1} ms.",
            mib(memory),
            ms(self.package_run),
            ms(self.plain_run)
        );
    }
}

fn mib(kib: u64) -> f64 {
    (kib as f64 / 102.4).round() / 10.0
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}
