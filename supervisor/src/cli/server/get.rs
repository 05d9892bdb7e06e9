//! `lockhouse server get`

use std::process::ExitCode;

use lockhouse_gate::standing;
use lockhouse_policies::{Effect, Policy};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Connection, Upstreams};

use super::report::Report;
use super::{definition, find, load, progress};
use crate::cli::complain_config;
use crate::cli::terminal::{for_stdout, harmless};
use crate::config::{self, Files, Written};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The server
    name: String,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Show what is configured, and start nothing
    #[arg(long)]
    no_connect: bool,
}

pub(super) async fn get(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let settings = load(files)?;
    let (name, server) = find(&settings, &arguments.name)?;
    let policy = config::load_policy(files).map_err(|error| complain_config(&error))?;
    let chosen = if arguments.no_connect { None } else { Some((name.clone(), server.clone())) };
    let upstreams = Upstreams::connect(chosen.into_iter().collect(), &settings.engine.places);
    progress::connect(&upstreams).await;
    let connection = upstreams.get(name);
    let report = match connection {
        Some(connection) => Report::connected(name.as_str(), server, connection),
        None => Report::configured(name.as_str(), server),
    };
    let offered = connection.and_then(|connection| offered(&policy, name, connection));
    upstreams.close().await;
    let defined = definition::described(server, &Written::of(files, &arguments.name, server));
    if arguments.json {
        let mut whole = report.to_json();
        whole["definition"] = defined.into();
        whole["permitted_tools"] = offered.as_ref().map(|offered| offered.permitted.clone()).into();
        whole["asked_tools"] = offered.as_ref().map(|offered| offered.asked.clone()).into();
        whole["depending_tools"] = offered.as_ref().map(|offered| offered.depends.clone()).into();
        whole["not_accepted_tools"] = offered.as_ref().map(|offered| offered.not_accepted.clone()).into();
        whole["denied_tools"] = offered.map(|offered| offered.denied).into();
        println!("{}", for_stdout(&format!("{whole:#}")));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{name}");
    line("origin", &server.origin);
    for (key, value) in defined.iter().map(|(key, value)| (key, definition::in_words(value))) {
        if !value.is_empty() {
            line(key, &value);
        }
    }
    for (key, value) in report.lines() {
        line(key, &value);
    }
    if let Some(Offered { permitted, asked, depends, denied, not_accepted }) = offered {
        line("permitted", &told(&permitted));
        if !asked.is_empty() {
            line("a person is asked", &told(&asked));
        }
        if !depends.is_empty() {
            line("by their arguments", &told(&depends));
        }
        line("denied", &told(&denied));
        if !not_accepted.is_empty() {
            line("not accepted", &told(&not_accepted));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The tools of a server, as the policy has them.
struct Offered {
    permitted: Vec<String>,
    /// A person is asked before each call.
    asked: Vec<String>,
    /// Their arguments decide.
    depends: Vec<String>,
    denied: Vec<String>,
    /// Not as a person accepted them, whatever the policy says of them.
    not_accepted: Vec<String>,
}

fn offered(policy: &Policy, name: &ServerName, connection: &Connection) -> Option<Offered> {
    let known = connection.known()?;
    let names = |wanted: Option<Effect>| {
        let tools = known.tools.iter().map(|tool| &tool.name);
        tools.filter(|tool| standing(policy, name, tool) == wanted).map(ToString::to_string).collect()
    };
    let [permitted, asked, denied] = [Effect::Allow, Effect::Ask, Effect::Deny].map(Some).map(&names);
    let depends = names(None);
    let changed = known.tools.iter().filter(|tool| tool.change.is_some());
    let not_accepted = changed.map(|tool| tool.name.to_string()).collect();
    Some(Offered { permitted, asked, depends, denied, not_accepted })
}

/// Names that a line has room for; `tools list` shows all.
const NAMED_MAX: usize = 12;

fn told(tools: &[String]) -> String {
    match tools.len() {
        0 => "none".into(),
        count if count <= NAMED_MAX => format!("{count}: {}", tools.join(", ")),
        count => format!("{count}: {}, …", tools[..NAMED_MAX].join(", ")),
    }
}

fn line(key: &str, value: &str) {
    println!("  {key:23}{}", harmless(value).replace('\n', " "));
}
