//! `lockhouse policy diff`: what two policies say differently.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_base::text_files::read_source;
use lockhouse_policies::{Change, Policy, Said};
use serde_json::{Value, json};

use crate::cli::terminal::for_stdout;
use crate::cli::{USAGE, complain_config, table};
use crate::config::{self, ConfigError, Files};

/// Two policies.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// A policy
    old: PathBuf,
    /// The policy to compare it with [default: the one in force]
    new: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Compares them. They may differ or not: the exit status says that they could be read.
pub(super) fn diff(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let Some(new) = arguments.new.clone().or_else(|| config::find_policy(files)) else {
        eprintln!("lockhouse: there is no policy in force to compare it with: name a second file");
        return Err(ExitCode::from(USAGE));
    };
    let changes = lockhouse_policies::diff(&parsed(&arguments.old)?, &parsed(&new)?);
    if arguments.json {
        let rows: Value = changes.iter().map(to_json).collect();
        println!("{}", for_stdout(&format!("{rows:#}")));
        return Ok(ExitCode::SUCCESS);
    }
    if changes.is_empty() {
        println!("they say the same");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = changes.iter().map(row).collect();
    println!("{}", table::render(&["table", "what", "before", "after", "where"], &rows));
    Ok(ExitCode::SUCCESS)
}

/// A policy by itself: what stands above it is the same for both.
fn parsed(path: &Path) -> Result<Policy, ExitCode> {
    let policy = read_source(path).map_err(ConfigError::from).and_then(|source| Ok(Policy::parse(source)?));
    policy.map_err(|error| complain_config(&error))
}

fn row(change: &Change) -> Vec<String> {
    let said = |said: &Option<Said>| said.as_ref().map_or("-".to_owned(), |said| said.what.clone());
    // What is gone stands in the old file alone.
    let place = change.new.as_ref().or(change.old.as_ref()).map(|said| said.place.to_string());
    vec![
        change.table.clone(),
        change.subject.clone(),
        said(&change.old),
        said(&change.new),
        place.unwrap_or_default(),
    ]
}

fn to_json(change: &Change) -> Value {
    let said = |said: &Option<Said>| {
        said.as_ref().map(|said| json!({"what": said.what, "file": said.place.path, "line": said.place.line}))
    };
    json!({
        "table": change.table, "what": change.subject, "before": said(&change.old), "after": said(&change.new),
    })
}
