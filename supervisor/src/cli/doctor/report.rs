//! The report of `lockhouse doctor`, as text and as JSON.

use lockhouse_base::process_roles::{PROCESS_ROLES, ProcessRole};
use lockhouse_client_files::UnsuitableEntry;
use lockhouse_config::ReadableSecret;
use lockhouse_policies::printable;
use lockhouse_pool::protections::describe;
use lockhouse_protocol::{Finding, Language, Verdict};
use lockhouse_upstream::KernelGap;
use serde_json::{Value, json};

use crate::cli::package_costs::{PackageCosts, PackageError};
use crate::cli::terminal::{sanitize, sanitize_lines};
use crate::cli::{line_width, table};

/// The report of `lockhouse doctor`: the results for all language engines and sandbox protections.
#[derive(Default)]
pub(in crate::cli) struct Report {
    pub(super) engines: Vec<Engine>,
    /// One finding for each sandbox protection: the worst one, if the findings of the language engines differ.
    pub(super) findings: Vec<Finding>,
    /// Files with secrets that other Unix users can read. Files that other users can write are not listed: loading the
    /// configuration fails on them.
    pub(super) secrets: Vec<ReadableSecret>,
    /// What the kernel does not enforce of the sandbox of servers.
    pub(super) server_gaps: Vec<KernelGap>,
    /// Warnings about servers over a deprecated transport.
    pub(super) transports: Vec<String>,
    /// Warnings about the HTTP service.
    pub(super) http: Vec<String>,
    /// Entries for Lockhouse in the files of AI clients that need a change.
    pub(super) entries: Vec<UnsuitableEntry>,
    /// What the Python packages cost, or why programs cannot use them. `None` if the configuration names none.
    pub(super) packages: Option<Result<PackageCosts, PackageError>>,
}

pub(super) struct Engine {
    pub(super) language: Language,
    pub(super) works: bool,
    pub(super) found: String,
}

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
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

    pub(super) fn level(&self) -> &'static str {
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

    pub(in crate::cli) fn to_json(&self) -> Value {
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
        let gap = |gap: &KernelGap| json!({"name": gap.name(), "found": gap.to_string()});
        json!({
            "level": self.level(),
            "engines": self.engines.iter().map(engine).collect::<Vec<_>>(),
            "protections": self.findings.iter().map(row).collect::<Vec<_>>(),
            "packages": self.packages.as_ref().map(|packages| match packages {
                Ok(costs) => costs.to_json(),
                Err(reason) => json!({"error": reason.to_string()}),
            }),
            "client_entries": self.entries.iter().map(entry).collect::<Vec<_>>(),
            "server_sandbox": {"missing": self.server_gaps.iter().map(gap).collect::<Vec<_>>()},
            "readable_secrets": self.secrets.iter().map(secret).collect::<Vec<_>>(),
            "deprecated_transports": self.transports,
            "http_warnings": self.http,
            "processes": PROCESS_ROLES,
        })
    }

    /// Prints the report for people: of the protections, those that do not hold, or `all`.
    pub(super) fn print(&self, all: bool) {
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
        self.server_gaps.iter().for_each(|gap| print_warning(&gap.to_string()));
        self.transports.iter().for_each(|warning| print_warning(&sanitize(warning)));
        self.http.iter().for_each(|warning| print_warning(&sanitize(warning)));
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
        if all {
            let roles = PROCESS_ROLES.iter().map(role_row).collect::<Vec<_>>();
            println!("{}\n", table::render(&["process", "holds", "can reach", "cannot reach"], &roles));
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

fn role_row(role: &ProcessRole) -> Vec<String> {
    [role.process, role.holds, role.can_reach, role.cannot_reach].map(str::to_owned).into()
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
