//! `lockhouse init`: adds an entry that starts Lockhouse to AI clients' configuration files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use lockhouse_audit::{ChangeTarget, Channel};
use lockhouse_base::text_files::{back_up, read_source, replace, write_target};
use lockhouse_client_files::{AiClient, Insertion, LaunchCommand, approve_run_code};
use lockhouse_config::{ConfigError, Environment, ExposeMode, Files};
use lockhouse_setup::{entry_change, read_or_empty};
use similar::{ChangeTag, TextDiff};

use super::command_audit_log::FileChange;
use super::confirmation::{Confirmation, NoAnswer, ask_valid, ask_yes_no};
use super::terminal::sanitize;
use super::{UNAVAILABLE, USAGE, print_config_error, print_error};

/// Options of `lockhouse init`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The AI client [default: every known client that has a configuration file]
    #[arg(long, value_enum)]
    client: Option<AiClient>,
    /// Who can use the servers: programs of run_code, the AI client as tools of its own, or both
    #[arg(long, value_enum)]
    mode: Option<ExposeMode>,
    /// Do not connect to the servers now
    #[arg(long)]
    no_connect: bool,
    #[command(flatten)]
    confirmation: Confirmation,
}

/// A change to an AI client's configuration file: a new or updated entry that starts Lockhouse.
struct Change {
    client: AiClient,
    path: PathBuf,
    insertion: Insertion,
}

/// Runs `lockhouse init`: shows the entry for each AI client, and writes the entries to the clients' configuration
/// files after confirmation.
pub(super) async fn init(files: &Files, arguments: &Arguments) -> ExitCode {
    let environment = Environment::from_process();
    let mode = match choose_mode(arguments.mode, arguments.confirmation) {
        Ok(mode) => mode,
        Err(error) => return print_error(&error, USAGE),
    };
    let start = match start_entry(files, mode) {
        Ok(start) => start,
        Err(error) => return print_error(&error, UNAVAILABLE),
    };
    let targets = targets(arguments.client, &environment);
    if targets.is_empty() {
        eprintln!(
            "lockhouse: no AI client's configuration file was found; name the client with --client to create its file"
        );
        return ExitCode::from(USAGE);
    }
    let (mut changes, mut status) = (Vec::new(), ExitCode::SUCCESS);
    for (client, path) in targets {
        match read_or_empty(&path).and_then(|source| entry_change(client, &source, &start, &environment)) {
            Ok(Some(insertion)) => changes.push(Change { client, path, insertion }),
            Ok(None) => {
                println!("{} already has an entry for Lockhouse: {}", client.name(), display_path(&path))
            }
            Err(error) => status = print_config_error(&error),
        }
    }
    for change in &changes {
        show(change);
    }
    let mut replace = |path: &Path, text: &str| {
        record_change(files, path, "allow run_code", text, || replace_target(path, text))
    };
    if changes.is_empty() {
        offer_codex_approval(&environment, arguments.confirmation, &mut replace);
        return status;
    }
    if !arguments.confirmation.confirm("Write this?") {
        return if status == ExitCode::SUCCESS { arguments.confirmation.unconfirmed() } else { status };
    }
    for change in &changes {
        let text = &change.insertion.text;
        let written = record_change(files, &change.path, "init", text, || write(change));
        if let Err(source) = written {
            let error = ConfigError::Unwritable { path: change.path.clone(), source };
            status = print_error(&error, UNAVAILABLE);
        }
    }
    offer_codex_approval(&environment, arguments.confirmation, &mut replace);
    if !arguments.no_connect {
        super::server::cache_tools(files, None).await;
    }
    println!(
        "restart the AI client to connect it; remove its own entries for servers that Lockhouse has (`lockhouse import`)"
    );
    status
}

/// Builds the command line of the new entry, which starts this program with the same files. `mode` says who can use the
/// servers.
pub(super) fn start_entry(files: &Files, mode: ExposeMode) -> std::io::Result<LaunchCommand> {
    let (program, mut arguments) = own_command()?;
    arguments.push("serve".to_owned());
    if mode != ExposeMode::Code {
        arguments.extend(["--expose", mode.as_str()].map(str::to_owned));
    }
    for (option, value) in files.absolute()?.options() {
        arguments.extend([option.to_owned(), value.display().to_string()]);
    }
    Ok(LaunchCommand { program, arguments, mode })
}

/// Returns the command with which AI clients start this program: the path under which it was called. Symbolic links
/// are not resolved, since an update often replaces their target. For a program in the cache of `npx` or `uvx`, the
/// command is `npx` or `uvx` with the version of this program.
fn own_command() -> std::io::Result<(PathBuf, Vec<String>)> {
    let program = std::env::current_exe()?;
    let version = env!("CARGO_PKG_VERSION");
    let folders: Vec<&str> = program.iter().filter_map(|folder| folder.to_str()).collect();
    if folders.contains(&"_npx") {
        return Ok(("npx".into(), vec!["-y".into(), format!("lockhouse@{version}")]));
    }
    if folders.windows(2).any(|pair| pair[0] == "uv" && pair[1].starts_with("archive-v")) {
        return Ok(("uvx".into(), vec![format!("lockhouse=={version}")]));
    }
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let found = match called.components().count() {
        0 => None,
        1 => std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path).map(|folder| folder.join(&called)).find(|path| path.is_file())
        }),
        _ => std::path::absolute(&called).ok(),
    };
    // The name under which a program was called is its caller's claim.
    let is_this = |path: &PathBuf| std::fs::canonicalize(path).is_ok_and(|target| target == program);
    let program = found.filter(|path| path.is_absolute()).filter(is_this).unwrap_or(program);
    Ok((program, Vec::new()))
}

