//! `lockhouse policy`: generates, changes, checks, explains and compares policies.

pub(super) mod check;
mod diff;
mod dry_run;
mod environment;
mod explain;
pub(super) mod init;
mod proposals;
mod recorded_calls;
pub(super) mod set_effect;
mod suggest;

use std::process::ExitCode;

use lockhouse_config::Files;
use lockhouse_policies::Effect;

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
    /// Change the policy so that a tool may be called, and show the change
    Allow(set_effect::Arguments),
    /// Change the policy so that each call of a tool requires approval, and show the change
    Ask(set_effect::Arguments),
    /// Change the policy so that a tool is denied whatever else matches, and show the change
    Deny(set_effect::Arguments),
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
    /// Propose a policy for the engine of the system: it restricts at once, and permits when it is accepted
    Propose(proposals::Proposed),
    /// Show the proposed policies of this user, or of all users for root
    Proposals,
    /// Accept a proposed policy: as root, or with your password if the requirements ask for one
    Accept(proposals::Accepted),
    /// Print the JSON Schema of policy files, for editors
    Schema,
}

impl Command {
    /// Whether the command is about policies that are proposed for engines of the system.
    pub(super) fn is_about_proposals(&self) -> bool {
        matches!(self, Self::Propose(_) | Self::Proposals | Self::Accept(_))
    }
}

/// Runs a subcommand of `lockhouse policy` and returns its exit status.
pub(super) async fn policy(files: &Files, command: Command) -> ExitCode {
    let result = match command {
        Command::Init { force } => return init::init(files, force).await,
        Command::Check(arguments) => return check::check(files, arguments),
        Command::Allow(arguments) => set_effect::set_effect(files, &arguments, Effect::Allow),
        Command::Ask(arguments) => set_effect::set_effect(files, &arguments, Effect::Ask),
        Command::Deny(arguments) => set_effect::set_effect(files, &arguments, Effect::Deny),
        Command::Explain(arguments) => explain::explain(files, &arguments),
        Command::Diff(arguments) => diff::diff(files, &arguments),
        Command::DryRun(arguments) => dry_run::dry_run(files, &arguments),
        Command::Suggest(arguments) => suggest::suggest(files, &arguments),
        Command::Propose(arguments) => proposals::propose(files, &arguments).await,
        Command::Proposals => proposals::proposals().await,
        Command::Accept(arguments) => proposals::accept(&arguments).await,
        Command::Schema => {
            print!("{}", include_str!("../../../docs/policy.schema.json"));
            Ok(ExitCode::SUCCESS)
        }
    };
    result.unwrap_or_else(|status| status)
}
