//! `lockhouse doctor`: reports which sandbox protections work on this host, which other layer of the sandbox backs up
//! each one, and how to fix those that do not work.
//!
//! The command has no checks of its own: it prints the findings of the checks that decide whether `lockhouse serve`
//! starts.

mod balancer;
mod checklist;
mod enterprise;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_client_files::unsuitable_entries;
use lockhouse_config::{Configuration, Environment, Files};
use lockhouse_engine::supervisor::{CodeRequest, PrepareError, Supervisor};
use lockhouse_messages::CutValue;
use lockhouse_pool::PoolError;
use lockhouse_protocol::{Finding, Language};
use lockhouse_upstream::kernel_gaps;
use tokio_util::sync::CancellationToken;

use super::UNAVAILABLE;
use super::command_error::CommandError;
use super::package_costs;
use super::terminal::sanitize;
use checklist::Checklist;
use report::{Engine, Report};

/// Options of `lockhouse doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Show every protection, also those that hold
    #[arg(long)]
    all: bool,
    /// Fail unless the sandbox level is at least LEVEL
    #[arg(long, value_name = "LEVEL", value_parser = ["full"])]
    require: Option<String>,
    /// Check a managed host: fail unless each check of the list passes
    #[arg(long, value_name = "PROFILE", value_parser = [enterprise::NAME], conflicts_with_all = ["all", "require"])]
    profile: Option<String>,
    /// Check what the balancer at URL does with requests, instead of this host
    #[arg(long, value_name = "URL", conflicts_with_all = ["all", "require", "profile"])]
    balancer: Option<String>,
    /// With --balancer: a file with a token of a client, which the checks use
    #[arg(long, value_name = "FILE", requires = "balancer")]
    token_file: Option<PathBuf>,
}

/// Runs `lockhouse doctor`: starts a sandboxed worker of each language, and prints the report.
pub(super) async fn doctor(files: &Files, arguments: &Arguments) -> ExitCode {
    if let Some(url) = &arguments.balancer {
        let checklist = balancer::examine(url, arguments.token_file.as_deref()).await;
        return print_checklist(checklist, arguments.json);
    }
    let report = match examine(files).await {
        Ok(report) => report,
        Err(error) => return error.print(),
    };
    if arguments.profile.is_some() {
        return print_checklist(enterprise::examine(files, &report), arguments.json);
    }
    if arguments.json {
        println!("{:#}", report.to_json())
    } else {
        report.print(arguments.all)
    }
    let fatal = report.level() == "none" || (arguments.require.is_some() && report.level() != "full");
    if fatal { ExitCode::from(UNAVAILABLE) } else { ExitCode::SUCCESS }
}

fn print_checklist(checklist: Result<Checklist, CommandError>, json: bool) -> ExitCode {
    let checklist = match checklist {
        Ok(checklist) => checklist,
        Err(error) => return error.print(),
    };
    match json {
        true => println!("{:#}", checklist.to_json()),
        false => checklist.print(),
    }
    if checklist.passes() { ExitCode::SUCCESS } else { ExitCode::from(UNAVAILABLE) }
}

/// Starts a sandboxed worker of each language, and collects the results.
///
/// # Errors
/// If the configuration, the policy or the audit log cannot be used.
pub(super) async fn examine(files: &Files) -> Result<Report, CommandError> {
    let languages = [Language::Python, Language::Typescript];
    let Configuration { mut settings, policy, .. } = Configuration::load(files)?;
    let (secrets, transports) = (settings.readable_secrets(), settings.transport_warnings());
    let http = settings.http_warnings();
    settings.engine.servers.clear();
    let supervisor =
        Supervisor::start(settings.engine, policy, &languages).map_err(CommandError::unavailable)?;
    let entries = unsuitable_entries(&Environment::from_process());
    let server_gaps = kernel_gaps();
    let mut report = Report { secrets, server_gaps, transports, http, entries, ..Report::default() };
    for language in languages {
        let (engine, findings) = check_engine(&supervisor, language).await;
        report.engines.push(engine);
        findings.into_iter().for_each(|finding| report.add(finding));
    }
    report.packages = package_costs::measure(&supervisor).await;
    supervisor.close().await;
    report.findings.sort_by_key(|finding| finding.protection);
    Ok(report)
}

/// Checks this host as [`doctor`] does, and prints the result in a few lines.
pub(super) async fn check_host(files: &Files) {
    let Ok(report) = examine(files).await.map_err(|error| error.print()) else { return };
    let engine = |engine: &Engine| {
        format!("{} {}", engine.language.as_str(), if engine.works { "works" } else { "does not work" })
    };
    let engines: Vec<String> = report.engines.iter().map(engine).collect();
    println!("this host: {}; sandbox level: {}", engines.join(", "), report.level());
    for secret in &report.secrets {
        println!("warning: {}", sanitize(&secret.to_string()));
    }
    if report.level() != "full" {
        println!("`lockhouse doctor` says what is missing, and how to get it");
    }
}

/// Starts a sandboxed worker of the language, verifies its sandbox and runs a program in it. Returns the result for the
/// language engine, and one finding for each sandbox protection. There are no findings if the engine failed before the
/// protections were tested.
async fn check_engine(supervisor: &Supervisor, language: Language) -> (Engine, Vec<Finding>) {
    let prepared = match supervisor.wait_until_prepared(language).await {
        Ok(prepared) => prepared,
        Err(error) => {
            let found = error.to_string();
            let findings = match &error {
                PrepareError::Pool(error) => findings_from_error(error),
                PrepareError::Engine(_) => Vec::new(),
            };
            return (Engine { language, works: false, found }, findings);
        }
    };
    let request = CodeRequest::new(language, "1 + 1");
    let answer = supervisor.run_code(request, &CancellationToken::new()).await;
    let works = answer.value.as_deref().is_some_and(|value| value.get() == "2");
    let found = match works {
        true => format!("{}: sandboxed, verified by the kernel, runs code", prepared.runtime),
        false => format!(
            "{}: 1 + 1 gave {}",
            prepared.runtime,
            answer.to_complete().members(CutValue::Value).to_json()
        ),
    };
    (Engine { language, works, found }, prepared.findings)
}

/// Returns the findings in the error of a language engine whose workers cannot start because sandbox protections are
/// missing. Empty for any other error.
fn findings_from_error(error: &PoolError) -> Vec<Finding> {
    match error {
        PoolError::Unprotected { findings, .. } => findings.clone(),
        _ => Vec::new(),
    }
}
