//! An AI client's own list of servers, read as it is: `{"mcpServers": {NAME: {"command", "args", "env", "cwd"}}}`.
//!
//! Keys that are not known are another program's business and are passed over. A server that cannot be used is told and
//! left out, so that the others work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use lockhouse_protocol::ServerName;
use serde::Deserialize;
use serde_json::Value;

use crate::upstream::{Reach, ServerCommand, ServerDefinition, ServerLimits};

#[derive(Deserialize)]
struct Entry {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    disabled: bool,
}

/// Reads the file.
pub(super) fn parse(
    source: &Source,
    limits: ServerLimits,
) -> Result<BTreeMap<ServerName, ServerDefinition>, Diagnostics> {
    let document: Value = serde_json::from_str(&source.text).map_err(|error| {
        // Without its line, which may hold a secret.
        let path = format!("{}:{}:{}", source.path, error.line(), error.column());
        let place = Source { path, text: String::new() };
        Diagnostic::new(&place, None, "the servers file is not valid JSON", error.to_string())
    })?;
    let Some(entries) =
        document.get("mcpServers").or_else(|| document.get("servers")).and_then(Value::as_object)
    else {
        let label = "expected {\"mcpServers\": {\"NAME\": {\"command\": \"...\", \"args\": [...]}}}";
        return Err(Diagnostic::new(source, None, "the servers file lists no servers", label).into());
    };
    let mut servers = BTreeMap::new();
    for (name, entry) in entries {
        match server(name, entry, limits, &source.path) {
            Ok(Some((name, definition))) => drop(servers.insert(name, definition)),
            Ok(None) => {}
            Err(reason) => tracing::warn!("{}: server {name:?} is left out: {reason}", source.path),
        }
    }
    Ok(servers)
}

fn server(
    name: &str,
    entry: &Value,
    limits: ServerLimits,
    origin: &str,
) -> Result<Option<(ServerName, ServerDefinition)>, String> {
    let name = ServerName::new(name).map_err(|invalid| invalid.to_string())?;
    if entry.get("command").is_none() && (entry.get("url").is_some() || entry.get("serverUrl").is_some()) {
        return Err("it is reached over HTTP, and this version connects to stdio servers only".into());
    }
    let environment = environment(entry)?;
    let entry: Entry = serde_json::from_value(entry.clone()).map_err(|error| error.to_string())?;
    if entry.disabled {
        return Ok(None);
    }
    // An AI client's own file lists us too, and each of us would start the next.
    let program = Path::new(&entry.command).file_name();
    if program.is_some_and(|name| name == "lockhouse")
        && entry.args.iter().any(|argument| argument == "serve")
    {
        return Err("it is Lockhouse itself".into());
    }
    let command = ServerCommand {
        program: entry.command,
        arguments: entry.args,
        environment,
        directory: entry.cwd,
        confinement: None,
    };
    Ok(Some((name, ServerDefinition::new(Reach::Stdio(command), limits, origin.to_owned()))))
}

/// The variables of a server. What is wrong with one is said without its value, which may be a secret.
fn environment(entry: &Value) -> Result<BTreeMap<String, String>, String> {
    let Some(variables) = entry.get("env") else { return Ok(BTreeMap::new()) };
    let variables = variables.as_object().ok_or("env: expected an object of strings")?;
    let variable = |(name, value): (&String, &Value)| match value {
        Value::String(value) => Ok((name.clone(), value.clone())),
        _ => Err(format!("env: {name:?}: expected a string")),
    };
    variables.iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>, String> {
        let source = Source { path: "mcp.json".into(), text: text.into() };
        let servers = parse(&source, ServerLimits::default()).map_err(|faults| faults.to_string())?;
        Ok(servers.keys().map(ToString::to_string).collect())
    }

    #[test]
    fn one_unusable_server_does_not_cost_the_others() {
        let text = r#"{"theme": "dark", "mcpServers": {
            "git": {"command": "mcp-server-git", "alwaysAllow": []},
            "web": {"url": "https://example.com/mcp"},
            "a b": {"command": "x"},
            "self": {"command": "/usr/bin/lockhouse", "args": ["serve"]},
            "bad": {"command": 3}}}"#;
        assert_eq!(parsed(text), Ok(vec!["git".to_owned()]));
    }

    #[test]
    fn faults_do_not_show_values_of_the_environment() {
        for (env, told) in [
            (r#""TOKEN=SEKRET""#, "env: expected an object of strings"),
            (r#"{"TOKEN": ["SEKRET"]}"#, "env: \"TOKEN\": expected a string"),
        ] {
            let entry = format!(r#"{{"command": "x", "env": {env}}}"#);
            let entry = serde_json::from_str(&entry).expect("JSON");
            assert_eq!(server("x", &entry, ServerLimits::default(), "mcp.json").err().as_deref(), Some(told));
        }
        let fault = parsed(r#"{"mcpServers": {"x": {"command": "a", "env": {"TOKEN": "SEKRET",}}}}"#);
        let fault = fault.expect_err("a fault");
        assert!(fault.contains("mcp.json:1:") && !fault.contains("SEKRET"), "{fault}");
    }

    #[test]
    fn faults_name_the_line() {
        let fault = parsed("{\n  \"mcpServers\": {,}\n}").expect_err("a fault");
        assert!(fault.contains("mcp.json:2"), "{fault}");
        assert!(parsed("[]").expect_err("a fault").contains("mcpServers"));
    }
}
