//! `lockhouse doctor`: reports which sandbox protections work on this host, which other layer of the sandbox backs up
//! each one, and how to fix those that do not work.
//!
//! The command has no checks of its own: it prints the findings of the checks that decide whether `lockhouse serve`
//! starts.

use std::process::ExitCode;

use lockhouse_client_files::{UnsuitableEntry, unsuitable_entries};
use lockhouse_config::{Configuration, Environment, Files, ReadableSecret};
use lockhouse_engine::supervisor::{CodeRequest, PrepareError, Supervisor};
use lockhouse_messages::CutValue;
use lockhouse_policies::printable;
use lockhouse_pool::PoolError;
use lockhouse_pool::protections::describe;
use lockhouse_protocol::{Finding, Language, Verdict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::command_error::CommandError;
use super::line_width;
use super::package_costs::{self, PackageCosts, PackageError};
use super::terminal::{sanitize, sanitize_lines};
use super::{UNAVAILABLE, table};

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
}

/// The report of `lockhouse doctor`: the results for all language engines and sandbox protections.
#[derive(Default)]
pub(super) struct Report {
    engines: Vec<Engine>,
    /// One finding for each sandbox protection: the worst one, if the findings of the language engines differ.
    findings: Vec<Finding>,
    /// Files with secrets that other Unix users can read. Files that other users can write are not listed: loading the
    /// configuration fails on them.
    secrets: Vec<ReadableSecret>,
    /// Warnings about servers over a deprecated transport.
    transports: Vec<String>,
    /// Entries for Lockhouse in the files of AI clients that need a change.
    entries: Vec<UnsuitableEntry>,
    /// What the Python packages cost, or why programs cannot use them. `None` if the configuration names none.
    packages: Option<Result<PackageCosts, PackageError>>,
}

struct Engine {
    language: Language,
    works: bool,
    found: String,
}

/// Runs `lockhouse doctor`: starts a sandboxed worker of each language, and prints the report.
pub(super) async fn doctor(files: &Files, arguments: &Arguments) -> ExitCode {
    let report = match examine(files).await {
        Ok(report) => report,
        Err(error) => return error.print(),
    };
    if arguments.json {
        println!("{:#}", report.to_json())
    } else {
        report.print(arguments.all)
    }
    let fatal = report.level() == "none" || (arguments.require.is_some() && report.level() != "full");
    if fatal { ExitCode::from(UNAVAILABLE) } else { ExitCode::SUCCESS }
}

