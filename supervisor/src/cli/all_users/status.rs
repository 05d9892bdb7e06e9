//! `lockhouse status --all-users`: a table of the Lockhouse processes of all accounts.

use std::process::ExitCode;

use lockhouse_policies::printable;
use serde_json::{Value, json};

use super::{State, UserProcess, find};
use crate::cli::account_name::account_name;
use crate::cli::{UNAVAILABLE, table};

/// How many digits of a digest the table shows.
const DIGEST_CHARS: usize = 12;
const HEAD: [&str; 8] =
    ["user", "process", "version", "generation", "policy", "configuration", "requirements", "state"];

/// Runs `lockhouse status --all-users`. The exit status is 0 if there are processes and all of them are ready.
pub(in crate::cli) async fn status(as_json: bool) -> ExitCode {
    let found = find().await;
    if as_json {
        println!("{:#}", found.iter().map(to_json).collect::<Value>());
    } else if found.is_empty() {
        println!("No Lockhouse is running.");
    } else {
        println!("{}", table::render(&HEAD, &found.iter().map(row).collect::<Vec<_>>()));
    }
    let is_ready = |process: &UserProcess| match &process.state {
        State::Answers(_, health) => health["ready"] == true,
        State::PartOf(_) => true,
        State::Refuses(..) | State::Silent | State::NotAsked => false,
    };
    if !found.is_empty() && found.iter().all(is_ready) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNAVAILABLE)
    }
}

fn health(process: &UserProcess) -> &Value {
    match &process.state {
        State::Answers(_, health) => health,
        _ => &Value::Null,
    }
}

/// Describes the state of a process in words. What it says about itself is shortened and printable.
fn describe(state: &State) -> String {
    match state {
        State::Answers(_, health) if health["ready"] == true => "ready".to_owned(),
        State::Answers(_, health) => {
            let reasons = health["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
            let reasons = reasons.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
            format!("not ready: {}", short(&reasons, 200))
        }
        State::Refuses(_, why) => short(why, 200),
        State::PartOf(pid) => format!("uses process {pid}"),
        State::Silent => "does not answer".to_owned(),
        State::NotAsked => "not asked: its user runs too many processes".to_owned(),
    }
}

fn short(text: &str, chars: usize) -> String {
    printable(&text.chars().take(chars).collect::<String>())
}

fn row(process: &UserProcess) -> Vec<String> {
    let health = health(process);
    let digest = |name: &str| {
        let digest = health["configuration"][name].as_str();
        digest.map_or_else(|| "-".to_owned(), |digest| short(digest, DIGEST_CHARS))
    };
    let generation = health["configuration"]["generation"].as_u64();
    vec![
        account_name(process.uid),
        process.pid.to_string(),
        health["version"].as_str().map_or_else(|| "-".to_owned(), |version| short(version, 40)),
        generation.map_or_else(|| "-".to_owned(), |generation| generation.to_string()),
        digest("policy"),
        digest("configuration"),
        digest("requirements"),
        describe(&process.state),
    ]
}

fn to_json(process: &UserProcess) -> Value {
    let (kind, part_of) = match &process.state {
        State::Answers(..) => ("answers", None),
        State::Refuses(..) => ("refuses", None),
        State::PartOf(pid) => ("part_of", Some(*pid)),
        State::Silent => ("silent", None),
        State::NotAsked => ("not_asked", None),
    };
    let health = health(process);
    json!({
        "uid": process.uid, "user": account_name(process.uid), "pid": process.pid, "state": kind,
        "part_of": part_of, "ready": health["ready"], "version": health["version"],
        "configuration": health["configuration"], "reason": describe(&process.state),
    })
}
