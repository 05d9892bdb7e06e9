//! `lockhouse policy explain`: shows the decision about one call, the rule that decides, and the other rules that
//! match.

use std::process::ExitCode;

use lockhouse_catalog::{Catalogue, tool_members};
use lockhouse_config::{self as config, Files};
use lockhouse_policies::{
    ApprovalRequirement, Call, CallTarget, ClientName, ConsideredStatement, Explanation, Policy, SKILLS,
    most_similar_name, printable,
};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use serde_json::{Map, Value, json};

use super::environment::Environment;
use crate::cli::terminal::for_stdout;
use crate::cli::tools::parse_name;
use crate::cli::{USAGE, print_config_error, print_error};

/// The maximum number of notes about arguments of the call that are not parameters of the tool.
const NOTES_MAX: usize = 20;

/// Options of `lockhouse policy explain`. No tool is called and no server is started.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// SERVER.TOOL, or SERVER with --resource or --prompt
    #[arg(value_name = "SERVER.TOOL")]
    name: String,
    /// The arguments of the call, as a JSON object
    #[arg(long, alias = "arguments", value_name = "JSON", conflicts_with = "resource")]
    args: Option<String>,
    /// Decide as for this AI client, by the name that it reports in MCP
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Decide as for this person of a service, who has authenticated: the name of a token, user:NAME, oauth:SUBJECT or certificate:NAME
    #[arg(long, value_name = "NAME", conflicts_with = "client")]
    person: Option<String>,
    /// What the authentication of that person proves besides: group:NAME or claim:NAME=VALUE
    #[arg(long, value_name = "MEMBERSHIP", requires = "person")]
    member: Vec<String>,
    /// Explain the decision about reading this resource instead of a tool call
    #[arg(long, value_name = "URI", conflicts_with = "prompt")]
    resource: Option<String>,
    /// Explain the decision about getting this prompt instead of a tool call
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `lockhouse policy explain`: prints the decision about a call. The exit status is 0 whether the call is allowed
/// or denied.
pub(super) fn explain(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let call = parse_call(arguments)?;
    let policy = config::load_policy(files).map_err(|error| print_config_error(&error))?;
    let mut environment = Environment::load(files);
    let call = environment.complete(&policy, call);
    let explanation = lockhouse_policies::explain(&policy, &call);
    let mut notes = notes(&mut environment, &call);
    notes.extend(note_about_roles(&policy, &call));
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", to_json(&explanation, &notes))));
    } else {
        print!("{explanation}");
        notes.iter().for_each(|note| println!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a note with the roles of the person. `None` if no roles apply.
fn note_about_roles(policy: &Policy, call: &Call) -> Option<String> {
    let person = call.client.as_ref().filter(|client| policy.has_roles() && client.is_authenticated())?;
    let roles = policy.roles_of(person).concat();
    Some(match roles.is_empty() {
        true => "this person has no role".to_owned(),
        false => format!("this person has the roles {}", roles.join(", ")),
    })
}

fn parse_call(arguments: &Arguments) -> Result<Call, ExitCode> {
    let (server, item) = match (&arguments.resource, &arguments.prompt) {
        (None, None) => parse_name(&arguments.name).map(|(server, tool)| (server, CallTarget::Tool(tool)))?,
        (Some(uri), _) => {
            let uri = ResourceUri::new(uri.clone()).map_err(|invalid| print_error(&invalid, USAGE))?;
            (parse_server(&arguments.name, "--resource")?, CallTarget::Resource(uri))
        }
        (_, Some(prompt)) => {
            let prompt = PromptName::new(prompt.clone()).map_err(|invalid| print_error(&invalid, USAGE))?;
            (parse_server(&arguments.name, "--prompt")?, CallTarget::Prompt(prompt))
        }
    };
    let given = arguments.args.as_deref().map(parse_object).transpose()?.unwrap_or_default();
    let person = |name: &str| ClientName::new(name).authenticated(arguments.member.clone());
    let client = arguments.client.as_deref().map(ClientName::new);
    let client = client.or_else(|| arguments.person.as_deref().map(person));
    Ok(Call::new(&server, item).with_arguments(given).with_client(client))
}

fn parse_server(name: &str, option: &str) -> Result<ServerName, ExitCode> {
    ServerName::new(name).map_err(|_| {
        eprintln!("lockhouse: with {option}, give only the name of a server, not {name:?}");
        ExitCode::from(USAGE)
    })
}

fn parse_object(text: &str) -> Result<Map<String, Value>, ExitCode> {
    let wrong = |reason: String| {
        eprintln!("lockhouse: --args takes a JSON object, such as '{{\"path\": \"/tmp/a\"}}': {reason}");
        ExitCode::from(USAGE)
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(parse_object)) => Ok(parse_object),
        Ok(_) => Err(wrong("this is not an object".into())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Returns notes about names in the call that are not known to exist: the server, the tool, or parameters of the tool.
/// The notes do not affect the decision about the call.
pub(super) fn notes(environment: &mut Environment, call: &Call) -> Vec<String> {
    let (CallTarget::Tool(tool), server) = (&call.item, &call.server) else { return Vec::new() };
    if server.as_str() == SKILLS {
        return Vec::new();
    }
    if let Some(missing) = missing_server(environment, server) {
        return vec![missing];
    }
    let Some(catalogue) = environment.catalogue(server) else {
        return vec![format!(
            "the tools of {server} are not known yet, so tool `{tool}` may not exist: run `lockhouse server test {server}` to connect to it"
        )];
    };
    let Some(known) = catalogue.tool(tool) else { return vec![missing_tool(catalogue, server, tool)] };
    let members = tool_members(known);
    let unknown = call.arguments.keys().filter(|name| !members.has(name));
    unknown
        .map(|name| {
            let suggestion = did_you_mean(most_similar_name(name, members.names()));
            format!("{server}.{tool} has no parameter `{}`{suggestion}", printable(name))
        })
        .take(NOTES_MAX)
        .collect()
}

/// Returns a text that says that no server of this name is configured, with the most similar name. `None` if one is.
pub(super) fn missing_server(environment: &Environment, server: &ServerName) -> Option<String> {
    if environment.has_fault() {
        let words = "the configuration cannot be used, so its servers are not known: `lockhouse config check` says why";
        return Some(words.to_owned());
    }
    if environment.servers().any(|name| name == server) {
        return None;
    }
    let suggestion = most_similar_name(server.as_str(), environment.servers().map(ServerName::as_str));
    Some(format!("no server {server} is configured{}", did_you_mean(suggestion)))
}

/// Returns a text that says that a server has no tool of this name, with the most similar name.
pub(super) fn missing_tool(catalogue: &Catalogue, server: &ServerName, tool: &ToolName) -> String {
    let suggestion = most_similar_name(tool.as_str(), catalogue.tools.iter().map(|tool| tool.name.as_str()));
    format!("{server} had no tool `{tool}` when it was last connected{}", did_you_mean(suggestion))
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

pub(super) fn to_json(explanation: &Explanation, notes: &[String]) -> Value {
    let Explanation { server, item, effect, requirement, deciding, others, hint } = explanation;
    let mut shown = json!({
        "server": server.as_str(), "kind": item.kind(), "name": item.as_str(), "effect": effect.as_str(),
        "deciding": rule_to_json(deciding), "others": others.iter().map(rule_to_json).collect::<Value>(), "hint": hint,
        "notes": notes,
    });
    let ApprovalRequirement { presence, approvers, not_requester, expires_seconds } = *requirement;
    if let Some(presence) = presence {
        shown["presence"] = presence.as_str().into();
    }
    if approvers > 1 {
        shown["approvers"] = approvers.into();
    }
    if not_requester {
        shown["not"] = "requester".into();
    }
    if let Some(seconds) = expires_seconds {
        shown["expires_seconds"] = seconds.into();
    }
    shown
}

fn rule_to_json(considered: &ConsideredStatement) -> Value {
    let ConsideredStatement { effect, what, why, location, quoted } = considered;
    json!({
        "effect": effect.as_str(), "what": what, "why": why,
        "file": location.as_ref().map(|location| &location.path), "line": location.as_ref().map(|location| location.line),
        "text": quoted,
    })
}
