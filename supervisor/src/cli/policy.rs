//! `lockhouse policy`: tools for the people who write it.

pub(super) mod check;
mod diff;
mod dry_run;
mod explain;
mod init;
mod past;
mod suggest;
mod surroundings;
mod written;

use std::process::ExitCode;

use crate::config::Files;

/// What to do with the policy.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Write a policy from what the servers offer: tools that only read are allowed, the rest is listed and denied
    Init {
        /// Replace a policy that exists
        #[arg(long)]
        force: bool,
    },
    /// Check the policy in force, or another file
    Check(check::Arguments),
    /// Say what is decided about a call, by which line, and what else speaks of it
    Explain(explain::Arguments),
    /// Show what two policies say differently
    Diff(diff::Arguments),
    /// Decide past calls by another policy, and show what would have been different
    DryRun(dry_run::Arguments),
    /// Write the smallest policy that would have covered what was used
    Suggest(suggest::Arguments),
    /// Print the JSON Schema of policies, for editors
    Schema,
}

/// Does it.
pub(super) async fn policy(files: &Files, command: Command) -> ExitCode {
    let done = match command {
        Command::Init { force } => return init::init(files, force).await,
        Command::Check(arguments) => return check::check(files, arguments),
        Command::Explain(arguments) => explain::explain(files, &arguments),
        Command::Diff(arguments) => diff::diff(files, &arguments),
        Command::DryRun(arguments) => dry_run::dry_run(files, &arguments),
        Command::Suggest(arguments) => suggest::suggest(files, &arguments),
        Command::Schema => {
            print!("{}", include_str!("../../../docs/policy.schema.json"));
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|status| status)
}
