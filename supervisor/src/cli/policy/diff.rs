//! `lockhouse policy diff`: shows the differences in meaning between two policies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_base::text_files::read_source;
use lockhouse_config::{self as config, ConfigError, Files};
use lockhouse_policies::{Change, Policy, PolicyValue};
use serde_json::{Value, json};

use crate::cli::terminal::for_stdout;
use crate::cli::{USAGE, print_config_error, table};

/// Options of `lockhouse policy diff`: the policies to compare.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The old policy file
    old: PathBuf,
    /// The new policy file [default: the active policy]
    new: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `lockhouse policy diff`: prints the differences between two policies. The exit status is 0 whether they differ
/// or not.
pub(super) fn diff(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let Some(new) = arguments.new.clone().or_else(|| config::find_policy(files)) else {
        eprintln!("lockhouse: there is no active policy to compare with: name a second file");
        return Err(ExitCode::from(USAGE));
    };
    let changes = lockhouse_policies::diff(&parse_policy(&arguments.old)?, &parse_policy(&new)?);
    if arguments.json {
        let rows: Value = changes.iter().map(to_json).collect();
        println!("{}", for_stdout(&format!("{rows:#}")));
        return Ok(ExitCode::SUCCESS);
    }
    if changes.is_empty() {
        println!("the policies are equivalent");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = changes.iter().map(row).collect();
    println!("{}", table::render(&["table", "key", "before", "after", "location"], &rows));
    Ok(ExitCode::SUCCESS)
}

/// Parses one policy file. The policies that the administrator requires are left out, since they would apply equally
/// to both compared files.
fn parse_policy(path: &Path) -> Result<Policy, ExitCode> {
    let policy = read_source(path).map_err(ConfigError::from).and_then(|source| Ok(Policy::parse(source)?));
    policy.map_err(|error| print_config_error(&error))
}

fn row(change: &Change) -> Vec<String> {
    let said = |said: &Option<PolicyValue>| said.as_ref().map_or("-".to_owned(), |said| said.what.clone());
    // A removed entry only has a location in the old file.
    let place = change.new.as_ref().or(change.old.as_ref()).map(|said| said.location.to_string());
    vec![
        change.table.clone(),
        change.subject.clone(),
        said(&change.old),
        said(&change.new),
        place.unwrap_or_default(),
    ]
}

fn to_json(change: &Change) -> Value {
    let said = |said: &Option<PolicyValue>| {
        said.as_ref()
            .map(|said| json!({"what": said.what, "file": said.location.path, "line": said.location.line}))
    };
    json!({
        "table": change.table, "what": change.subject, "before": said(&change.old), "after": said(&change.new),
    })
}
