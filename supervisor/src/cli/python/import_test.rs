//! Tests in a sandboxed worker that programs can import the packages of an environment.

use std::path::Path;

use lockhouse_config::{self as config, Files, PackageSpec, Settings};
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_protocol::Language;

use super::PythonError;
use crate::cli::package_costs::{PackageCosts, measure};

/// Starts a worker with the packages of the environment, and runs a program in it. Returns what the packages cost.
pub(super) async fn test(
    files: &Files,
    packages: &[PackageSpec],
    environment: &Path,
) -> Result<PackageCosts, PythonError> {
    let settings = Settings::load_with_packages(files, packages, environment)?;
    let mut engine = settings.engine;
    engine.servers.clear();
    let supervisor = Supervisor::start(engine, config::load_policy(files)?, &[Language::Python]);
    let supervisor = supervisor.map_err(|error| PythonError::Import(error.to_string()))?;
    let costs = measure(&supervisor).await;
    supervisor.close().await;
    match costs {
        Some(Ok(costs)) => Ok(costs),
        Some(Err(reason)) => Err(PythonError::Import(reason.to_string())),
        None => Ok(PackageCosts::default()),
    }
}