/// Returns the AI clients whose configuration files to change, each with one file. With `client`, this is the file of
/// that AI client, whether it exists or not; without it, one file of each AI client that has configuration files.
pub(super) fn targets(client: Option<AiClient>, environment: &Environment) -> Vec<(AiClient, PathBuf)> {
    let file = |client: AiClient| {
        let first = client.files(environment).into_iter().next();
        // VS Code's settings.json only held servers in older versions.
        let found = client.existing_files(environment).into_iter().next();
        Some((client, if client == AiClient::Vscode { first } else { found.or(first) }?))
    };
    match client {
        Some(client) => file(client).into_iter().collect(),
        None => {
            let existing = AiClient::value_variants()
                .iter()
                .filter(|client| !client.existing_files(environment).is_empty());
            existing.filter_map(|client| file(*client)).collect()
        }
    }
}

/// Returns who can use the servers: programs of `run_code`, the AI client itself, or both. Asks the user if `given` does
/// not say it. An empty answer means programs of `run_code`, and so does it if no question can be asked (without a
/// terminal, or with `--yes` or `--dry-run`).
///
/// # Errors
/// [`NoAnswer`].
pub(super) fn choose_mode(
    given: Option<ExposeMode>,
    confirmation: Confirmation,
) -> Result<ExposeMode, NoAnswer> {
    if given.is_some() || !confirmation.asks() {
        return Ok(given.unwrap_or_default());
    }
    println!(
        "How does the AI client use the servers?\n  \
         code    programs of run_code call them, and only the answer takes space in the model's context\n  \
         direct  the AI client gets their tools as tools of its own: for a client whose own code mode calls tools with types\n          \
         (Codex, OpenCode and Qwen Code, where that is on)\n  \
         both    both"
    );
    ask_valid("Mode? [code]", |answer| match answer {
        "" => Ok(ExposeMode::default()),
        name => ExposeMode::from_str(name, true).map_err(|_| "answer code, direct or both"),
    })
}

/// Asks the user whether Codex may call `run_code` without asking before each call. The question is asked only if
/// Codex's configuration file has a Lockhouse entry and does not set this yet. `--yes` does not answer the question,
/// since the answer changes what another program asks. `write` replaces the file.
pub(super) fn offer_codex_approval(
    environment: &Environment,
    confirmation: Confirmation,
    write: &mut dyn FnMut(&Path, &str) -> std::io::Result<()>,
) {
    let Some(path) = AiClient::Codex.existing_files(environment).into_iter().next() else { return };
    let Ok(source) = read_source(&path) else { return };
    let Ok(Some(text)) = approve_run_code(&source) else { return };
    println!(
        "Codex asks before each call of run_code, and `codex exec` refuses it. Code that run_code runs can do nothing but call tools, \
         and Lockhouse's policy decides about every call."
    );
    let added = "[mcp_servers.lockhouse.tools.run_code]\n+ approval_mode = \"approve\"";
    println!("Codex: {}\n+ {added}", display_path(&path));
    if !confirmation.is_interactive() {
        println!(
            "add these lines yourself, or run `lockhouse init --client codex` on a terminal, if that is what you want"
        );
        return;
    }
    if ask_yes_no("Let Codex call run_code without asking?") {
        match write(&path, &text) {
            Ok(()) => println!("wrote {}", display_path(&path)),
            Err(source) => {
                print_error(&ConfigError::Unwritable { path, source }, UNAVAILABLE);
            }
        }
    }
}

fn display_path(path: &Path) -> String {
    sanitize(&path.display().to_string())
}

fn show(change: &Change) {
    println!("{}: {}, under {}", change.client.name(), display_path(&change.path), change.insertion.section);
    show_entry(&change.insertion);
    println!();
}

/// Prints the change of the Lockhouse entry only: other lines of the AI client's file may contain secrets.
pub(super) fn show_entry(insertion: &Insertion) {
    for line in TextDiff::from_lines(&insertion.before, &insertion.after).iter_all_changes() {
        let sign = match line.tag() {
            ChangeTag::Delete => "-",
            ChangeTag::Insert => "+",
            ChangeTag::Equal => " ",
        };
        println!("{sign} {}", sanitize(line.value().trim_end_matches(['\r', '\n'])));
    }
}

/// Records a change of an AI client's file, and makes it.
fn record_change(
    files: &Files,
    path: &Path,
    action: &str,
    text: &str,
    make: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    let change = FileChange {
        target: ChangeTarget::Client,
        path: path.to_owned(),
        action,
        through: Channel::Command,
        text: Some(text),
        only_restricts: false,
    };
    change.make(files, make).map_err(std::io::Error::other)
}

/// Replaces the file to which a path leads.
fn replace_target(path: &Path, text: &str) -> std::io::Result<()> {
    replace(&write_target(path)?, text)
}

fn write(change: &Change) -> std::io::Result<()> {
    // A symbolic link is kept: its target is changed.
    let path = write_target(&change.path)?;
    let backup = if path.is_file() { Some(back_up(&path)?) } else { None };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    replace(&path, &change.insertion.text)?;
    println!("wrote {}", display_path(&change.path));
    let section = &change.insertion.section;
    match backup {
        Some(backup) => {
            println!("  to undo: remove \"lockhouse\" under {section}, or restore {}", display_path(&backup))
        }
        None => println!("  to undo: remove \"lockhouse\" under {section}"),
    }
    Ok(())
}
