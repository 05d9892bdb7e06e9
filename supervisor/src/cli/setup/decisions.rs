//! The decisions of `lockhouse setup`, each with its question.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lockhouse_client_files::AiClient;
use lockhouse_config::{self as config, Environment, ExposeMode, Files, SandboxChoice};
use lockhouse_policies::most_similar_name;
use lockhouse_protocol::ServerName;
use lockhouse_setup::{ClientFile, Found, Inventory, NewServer, Plan};
use lockhouse_upstream::StoragePaths;

use super::Arguments;
use crate::cli::confirmation::{NoAnswer, ask_no_yes, ask_valid, ask_yes_no, words};
use crate::cli::import::takes_over_sse;
use crate::cli::init::{choose_mode, targets};
use crate::cli::line_width;
use crate::cli::sandbox;
use crate::cli::terminal::sanitize;

/// Asks the questions, each until its answer is valid. Returns the plan, and who can use the servers. Without questions,
/// the answers are the careful ones: all servers but those that are private to a project or use HTTP+SSE, all AI clients,
/// programs of `run_code` only, and a policy that allows read-only tools.
///
/// # Errors
/// [`NoAnswer`] if the input ends.
pub(super) fn ask<'i>(
    inventory: &'i Inventory,
    files: &Files,
    arguments: &Arguments,
    places: &StoragePaths,
    environment: &Environment,
) -> Result<(Plan<'i>, ExposeMode), NoAnswer> {
    let asks = arguments.confirmation.asks();
    let mut chosen = choose_servers(inventory, asks)?;
    leave_private(&mut chosen, asks);
    leave_sse(&mut chosen, arguments);
    let mut servers: Vec<NewServer> = chosen.iter().filter_map(|found| NewServer::new(found)).collect();
    choose_sandbox(&mut servers, arguments, places, environment)?;
    let moves = !arguments.keep
        && !chosen.is_empty()
        && (!asks
            || ask_no_yes(
                "Move these servers out of the AI clients' files? Copies are kept, and `lockhouse setup --undo` puts them back.",
            )?);
    let has_policy = config::find_policy(files).is_some();
    let has_servers = inventory.has_configured || !servers.is_empty();
    let writes_policy = !has_policy
        && has_servers
        && !arguments.no_connect
        && (!asks
            || ask_no_yes(
                "Write a first policy? It allows the tools that declare themselves read-only, and denies all others.",
            )?);
    let clients = choose_clients(&targets(None, environment), asks)?;
    let mode = choose_mode(arguments.mode, arguments.confirmation)?;
    let files = ClientFile::for_clients(&clients, &chosen, moves, environment);
    Ok((Plan { servers, moves, writes_policy, files }, mode))
}

