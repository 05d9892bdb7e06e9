//! Approves a question, accepts a policy or tools, or begins a login with a password: runs `lockhouse approve`, `accept-policy`,
//! `accept-tools` or `log-in-server` as root through polkit or sudo, which ask the person. Both show or log the arguments of that
//! command, among which is what is approved.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lockhouse_messages::{
    Approval, ApprovalQuestion, CallSummary, ChangedDefinition, DefinitionChange, DefinitionReview,
    PolicyProposal, ProposedChange,
};
use lockhouse_policies::escaped;
use lockhouse_protocol::ServerName;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The program for which the package has an action of polkit.
const PROGRAM: &str = "/usr/bin/lockhouse";
/// The action of polkit: `packaging/polkit`.
pub(in crate::cli) const POLKIT_ACTION: &str = "/usr/share/polkit-1/actions/lockhouse.policy";
/// The names of the commands for root: the first argument, on which the action of polkit depends.
pub(in crate::cli) const APPROVE: &str = "approve";
pub(in crate::cli) const ACCEPT_POLICY: &str = "accept-policy";
pub(in crate::cli) const LOG_IN_SERVER: &str = "log-in-server";
pub(in crate::cli) const ACCEPT_TOOLS: &str = "accept-tools";
/// The option of pkexec without which it asks on the terminal itself.
const WITHOUT_AGENT: &str = "--disable-internal-agent";
/// Maximum time until polkit can ask on the terminal.
const AGENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of characters of the calls, or of the changes of a policy, in the arguments of the command. Of more, the dialog
/// of polkit shows the beginning.
/// Bound: approvals and questions.
const SHOWN_CHARS_MAX: usize = 1_000;

/// Why something was not approved with a password.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum PasswordError {
    #[error("{} cannot be started, so nobody can be asked for a password: {source}", .program.display())]
    NotStarted { program: PathBuf, source: io::Error },
    #[error("it was not approved")]
    NotApproved,
}

/// What a person approves with a password.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) enum PasswordSubject<'a> {
    /// A question of a process, which has this id as the person's commands number it, and the scope of the answer.
    Calls {
        process: u32,
        question: &'a ApprovalQuestion,
        scope: Approval,
    },
    Policy(&'a PolicyProposal),
    /// A login to an upstream server.
    Login {
        server: &'a ServerName,
        scopes: &'a [String],
    },
    /// The tools of a server.
    Tools(&'a DefinitionReview),
}

impl PasswordSubject<'_> {
    /// Returns the arguments of the command that approves it as root.
    fn arguments(self) -> Vec<String> {
        match self {
            Self::Calls { process, question, scope } => {
                let (scope, id) = (scope.as_str().to_owned(), question.id.to_string());
                let digest = question.digest.clone();
                vec![APPROVE.to_owned(), calls_text(question), scope, process.to_string(), id, digest]
            }
            Self::Policy(proposal) => {
                let digest = proposal.digest.clone().unwrap_or_default();
                vec![ACCEPT_POLICY.to_owned(), changes_text(proposal), digest]
            }
            Self::Login { server, scopes } => {
                // A scope is the person's choice, and no option of the command.
                let words = [LOG_IN_SERVER, server.as_str(), "--"].map(str::to_owned);
                words.into_iter().chain(scopes.iter().cloned()).collect()
            }
            Self::Tools(review) => {
                let (server, digest) = (review.server.clone(), review.digest.clone());
                vec![ACCEPT_TOOLS.to_owned(), server, tools_text(review), digest]
            }
        }
    }
}

/// Whether polkit can ask on this host: the package of this program is installed, with its action.
pub(in crate::cli) fn has_polkit() -> bool {
    let is_packaged = std::env::current_exe().is_ok_and(|program| program == Path::new(PROGRAM));
    is_packaged && Path::new(POLKIT_ACTION).exists() && is_in_path("pkexec")
}

/// Whether a program is in a directory of `PATH`.
pub(in crate::cli) fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Asks for the person's password with polkit, or with sudo on this terminal, and approves the subject then.
///
/// # Errors
/// [`PasswordError`]. The program that ran has told the person why.
pub(in crate::cli) async fn approve_on_terminal(subject: PasswordSubject<'_>) -> Result<(), PasswordError> {
    if has_polkit() {
        let _agent = terminal_agent().await?;
        return run(command("pkexec", &[WITHOUT_AGENT], subject)).await;
    }
    // -k: an earlier password does not count.
    run(command("sudo", &["-k", "--"], subject)).await
}

