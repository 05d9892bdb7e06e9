//! `lockhouse policy explain`: what is decided about one call, by which line, and what else speaks of it.

use std::process::ExitCode;

use lockhouse_catalog::members;
use lockhouse_policies::{Call, ClientName, Considered, Explanation, Item, SKILLS, nearest, printable};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName};
use serde_json::{Map, Value, json};

use super::surroundings::Surroundings;
use crate::cli::terminal::for_stdout;
use crate::cli::tools::parse_name;
use crate::cli::{USAGE, complain, complain_config};
use crate::config::{self, Files};

/// Parameters that do not exist, of which each has a note.
const NOTES_MAX: usize = 20;

/// The call. Nothing is called, and no server is started.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// SERVER.TOOL; with --resource or --prompt: SERVER
    #[arg(value_name = "SERVER.TOOL")]
    name: String,
    /// Its arguments: a JSON object
    #[arg(long, alias = "arguments", value_name = "JSON", conflicts_with = "resource")]
    args: Option<String>,
    /// As if this AI client made it, by the name that it gives itself
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Reading this resource instead of calling a tool
    #[arg(long, value_name = "URI", conflicts_with = "prompt")]
    resource: Option<String>,
    /// Getting this prompt instead of calling a tool
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Explains it. The exit status says that there is an explanation, not what is decided.
pub(super) fn explain(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let call = call(arguments)?;
    let policy = config::load_policy(files).map_err(|error| complain_config(&error))?;
    let mut surroundings = Surroundings::of(files);
    let call = surroundings.complete(&policy, call);
    let explanation = lockhouse_policies::explain(&policy, &call);
    let notes = notes(&mut surroundings, &call);
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", to_json(&explanation, &notes))));
    } else {
        print!("{explanation}");
        notes.iter().for_each(|note| println!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn call(arguments: &Arguments) -> Result<Call, ExitCode> {
    let (server, item) = match (&arguments.resource, &arguments.prompt) {
        (None, None) => parse_name(&arguments.name).map(|(server, tool)| (server, Item::Tool(tool)))?,
        (Some(uri), _) => {
            let uri = ResourceUri::new(uri.clone()).map_err(|invalid| complain(&invalid, USAGE))?;
            (server_alone(&arguments.name, "--resource")?, Item::Resource(uri))
        }
        (_, Some(prompt)) => {
            let prompt = PromptName::new(prompt.clone()).map_err(|invalid| complain(&invalid, USAGE))?;
            (server_alone(&arguments.name, "--prompt")?, Item::Prompt(prompt))
        }
    };
    let given = arguments.args.as_deref().map(object).transpose()?.unwrap_or_default();
    let client = arguments.client.as_deref().map(ClientName::of);
    Ok(Call::new(&server, item).with_arguments(given).by(client))
}

fn server_alone(name: &str, option: &str) -> Result<ServerName, ExitCode> {
    ServerName::new(name).map_err(|_| {
        eprintln!("lockhouse: with {option}, give the name of a server alone, not {name:?}");
        ExitCode::from(USAGE)
    })
}

fn object(text: &str) -> Result<Map<String, Value>, ExitCode> {
    let wrong = |reason: String| {
        eprintln!("lockhouse: --args takes a JSON object, such as '{{\"path\": \"/tmp/a\"}}': {reason}");
        ExitCode::from(USAGE)
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(wrong("this is another value".into())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// What the decision leaves out: whether there is such a tool, and whether it has these parameters.
fn notes(surroundings: &mut Surroundings, call: &Call) -> Vec<String> {
    let (Item::Tool(tool), server) = (&call.item, &call.server) else { return Vec::new() };
    if server.as_str() == SKILLS {
        return Vec::new();
    }
    let did_you_mean =
        |name: Option<&str>| name.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    if !surroundings.servers().any(|name| name == server) {
        let meant = nearest(server.as_str(), surroundings.servers().map(ServerName::as_str));
        return vec![format!("no server {server} is configured{}", did_you_mean(meant))];
    }
    let Some(catalogue) = surroundings.catalogue(server) else {
        return vec![format!(
            "the tools of {server} are not known yet, so it may have no tool `{tool}`: `lockhouse server test {server}` connects to it"
        )];
    };
    let Some(known) = catalogue.tool(tool) else {
        let meant = nearest(tool.as_str(), catalogue.tools.iter().map(|tool| tool.name.as_str()));
        return vec![format!(
            "{server} has no tool `{tool}`, as it was last connected{}",
            did_you_mean(meant)
        )];
    };
    let members = members(known);
    let unknown = call.arguments.keys().filter(|name| !members.has(name));
    unknown
        .map(|name| {
            let meant = did_you_mean(nearest(name, members.names()));
            format!("{server}.{tool} has no parameter `{}`{meant}", printable(name))
        })
        .take(NOTES_MAX)
        .collect()
}

fn to_json(explanation: &Explanation, notes: &[String]) -> Value {
    let Explanation { server, item, effect, deciding, others, hint } = explanation;
    json!({
        "server": server.as_str(), "kind": item.kind(), "name": item.as_str(), "effect": effect.as_str(),
        "deciding": considered(deciding), "others": others.iter().map(considered).collect::<Value>(), "hint": hint,
        "notes": notes,
    })
}

fn considered(considered: &Considered) -> Value {
    let Considered { effect, what, why, place, quoted } = considered;
    json!({
        "effect": effect.as_str(), "what": what, "why": why,
        "file": place.as_ref().map(|place| &place.path), "line": place.as_ref().map(|place| place.line),
        "text": quoted,
    })
}