/// Asks whether the new servers that are processes run in a sandbox, and sets it. Without questions, they do, unless
/// `--no-sandbox` says otherwise. Asks nothing if the servers are not started now, since only a start shows whether a server
/// works in the sandbox.
///
/// # Errors
/// [`NoAnswer`].
fn choose_sandbox(
    servers: &mut [NewServer<'_>],
    arguments: &Arguments,
    places: &StoragePaths,
    environment: &Environment,
) -> Result<(), NoAnswer> {
    if !servers.iter().any(|server| server.entry.is_process()) {
        return Ok(());
    }
    println!("{}", line_width::wrap_lines(&format!("{}:", sandbox::describe_profile())));
    for server in servers.iter() {
        // A server that cannot be resolved cannot be started, which is reported then.
        let definition = server.resolve(environment, Path::new(""));
        let lines = definition.ok().and_then(|it| sandbox::describe_paths(server.name(), &it, places));
        lines
            .into_iter()
            .flatten()
            .for_each(|line| println!("{}", line_width::wrap_line(&format!("  {line}"), "    ")));
    }
    println!();
    let choice = match arguments.confirmation.asks() && !arguments.no_connect {
        true => arguments
            .sandbox
            .ask("Run these servers in the sandbox? One that does not list its tools in it runs without.")?,
        false => arguments.sandbox.choice(),
    };
    if arguments.no_connect && matches!(choice, SandboxChoice::Profile { .. }) {
        println!(
            "the servers get the sandbox untried, since they are not started: `lockhouse server test NAME` tries one\n"
        );
    }
    servers.iter_mut().for_each(|server| server.entry.set_sandbox(&choice));
    Ok(())
}

/// Asks which servers Lockhouse takes over. Returns them with the same servers of other AI clients, and with those that
/// Lockhouse has already.
fn choose_servers(inventory: &Inventory, asks: bool) -> Result<Vec<&Found>, NoAnswer> {
    let mut servers: Vec<&Found> = inventory.servers.iter().filter(|found| found.name().is_some()).collect();
    if !asks || servers.is_empty() {
        return Ok(servers);
    }
    let names: Vec<&str> = servers.iter().filter_map(|found| found.name()).map(ServerName::as_str).collect();
    let question = "Which servers does Lockhouse take over: names, all, or none? [all]";
    let chosen = ask_valid(question, |answer| chosen_names(answer, &names, "server"))?;
    servers
        .retain(|found| found.name().is_some_and(|name| chosen.iter().any(|chosen| chosen == name.as_str())));
    Ok(servers)
}

/// Says which of the chosen servers are private to a project, and asks whether Lockhouse takes them over nevertheless:
/// all AI clients could then use them in all projects. Without questions, they stay where they are.
fn leave_private(chosen: &mut Vec<&Found>, asks: bool) {
    let is_new = |found: &&&Found| found.candidate.imported().is_some();
    let private: Vec<(&str, &str)> = chosen
        .iter()
        .filter(is_new)
        .filter_map(|found| Some((found.candidate.project.as_deref()?, found.name()?.as_str())))
        .collect();
    let Some((project, _)) = private.first() else { return };
    let names: Vec<&str> = private.iter().map(|(_, name)| *name).collect();
    println!(
        "private to the project {} in Claude Code: {}. In Lockhouse, all AI clients could use them in all projects.",
        sanitize(project),
        names.join(", ")
    );
    if asks && ask_yes_no("Take them over nevertheless?") {
        return;
    }
    println!("they stay in the file of Claude Code, and Lockhouse does not get them\n");
    chosen.retain(|found| found.candidate.project.is_none() || found.candidate.imported().is_none());
}

/// Leaves the servers over HTTP+SSE where they are, unless the user wants them to be taken over nevertheless.
fn leave_sse(chosen: &mut Vec<&Found>, arguments: &Arguments) {
    let over_sse = chosen.iter().map(|found| &found.candidate).filter(|found| found.needs_confirmation());
    if !takes_over_sse(over_sse, arguments.sse, arguments.confirmation) {
        chosen.retain(|found| !found.candidate.needs_confirmation());
    }
}

/// Asks which AI clients get an entry for Lockhouse.
fn choose_clients(targets: &[(AiClient, PathBuf)], asks: bool) -> Result<Vec<(AiClient, PathBuf)>, NoAnswer> {
    if targets.is_empty() {
        println!("no AI client's file was found; `lockhouse init --client NAME` creates one");
    }
    if !asks || targets.is_empty() {
        return Ok(targets.to_vec());
    }
    let name = |client: AiClient| {
        client.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let names: Vec<String> = targets.iter().map(|(client, _)| name(*client)).collect();
    let question = format!("Add Lockhouse to which AI clients: {}, all, or none? [all]", names.join(", "));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let chosen = ask_valid(&question, |answer| chosen_names(answer, &names, "AI client"))?;
    let chosen = targets.iter().filter(|(client, _)| chosen.contains(&name(*client)));
    Ok(chosen.cloned().collect())
}

/// A name in an answer that is not one of those to choose from.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
struct UnknownName(String);

/// Returns the names that an answer chooses: all of them for an empty answer and for `all`. Fails with a text about the
/// first name that is not one of `names`.
fn chosen_names(answer: &str, names: &[&str], kind: &str) -> Result<Vec<String>, UnknownName> {
    let chosen = match words(answer).as_slice() {
        [] | ["all"] => names.to_vec(),
        ["none"] => Vec::new(),
        chosen => chosen.to_vec(),
    };
    if let Some(unknown) = chosen.iter().find(|word| !names.contains(word)) {
        let similar = most_similar_name(unknown, names.iter().copied());
        let similar = similar.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        return Err(UnknownName(format!("there is no {kind} {} here{similar}", sanitize(unknown))));
    }
    Ok(chosen.into_iter().map(str::to_owned).collect())
}