/// Starts a sandboxed worker of each language, and collects the results.
///
/// # Errors
/// If the configuration, the policy or the audit log cannot be used.
pub(super) async fn examine(files: &Files) -> Result<Report, CommandError> {
    let languages = [Language::Python, Language::Typescript];
    let Configuration { mut settings, policy, .. } = Configuration::load(files)?;
    let (secrets, transports) = (settings.readable_secrets(), settings.transport_warnings());
    settings.engine.servers.clear();
    let supervisor =
        Supervisor::start(settings.engine, policy, &languages).map_err(CommandError::unavailable)?;
    let entries = unsuitable_entries(&Environment::from_process());
    let mut report = Report { secrets, transports, entries, ..Report::default() };
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

impl Report {
    fn add(&mut self, finding: Finding) {
        let badness = |verdict: Verdict| match verdict {
            Verdict::Holds => 0,
            Verdict::Absent => 1,
            Verdict::Broken => 2,
        };
        match self.findings.iter_mut().find(|known| known.protection == finding.protection) {
            Some(known) if badness(known.verdict) >= badness(finding.verdict) => {}
            Some(known) => *known = finding,
            None => self.findings.push(finding),
        }
    }

    fn level(&self) -> &'static str {
        let fatal = |finding: &Finding| match finding.verdict {
            Verdict::Holds => false,
            Verdict::Absent => describe(finding.protection).required,
            Verdict::Broken => true,
        };
        if !self.engines.iter().all(|engine| engine.works) || self.findings.iter().any(fatal) {
            "none"
        } else if self.findings.iter().all(|finding| finding.verdict == Verdict::Holds) {
            "full"
        } else {
            "reduced"
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let engine = |engine: &Engine| json!({"language": engine.language.as_str(), "works": engine.works, "found": engine.found});
        let row = |finding: &Finding| {
            let described = describe(finding.protection);
            json!({
                "protection": described.title,
                "needed": required_for(described.required),
                "verdict": verdict_name(finding),
                "found": finding.found,
                "second_layer": described.second_layer,
                "without_it": described.gain,
                "fix": described.fix,
            })
        };
        let secret = |secret: &ReadableSecret| {
            let ReadableSecret { path, readers, mode } = secret;
            json!({
                "file": path.display().to_string(), "readers": readers, "mode": format!("{mode:04o}"),
                "fix": secret.fix(),
            })
        };
        let entry = |entry: &UnsuitableEntry| {
            let UnsuitableEntry { client, path, command } = entry;
            json!({"client": client.name(), "file": path.display().to_string(), "fix": command})
        };
        json!({
            "level": self.level(),
            "engines": self.engines.iter().map(engine).collect::<Vec<_>>(),
            "protections": self.findings.iter().map(row).collect::<Vec<_>>(),
            "packages": self.packages.as_ref().map(|packages| match packages {
                Ok(costs) => costs.to_json(),
                Err(reason) => json!({"error": reason.to_string()}),
            }),
            "client_entries": self.entries.iter().map(entry).collect::<Vec<_>>(),
            "readable_secrets": self.secrets.iter().map(secret).collect::<Vec<_>>(),
            "deprecated_transports": self.transports,
        })
    }

    /// Prints the report for people: of the protections, those that do not hold, or `all`.
    fn print(&self, all: bool) {
        let engine = |engine: &Engine| {
            let verdict = if engine.works { "ok" } else { "FAIL" };
            vec![engine.language.as_str().to_owned(), verdict.into(), engine.found.clone()]
        };
        let engines: Vec<Vec<String>> = self.engines.iter().map(engine).collect();
        println!("{}\n", table::render(&["engine", "", "found"], &engines));
        match &self.packages {
            Some(Ok(costs)) => costs.print(),
            Some(Err(reason)) => print_warning(&format!(
                "programs cannot use the Python packages: {}",
                sanitize_lines(&reason.to_string())
            )),
            None => {}
        }
        self.secrets.iter().for_each(|secret| print_warning(&sanitize(&secret.to_string())));
        self.transports.iter().for_each(|warning| print_warning(&sanitize(warning)));
        self.entries.iter().for_each(|entry| print_warning(&printable(&entry.to_string())));
        let is_shown = |finding: &&Finding| all || finding.verdict != Verdict::Holds;
        let rows: Vec<Vec<String>> = self.findings.iter().filter(is_shown).map(row).collect();
        if !rows.is_empty() {
            let head =
                ["protection", "required for", "verdict", "found", "second layer", "without it", "fix"];
            println!("{}\n", table::render(&head, &rows));
        }
        let held: Vec<&str> = self
            .findings
            .iter()
            .filter(|finding| !is_shown(finding))
            .map(|finding| describe(finding.protection).title)
            .collect();
        if !held.is_empty() {
            let words = format!(
                "{} protections hold: {}. `lockhouse doctor --all` shows each.",
                held.len(),
                held.join("; ")
            );
            println!("{}\n", line_width::wrap_lines(&words));
        }
        println!("sandbox level: {}", self.level());
    }
}

fn row(finding: &Finding) -> Vec<String> {
    let described = describe(finding.protection);
    let cells = [described.title, required_for(described.required), verdict_name(finding)];
    let texts = [finding.found.as_str(), described.second_layer, described.gain, fix(finding)];
    cells.iter().chain(&texts).map(|cell| (*cell).to_owned()).collect()
}

fn print_warning(words: &str) {
    println!("{}", line_width::wrap_lines(&format!("warning: {words}")));
}

fn required_for(required: bool) -> &'static str {
    if required { "any code" } else { "full" }
}

fn verdict_name(finding: &Finding) -> &'static str {
    match finding.verdict {
        Verdict::Holds => "holds",
        Verdict::Absent => "absent",
        Verdict::Broken => "BROKEN",
    }
}

/// Returns the text that says how to fix a sandbox protection that does not work. Empty if the protection works.
fn fix(finding: &Finding) -> &'static str {
    if finding.verdict == Verdict::Holds { "" } else { describe(finding.protection).fix }
}
