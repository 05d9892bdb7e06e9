//! `lockhouse setup`: takes the servers of AI clients over, writes a first policy, adds Lockhouse to the clients and
//! tests the result, with one question for each decision. `lockhouse setup --undo` takes the changes back.

mod attempt;
mod client_change;
mod decisions;
mod first_policy;
mod inventory;
mod journal;
mod server_start;
mod taken_over;
mod undo;

use std::process::ExitCode;

use lockhouse_base::text_files::{replace, write_target};
use lockhouse_client_files::own_place;
use lockhouse_config::{self as config, ConfigEdit, ConfigError, Environment, ExposeMode, Files, Settings};
use lockhouse_protocol::ServerName;

use super::confirmation::{Confirmation, ask_yes_no};
use super::import::candidate::Candidate;
use super::terminal::{sanitize, sanitize_lines};
use super::{UNAVAILABLE, USAGE, doctor, import, init, print_config_error, print_error};
use client_change::ClientFile;
use decisions::Decisions;
use inventory::Inventory;
use journal::{Change, Journal};
use server_start::StartResults;

/// Options of `lockhouse setup`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Take back what earlier runs of `lockhouse setup` changed
    #[arg(long, conflicts_with_all = ["keep", "sse", "mode", "no_connect"])]
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
    confirmation: Confirmation,
}

/// Runs `lockhouse setup`. The exit status is 0 if everything was done, 2 for invalid files or if questions cannot be
/// asked, and 7 if `--undo` could not take everything back.
pub(super) async fn setup(files: &Files, arguments: &Arguments) -> ExitCode {
    let result = match arguments.undo {
        true => undo::undo(arguments.confirmation),
        false => try_setup(files, arguments).await,
    };
    result.unwrap_or_else(|error| print_config_error(&error))
}

async fn try_setup(files: &Files, arguments: &Arguments) -> Result<ExitCode, ConfigError> {
    let (environment, confirmation) = (Environment::from_process(), arguments.confirmation);
    let settings = Settings::load(files)?;
    let edit = ConfigEdit::open(files)?;
    let inventory = Inventory::find(&settings.engine.servers, &edit, &environment);
    inventory.show(&environment);
    if !confirmation.asks() && !confirmation.is_yes() && !confirmation.is_dry_run() {
        eprintln!(
            "lockhouse: nothing was written: setup asks questions, which need a terminal; --yes takes the careful answers, --dry-run shows them"
        );
        return Ok(ExitCode::from(USAGE));
    }
    let places = &settings.engine.places;
    let mut decisions = match Decisions::ask(&inventory, files, arguments, places, &environment) {
        Ok(decisions) => decisions,
        Err(error) => return Ok(print_error(&error, USAGE)),
    };
    let start = init::start_entry(files, decisions.mode);
    let start = start.map_err(|source| ConfigError::Unwritable { path: edit.path().to_owned(), source })?;
    let mut has_changes = decisions.show(edit.path());
    for file in &decisions.files {
        has_changes |= file.show(&start, &environment);
    }
    if !has_changes {
        println!("there is nothing to change");
        return Ok(ExitCode::SUCCESS);
    }
    if !confirmation.confirm("Write this?") {
        return Ok(ExitCode::SUCCESS);
    }
    let mut journal = Journal::open()?;
    let mut offers = Vec::new();
    if !arguments.no_connect {
        let path = edit.path();
        let started = StartResults::obtain(&settings, &mut decisions, path, &environment).await?;
        let Some(results) = started else { return Ok(ExitCode::from(UNAVAILABLE)) };
        results.show(path);
        leave_failed(&results.failed(), &mut decisions, &inventory, confirmation);
        offers = results.offers;
    }
    taken_over::write(files, edit, &decisions, &mut journal)?;
    if decisions.writes_policy {
        first_policy::write(files, &offers, &mut journal)?;
    }
    let mut status = ExitCode::SUCCESS;
    for file in &decisions.files {
        if let Err(error) = file.write(&start, &environment, &mut journal) {
            status = print_config_error(&error);
        }
    }
    offer_codex_approval(&environment, confirmation, &decisions.files, &mut journal);
    if !decisions.moves {
        import::warn_about_plaintext_copies(&decisions.imported());
    }
    if !arguments.no_connect {
        doctor::check_host(files).await;
    }
    print_next_steps(files);
    Ok(status)
}

/// Leaves the servers that did not start where they are, unless the user wants to take them over nevertheless.
fn leave_failed(
    failed: &[ServerName],
    decisions: &mut Decisions<'_>,
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
    decisions.leave(&failed, inventory);
    let is_left =
        |candidate: &&Candidate| candidate.imported().is_some_and(|(name, _)| failed.contains(name));
    let left: Vec<&Candidate> =
        inventory.servers.iter().map(|found| &found.candidate).filter(is_left).collect();
    import::warn_about_plaintext_copies(&left);
}

/// Asks about calls of `run_code` in Codex, as `lockhouse init` does, if Codex was chosen.
fn offer_codex_approval(
    environment: &Environment,
    confirmation: Confirmation,
    files: &[ClientFile],
    journal: &mut Journal,
) {
    let codex = lockhouse_client_files::AiClient::Codex;
    if !files.iter().any(|file| file.client == codex && file.registers) {
        return;
    }
    init::offer_codex_approval(environment, confirmation, &mut |path, text| {
        let path = write_target(path)?;
        let before = init::read_or_empty(&path).map_err(std::io::Error::other)?;
        let own = Some(own_place(codex, &before));
        let change = Change::Client { client: codex, own, moved: Vec::new() };
        journal.record(&path, Some(&before.text), text, change)?;
        replace(&path, text)
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

/// Prints an error of a step that cannot be completed, and returns the exit status.
fn print_unfinished(what: &str, reason: &str) -> ExitCode {
    eprintln!("lockhouse: {}: {}", sanitize(what), sanitize_lines(reason));
    ExitCode::from(UNAVAILABLE)
}
