//! `lockhouse policy suggest`: the smallest policy that would have covered what was used.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_policies::Use;

use super::{past, written};
use crate::cli::terminal::for_stdout;
use crate::cli::{UNAVAILABLE, USAGE, complain, complain_config};
use crate::config::{self, Files};

/// From which calls, and where to.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// From what the audit log says was used: the only source that there is
    #[arg(long)]
    from_audit: bool,
    /// Calls since then: 7d or 12h ago, or a day such as 2026-01-31
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = past::since)]
    since: SystemTime,
    /// Write it there [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(long, requires = "output")]
    force: bool,
}

/// Writes or prints it. What was refused is not in it, and what a person approved is.
pub(super) fn suggest(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let audit = config::load_audit_settings(files).map_err(|error| complain_config(&error))?;
    if let Some(path) = arguments.output.as_ref().filter(|path| path.exists() && !arguments.force) {
        eprintln!("lockhouse: {} exists already; replace it with --force", path.display());
        return Err(ExitCode::from(USAGE));
    }
    let mut uses: BTreeMap<Use, u64> = BTreeMap::new();
    let read = past::each(&audit, arguments.since, |past| {
        if past.made {
            let past::Past { server, item, client, .. } = past;
            *uses.entry(Use { server, item, client }).or_default() += 1;
        }
    });
    read.map_err(|error| complain(&error, UNAVAILABLE))?;
    if uses.is_empty() {
        eprintln!("lockhouse: the audit log has no calls in this time, so there is nothing to suggest");
        return Err(ExitCode::from(UNAVAILABLE));
    }
    let text = lockhouse_policies::suggest(&uses);
    let Some(path) = &arguments.output else {
        print!("{}", for_stdout(&text));
        return Ok(ExitCode::SUCCESS);
    };
    if let Err(error) = written::write(path, &text, arguments.force) {
        eprintln!("lockhouse: cannot write {}: {error}", path.display());
        return Err(ExitCode::from(UNAVAILABLE));
    }
    println!("wrote {0}; `lockhouse policy dry-run {0}` shows what it would change", path.display());
    Ok(ExitCode::SUCCESS)
}