/// Starts the program with which polkit asks on this terminal, also in a desktop session. It ends when it is dropped. That within
/// pkexec asks in vain: pkexec is a process of root, and polkit accepts no answer of another account for it.
async fn terminal_agent() -> Result<Child, PasswordError> {
    let mut command = Command::new("pkttyagent");
    command.args(["--notify-fd", "1", "--process", &std::process::id().to_string()]);
    command.stdout(Stdio::piped()).kill_on_drop(true);
    let mut agent = command.spawn().map_err(|source| not_started(&command, source))?;
    if let Some(mut ready) = agent.stdout.take() {
        // It closes the descriptor as soon as it can ask. Without it, pkexec says that nobody can be asked.
        let _ = timeout(AGENT_TIMEOUT, tokio::io::copy(&mut ready, &mut tokio::io::sink())).await;
    }
    Ok(agent)
}

fn not_started(command: &Command, source: io::Error) -> PasswordError {
    PasswordError::NotStarted { program: PathBuf::from(command.as_std().get_program()), source }
}

/// Asks for the person's password with polkit, without a terminal, and approves the subject then.
///
/// # Errors
/// [`PasswordError`].
pub(in crate::cli) async fn approve_on_desktop(subject: PasswordSubject<'_>) -> Result<(), PasswordError> {
    let mut command = command("pkexec", &[WITHOUT_AGENT], subject);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    run(command).await
}

fn command(asking: &str, options: &[&str], subject: PasswordSubject<'_>) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(PROGRAM));
    let mut command = Command::new(asking);
    command.args(options).arg(program).args(subject.arguments());
    command.kill_on_drop(true);
    command
}

async fn run(mut command: Command) -> Result<(), PasswordError> {
    let status = command.status().await.map_err(|source| not_started(&command, source))?;
    if status.success() { Ok(()) } else { Err(PasswordError::NotApproved) }
}

/// Returns the calls of a question in one line, for the arguments of the command that approves it.
pub(in crate::cli) fn calls_text(question: &ApprovalQuestion) -> String {
    let line = |call: &CallSummary| {
        let arguments = call.arguments.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}.{} {arguments}", call.server, call.name)
    };
    shortened(&question.calls.iter().map(line).collect::<Vec<_>>().join("; "))
}

/// Returns in one line what a proposed policy may permit beyond the approved one, for the arguments of the command that accepts it.
pub(in crate::cli) fn changes_text(proposal: &PolicyProposal) -> String {
    let widening = |change: &&ProposedChange| change.widens;
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let line = |change: &ProposedChange| {
        let ProposedChange { table, entry, approved, proposed, widens: _ } = change;
        escaped(&format!("[{table}] {entry}: {} instead of {}", value(proposed), value(approved)))
    };
    let changes: Vec<String> = proposal.changes.iter().filter(widening).map(line).collect();
    match (changes.len(), proposal.left_out) {
        (0, 0) => "it permits nothing that is not permitted".to_owned(),
        (count, 0) => shortened(&format!("{count} changes: {}", changes.join("; "))),
        (count, left_out) => {
            shortened(&format!("{count} changes and {left_out} that are not shown: {}", changes.join("; ")))
        }
    }
}

/// Returns in one line which tools of a server are accepted, for the arguments of the command that accepts them.
pub(in crate::cli) fn tools_text(review: &DefinitionReview) -> String {
    let line = |change: &ChangedDefinition| {
        let how = if change.kind == DefinitionChange::New { "new" } else { "changed" };
        format!("{} ({how})", escaped(&change.tool))
    };
    let changes: Vec<String> = review.changes.iter().map(line).collect();
    shortened(&format!("{} tools: {}", changes.len(), changes.join(", ")))
}

fn shortened(text: &str) -> String {
    let rest = text.chars().count().saturating_sub(SHOWN_CHARS_MAX);
    match rest {
        0 => text.to_owned(),
        _ => format!("{}… ({rest} more characters)", text.chars().take(SHOWN_CHARS_MAX).collect::<String>()),
    }
}
