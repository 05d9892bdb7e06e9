//! The decisions of `lockhouse setup`, each with its question.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::Arguments;
use super::client_change::ClientFile;
use super::inventory::{Found, Inventory, counted};
use crate::cli::confirmation::{ask_no_yes, ask_words};
use crate::cli::import::candidate::Candidate;
use crate::cli::init::{ask_mode, targets};
use crate::cli::terminal::sanitize;
use crate::config::{self, AiClient, Environment, ExposeMode, Files};

/// What the user decided. Without questions, the careful answers: all servers and AI clients, programs of `run_code`
/// only, and a policy that allows read-only tools.
pub(super) struct Decisions<'i> {
    /// The servers to add to Lockhouse's configuration.
    pub(super) servers: Vec<&'i Found>,
    /// Whether servers are removed from the files of AI clients that get an entry for Lockhouse.
    pub(super) moves: bool,
    pub(super) mode: Option<ExposeMode>,
    pub(super) writes_policy: bool,
    pub(super) files: Vec<ClientFile>,
}

impl<'i> Decisions<'i> {
    /// Asks the questions. Returns `None` if an answer is not valid, after it was reported.
    pub(super) fn ask(
        inventory: &'i Inventory,
        files: &Files,
        arguments: &Arguments,
        environment: &Environment,
    ) -> Option<Self> {
        let asks = arguments.confirmation.asks();
        let chosen = choose_servers(inventory, asks)?;
        let is_new = |found: &&Found| found.candidate.imported().is_some();
        let servers: Vec<&Found> = chosen.iter().copied().filter(is_new).collect();
        let moves = !arguments.keep
            && !chosen.is_empty()
            && (!asks
                || ask_no_yes(
                    "Move these servers out of the AI clients' files? Copies are kept, and `lockhouse setup --undo` puts them back.",
                ));
        let has_policy = config::find_policy(files).is_some();
        let has_servers = inventory.has_configured || !servers.is_empty();
        let writes_policy = !has_policy
            && has_servers
            && !arguments.no_connect
            && (!asks
                || ask_no_yes(
                    "Write a first policy? It allows the tools that declare themselves read-only, and denies all others.",
                ));
        let clients = choose_clients(&targets(None, environment), asks)?;
        let mode = arguments.mode.or_else(|| ask_mode(arguments.confirmation));
        let files = client_files(&clients, &chosen, moves, environment);
        Some(Self { servers, moves, mode, writes_policy, files })
    }

    /// Prints what is written into Lockhouse's own files. Returns whether there is anything to write. `path` is the
    /// configuration file.
    pub(super) fn show(&self, path: &Path) -> bool {
        if !self.servers.is_empty() {
            let names: Vec<String> =
                self.servers.iter().filter_map(|found| Some(found.name()?.to_string())).collect();
            let count = counted(names.len(), "server");
            println!("{}: {count} added: {}", sanitize(&path.display().to_string()), names.join(", "));
        }
        if self.writes_policy {
            println!(
                "a first policy is written: read-only tools are allowed, all others are listed and denied"
            );
        }
        !self.servers.is_empty() || self.writes_policy
    }

    /// Returns the servers to add to Lockhouse's configuration.
    pub(super) fn imported(&self) -> Vec<&'i Candidate> {
        self.servers.iter().map(|found| &found.candidate).collect()
    }
}

/// Asks which servers Lockhouse takes over. Returns them with the same servers of other AI clients, and with those that
/// Lockhouse has already.
fn choose_servers(inventory: &Inventory, asks: bool) -> Option<Vec<&Found>> {
    let mut servers: Vec<&Found> = inventory.servers.iter().filter(|found| found.name().is_some()).collect();
    if !asks || servers.is_empty() {
        return Some(servers);
    }
    let words = ask_words("Which servers does Lockhouse take over: names, all, or none? [all]");
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["all"] => return Some(servers),
        ["none"] => return Some(Vec::new()),
        _ => {}
    }
    let is_known = |word: &&String| servers.iter().any(|found| is_named(found, word));
    if let Some(unknown) = words.iter().find(|word| !is_known(word)) {
        eprintln!("lockhouse: nothing was written: there is no server {} to take over", sanitize(unknown));
        return None;
    }
    servers.retain(|found| words.iter().any(|word| is_named(found, word)));
    Some(servers)
}

fn is_named(found: &Found, word: &str) -> bool {
    found.name().is_some_and(|name| name.as_str() == word)
}

/// Asks which AI clients get an entry for Lockhouse.
fn choose_clients(targets: &[(AiClient, PathBuf)], asks: bool) -> Option<Vec<(AiClient, PathBuf)>> {
    if targets.is_empty() {
        println!("no AI client's file was found; `lockhouse init --client NAME` creates one");
    }
    if !asks || targets.is_empty() {
        return Some(targets.to_vec());
    }
    let name = |client: AiClient| {
        client.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let names: Vec<String> = targets.iter().map(|(client, _)| name(*client)).collect();
    let words =
        ask_words(&format!("Add Lockhouse to which AI clients: {}, all, or none? [all]", names.join(", ")));
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["all"] => return Some(targets.to_vec()),
        ["none"] => return Some(Vec::new()),
        _ => {}
    }
    if let Some(unknown) = words.iter().find(|word| !names.contains(word)) {
        eprintln!("lockhouse: nothing was written: {} is not one of these AI clients", sanitize(unknown));
        return None;
    }
    let chosen = targets.iter().filter(|(client, _)| words.contains(&name(*client)));
    Some(chosen.cloned().collect())
}

/// Returns the files to change: one with the entry for Lockhouse for each AI client, and each other file of these
/// clients from which servers are moved. A client without an entry for Lockhouse keeps its servers.
fn client_files(
    clients: &[(AiClient, PathBuf)],
    chosen: &[&Found],
    moves: bool,
    environment: &Environment,
) -> Vec<ClientFile> {
    let mut files = Vec::new();
    for (client, target) in clients {
        let others = client.existing_files(environment).into_iter().filter(|path| path != target);
        for path in std::iter::once(target.clone()).chain(others) {
            let is_in = |found: &&&Found| moves && found.client == *client && found.candidate.path == path;
            let moved = chosen.iter().filter(is_in).map(|found| found.place.clone()).collect();
            files.push(ClientFile { client: *client, registers: path == *target, path, moved });
        }
    }
    files
}
