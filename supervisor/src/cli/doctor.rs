//! `lockhouse doctor`: what this host gives, and what a sealed worker must not be able to do, tried with real workers.

use std::process::ExitCode;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{UNAVAILABLE, load, start_with, table};
use crate::config::Files;
use crate::execution::{Answer, Language, Status, parsed};
use crate::supervisor::{CodeRequest, Supervisor};

/// How to report.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Fail unless every protection is there
    #[arg(long, value_name = "LEVEL", value_parser = ["full"])]
    require: Option<String>,
}

/// Each attempt must fail inside a worker. The last one must succeed, so that a broken probe is not taken for a seal.
const ATTEMPTS: &str = include_str!("doctor/attempts.py");

struct Row {
    protection: String,
    holds: bool,
    found: String,
    /// What to do where it does not hold.
    fix: String,
}

/// Tries everything and reports.
pub(super) async fn doctor(files: &Files, arguments: &Arguments) -> ExitCode {
    let languages = [Language::Python, Language::Typescript];
    let (mut settings, policy) = match load(files) {
        Ok(loaded) => loaded,
        Err(status) => return status,
    };
    // The attempts are made past the library, as native code would.
    settings.preload("ctypes");
    settings.servers.clear();
    let supervisor = match start_with(settings, policy, &languages) {
        Ok(supervisor) => supervisor,
        Err(status) => return status,
    };
    let mut rows = Vec::new();
    let mut reduced: Vec<String> = Vec::new();
    for language in languages {
        let (row, missing) = engine(&supervisor, language).await;
        rows.push(row);
        reduced.extend(missing);
    }
    reduced.sort();
    reduced.dedup();
    rows.extend(attempts(&supervisor).await);
    supervisor.close().await;
    report(&rows, &reduced, arguments)
}

fn report(rows: &[Row], reduced: &[String], arguments: &Arguments) -> ExitCode {
    let level = match rows.iter().all(|row| row.holds) {
        false => "none",
        true if reduced.is_empty() => "full",
        true => "reduced",
    };
    if arguments.json {
        let row = |row: &Row| json!({"protection": row.protection, "holds": row.holds, "found": row.found, "fix": row.fix});
        let rows: Vec<Value> = rows.iter().map(row).collect();
        println!("{:#}", json!({"level": level, "reduced": reduced, "rows": rows}));
    } else {
        let cells = |row: &Row| {
            let verdict = if row.holds { "pass" } else { "FAIL" };
            vec![row.protection.clone(), verdict.into(), row.found.clone(), row.fix.clone()]
        };
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        println!("{}", table::render(&["protection", "", "found", "fix"], &cells));
        println!("\nsandbox level: {level}");
        for missing in reduced {
            println!("  reduced: {missing}");
            if missing.starts_with("no namespaces") {
                println!(
                    "    to permit them: sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns"
                );
            }
        }
    }
    let fatal = rows.iter().any(|row| !row.holds) || (arguments.require.is_some() && !reduced.is_empty());
    if fatal { ExitCode::from(UNAVAILABLE) } else { ExitCode::SUCCESS }
}

async fn run(supervisor: &Supervisor, language: Language, code: &str) -> Answer {
    let request = CodeRequest { language, code: code.into(), timeout: None, servers: None };
    supervisor.run_code(request, &CancellationToken::new()).await
}

/// Starts a sealed worker, has the kernel confirm the seal, and runs a program.
async fn engine(supervisor: &Supervisor, language: Language) -> (Row, Vec<String>) {
    let protection = format!("sealed {} worker", language.as_str());
    match supervisor.prepared(language).await {
        Ok(prepared) => {
            let answer = run(supervisor, language, "1 + 1").await;
            let holds = answer.value.as_deref().is_some_and(|value| value.get() == "2");
            let fix = if holds { String::new() } else { "report this: the engine does not work".into() };
            let found = format!("{}; the kernel confirms the seal", prepared.runtime);
            (Row { protection, holds, found, fix }, prepared.reduced)
        }
        Err(reason) => {
            let fix = "see found".to_owned();
            (Row { protection, holds: false, found: reason, fix }, Vec::new())
        }
    }
}

async fn attempts(supervisor: &Supervisor) -> Vec<Row> {
    let answer = run(supervisor, Language::Python, ATTEMPTS).await;
    let value = answer.value.as_deref().filter(|_| answer.status == Status::Ok).map(parsed);
    let Some(Value::Object(outcomes)) = value else {
        let found = answer.error.map(|error| error.message).unwrap_or_default();
        return vec![Row {
            protection: "attempts".into(),
            holds: false,
            found,
            fix: "the attempts did not run".into(),
        }];
    };
    let row = |(name, outcome): (String, Value)| {
        let found = outcome.as_str().unwrap_or_default().to_owned();
        let should_work = name.starts_with("control");
        let holds = (found == "succeeded") == should_work;
        let fix = if holds { "" } else { "do not use Lockhouse on this host; report this" };
        Row { protection: name, holds, found, fix: fix.into() }
    };
    outcomes.into_iter().map(row).collect()
}
