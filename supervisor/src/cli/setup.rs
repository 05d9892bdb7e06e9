//! `lockhouse setup`: takes the servers of AI clients over, writes a first policy, adds Lockhouse to the clients and
//! tests the result, with one question for each decision. `lockhouse setup --undo` takes the changes back.

mod decisions;
mod inventory;
mod server_start;
mod undo;

use std::path::Path;
use std::process::ExitCode;

use lockhouse_client_files::AiClient;
use lockhouse_config::{self as config, ConfigEdit, ConfigError, Environment, ExposeMode, Files, Settings};
use lockhouse_policies::ServerOffer;
use lockhouse_protocol::ServerName;
use lockhouse_setup::{
    Applied, Candidate, ClientFile, Installation, Inventory, Journal, Plan, replace_client_file,
};

use super::command_audit_log::{ChangeError, CommandAuditLog};
use super::confirmation::{Confirmation, ask_yes_no};
use super::policy::init::report as report_policy;
use super::sandbox_options::SandboxOptions;
use super::terminal::sanitize;
use super::{UNAVAILABLE, USAGE, doctor, import, init, print_config_error, print_error};
use server_start::StartResults;

/// Options of `lockhouse setup`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Take back what earlier runs of `lockhouse setup` changed
    #[arg(long, conflicts_with_all = ["keep", "sse", "mode", "no_connect", "sandbox", "no_sandbox"])]
    undo: bool,
    /// Leave the servers in the AI clients' files
    #[arg(long)]
    keep: bool,
    /// Take over servers over HTTP+SSE too, a transport that MCP has deprecated [default: a question on a terminal,
    /// otherwise no]
    #[arg(long)]
    sse: bool,
    /// Who can use the servers: programs of run_code, the AI client as tools of its own, or both
    #[arg(long, value_enum)]
    mode: Option<ExposeMode>,
    /// Do not start the servers; this also leaves out the first policy
    #[arg(long)]
    no_connect: bool,
    #[command(flatten)]
    sandbox: SandboxOptions,
    #[command(flatten)]
    confirmation: Confirmation,
}

/// Runs `lockhouse setup`. The exit status is 0 if everything was done, 2 for invalid files or if questions cannot be
/// asked, and 7 if `--undo` could not take everything back.
pub(super) async fn setup(files: &Files, arguments: &Arguments) -> ExitCode {
    let result = match arguments.undo {
        true => undo::undo(files, arguments.confirmation),
        false => try_setup(files, arguments).await,
    };
    result.unwrap_or_else(|error| print_config_error(&error))
}

async fn try_setup(files: &Files, arguments: &Arguments) -> Result<ExitCode, ConfigError> {
    let (environment, confirmation) = (Environment::from_process(), arguments.confirmation);
    let settings = Settings::load(files)?;
    let edit = ConfigEdit::open(files)?;
    let inventory = Inventory::find(&settings.engine.servers, &edit, &environment);
    inventory::show(&inventory, &environment);
    if !confirmation.asks() && !confirmation.is_yes() && !confirmation.is_dry_run() {
        eprintln!(
            "lockhouse: nothing was written: setup asks questions, which need a terminal; --yes takes the careful answers, --dry-run shows them"
        );
        return Ok(ExitCode::from(USAGE));
    }
    let places = &settings.engine.places;
    let decided = decisions::ask(&inventory, files, arguments, places, &environment);
    let (mut plan, mode) = match decided {
        Ok(decided) => decided,
        Err(error) => return Ok(print_error(&error, USAGE)),
    };
    let path = edit.path().to_owned();
    let start = init::start_entry(files, mode);
    let start = start.map_err(|source| ConfigError::Unwritable { path: path.clone(), source })?;
    let log = match CommandAuditLog::open_for_edit(files) {
        Ok(log) => log,
        Err(error) => {
            return Ok(print_error(&ChangeError::<ConfigError>::Unrecorded(error), UNAVAILABLE));
        }
    };
    let audit = log.audit();
    let installation = Installation { files, start: &start, environment: &environment, audit };
    if !show_plan(&plan, &path, &installation) {
        println!("there is nothing to change");
        return Ok(ExitCode::SUCCESS);
    }
    if !confirmation.confirm("Write this?") {
        return Ok(ExitCode::SUCCESS);
    }
    let mut journal = Journal::open()?;
    let mut offers = Vec::new();
    if !arguments.no_connect {
        let started = StartResults::obtain(&settings, &mut plan, &path, &environment).await?;
        let Some(results) = started else { return Ok(ExitCode::from(UNAVAILABLE)) };
        results.show(&path);
        leave_failed(&results.failed(), &mut plan, &inventory, confirmation);
        offers = results.offers;
    }
    let mut status = ExitCode::SUCCESS;
    let mut report = |applied: Applied<'_>| show_applied(applied, &offers, &mut status);
    plan.apply(&installation, edit, &offers, &mut journal, &mut report)?;
    offer_codex_approval(&installation, confirmation, &plan.files, &mut journal);
    if !plan.moves {
        import::warn_about_plaintext_copies(&plan.imported());
    }
    if !arguments.no_connect {
        doctor::check_host(files).await;
    }
    print_next_steps(files);
    Ok(status)
}

