//! `lockhouse policy suggest`: generates a minimal policy from recorded calls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_config::{self as config, Files};
use lockhouse_policies::CallKey;

use super::recorded_calls;
use crate::cli::terminal::for_stdout;
use crate::cli::{UNAVAILABLE, USAGE, print_config_error, print_error};

/// Options of `lockhouse policy suggest`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Use the calls in the audit log, which is the only source
    #[arg(long)]
    from_audit: bool,
    /// Only calls since this time: an age such as 7d or 12h, or a date such as 2026-01-31
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = recorded_calls::parse_since)]
    since: SystemTime,
    /// Write the policy to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    force: bool,
}

/// Writes or prints a policy generated from the recorded calls. The policy permits the tools, resources and prompts of
/// calls that were sent to upstream servers, including calls that the user approved. Denied calls are ignored.
pub(super) fn suggest(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let audit = config::load_audit_settings(files).map_err(|error| print_config_error(&error))?;
    if let Some(path) = arguments.output.as_ref().filter(|path| path.exists() && !arguments.force) {
        eprintln!("lockhouse: {} exists already; replace it with --force", path.display());
        return Err(ExitCode::from(USAGE));
    }
    let mut uses: BTreeMap<CallKey, u64> = BTreeMap::new();
    let read = recorded_calls::for_each(&audit, arguments.since, |call| {
        if call.made {
            let recorded_calls::RecordedCall { server, item, client, .. } = call;
            *uses.entry(CallKey { server, item, client }).or_default() += 1;
        }
    });
    read.map_err(|error| print_error(&error, UNAVAILABLE))?;
    if uses.is_empty() {
        eprintln!("lockhouse: the audit log has no calls in this period, so there is nothing to suggest");
        return Err(ExitCode::from(UNAVAILABLE));
    }
    let text = lockhouse_policies::suggest_policy(&uses);
    let Some(path) = &arguments.output else {
        print!("{}", for_stdout(&text));
        return Ok(ExitCode::SUCCESS);
    };
    if let Err(error) = config::write_policy(path, &text, arguments.force) {
        eprintln!("lockhouse: cannot write {}: {error}", path.display());
        return Err(ExitCode::from(UNAVAILABLE));
    }
    println!("wrote {0}; `lockhouse policy dry-run {0}` shows what it would change", path.display());
    Ok(ExitCode::SUCCESS)
}
