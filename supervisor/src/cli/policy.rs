//! `lockhouse policy`: generates, checks, explains and compares policies.

pub(super) mod check;
mod diff;
mod dry_run;
mod environment;
mod explain;
pub(super) mod init;
pub(super) mod policy_file;
mod recorded_calls;
mod suggest;

use std::process::ExitCode;

use crate::config::Files;

/// Subcommands of `lockhouse policy`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Generate a policy from the servers' tools: read-only tools are allowed, all others are listed as comments and
    /// denied
    Init {
        /// Replace an existing policy
        #[arg(long)]
        force: bool,
    },
    /// Check the active policy, or another file
    Check(check::Arguments),
    /// Show the decision about a call, the rule that decides, and the other rules that match
    Explain(explain::Arguments),
    /// Show the differences between two policies
    Diff(diff::Arguments),
    /// Apply a policy to the recorded calls, and show which decisions would change
    DryRun(dry_run::Arguments),
    /// Generate a minimal policy from recorded calls
    Suggest(suggest::Arguments),
    /// Print the JSON Schema of policy files, for editors
    Schema,
}

/// Runs a subcommand of `lockhouse policy` and returns its exit status.
pub(super) async fn policy(files: &Files, command: Command) -> ExitCode {
    let result = match command {
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
    result.unwrap_or_else(|status| status)
}