/// Prints the changes of the plan. Returns whether there are any. `path` is the configuration file.
fn show_plan(plan: &Plan<'_>, path: &Path, installation: &Installation<'_>) -> bool {
    if !plan.servers.is_empty() {
        let names: Vec<&str> = plan.servers.iter().map(|server| server.name().as_str()).collect();
        let count = inventory::counted(names.len(), "server");
        println!("{}: {count} added: {}", sanitize(&path.display().to_string()), names.join(", "));
    }
    if plan.writes_policy {
        println!("a first policy is written: read-only tools are allowed, all others are listed and denied");
    }
    let mut has_changes = !plan.servers.is_empty() || plan.writes_policy;
    for file in &plan.files {
        has_changes |= show_file(file, installation);
    }
    has_changes
}

/// Prints the change of an AI client's file. Returns whether there is one. Servers are shown by name, since their entries
/// may contain secrets.
fn show_file(file: &ClientFile, installation: &Installation<'_>) -> bool {
    let path = sanitize(&file.path.display().to_string());
    let changed = match file.change(installation) {
        Ok(Some(changed)) => changed,
        Ok(None) => {
            if file.registers {
                println!("{} needs no change: {path}", file.client.name());
            }
            return false;
        }
        Err(error) => {
            print_config_error(&error);
            return false;
        }
    };
    println!("{}: {path}", file.client.name());
    if let Some(insertion) = &changed.insertion {
        init::show_entry(insertion);
    }
    if !file.moved.is_empty() {
        let names: Vec<&str> = file.moved.iter().map(|place| place.name.as_str()).collect();
        println!("moved out: {}", sanitize(&names.join(", ")));
    }
    println!();
    true
}

/// Prints a step of the changes. `status` becomes that of an AI client's file that could not be changed.
fn show_applied(applied: Applied<'_>, offers: &[ServerOffer], status: &mut ExitCode) {
    match applied {
        Applied::Configuration(path) => println!("wrote {}", sanitize(&path.display().to_string())),
        Applied::Policy(path) => report_policy(path, offers),
        Applied::NoPolicy => println!(
            "no policy was written, since no server has any tools yet: run `lockhouse policy init` later"
        ),
        Applied::Client(file) => println!("wrote {}", sanitize(&file.path.display().to_string())),
        Applied::ClientFailed(error) => *status = print_config_error(&error),
    }
}

/// Leaves the servers that did not start where they are, unless the user wants to take them over nevertheless.
fn leave_failed(
    failed: &[ServerName],
    plan: &mut Plan<'_>,
    inventory: &Inventory,
    confirmation: Confirmation,
) {
    let is_affected = |name: &&ServerName| inventory.servers.iter().any(|found| found.name() == Some(name));
    let failed: Vec<ServerName> = failed.iter().filter(is_affected).cloned().collect();
    if failed.is_empty() {
        return;
    }
    let names = failed.iter().map(ServerName::as_str).collect::<Vec<_>>().join(", ");
    println!("not started: {names}. The AI clients may know how to start them");
    if confirmation.asks() && ask_yes_no("Take them over nevertheless?") {
        return;
    }
    println!("they stay in the AI clients' files, and Lockhouse does not get them");
    plan.leave(&failed, inventory);
    let is_left =
        |candidate: &&Candidate| candidate.imported().is_some_and(|(name, _)| failed.contains(name));
    let left: Vec<&Candidate> =
        inventory.servers.iter().map(|found| &found.candidate).filter(is_left).collect();
    import::warn_about_plaintext_copies(&left);
}

/// Asks about calls of `run_code` in Codex, as `lockhouse init` does, if Codex was chosen.
fn offer_codex_approval(
    installation: &Installation<'_>,
    confirmation: Confirmation,
    files: &[ClientFile],
    journal: &mut Journal,
) {
    let codex = AiClient::Codex;
    if !files.iter().any(|file| file.client == codex && file.registers) {
        return;
    }
    init::offer_codex_approval(installation.environment, confirmation, &mut |path, text| {
        replace_client_file(installation, codex, path, text, journal)
    });
}

fn print_next_steps(files: &Files) {
    println!("\nnext:");
    println!("- restart the AI clients");
    println!("- try a first prompt: \"Use Lockhouse to list my servers and their tools.\"");
    match config::find_policy(files) {
        Some(path) => println!("- the policy is {}", sanitize(&path.display().to_string())),
        None => {
            println!("- every call is denied until there is a policy: `lockhouse policy init` writes one")
        }
    }
    println!("- `lockhouse setup --undo` takes these changes back");
}
