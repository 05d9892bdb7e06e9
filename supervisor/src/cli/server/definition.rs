//! A server as it is configured, for a person or a program: without the values that may be secrets.

use std::collections::BTreeMap;

use lockhouse_policies::OnChange;
use lockhouse_upstream::{
    Authorization, Confinement, Decode, HttpEndpoint, Reach, ServerCommand, ServerDefinition,
};
use serde_json::{Map, Value, json};

use crate::config::{Written, looks_secret, with_references};

/// In place of a value.
const HIDDEN: &str = "***";

/// What is set, under the names of `config.toml` where it has any.
pub(super) fn described(server: &ServerDefinition, written: &Written) -> Map<String, Value> {
    let mut described = match &server.reach {
        Reach::Stdio(command) => stdio(command, written),
        Reach::Http(endpoint) => http(endpoint, written),
    };
    let limits = server.limits;
    let mut set = |name: &str, value: Value| drop(described.insert(name.to_owned(), value));
    set("start_timeout_seconds", limits.start_timeout.as_secs_f32().into());
    set("call_timeout_seconds", limits.call_timeout.as_secs_f32().into());
    set("calls_at_one_time", limits.calls_max.into());
    set("calls_that_wait", limits.queue_max.into());
    set("queue_timeout_seconds", limits.queue_timeout.as_secs_f32().into());
    set("message_bytes", limits.message_bytes_max.into());
    set("lazy", server.start.lazy.into());
    if let Some(idle) = server.start.idle_stop {
        set("idle_stop_seconds", idle.as_secs().into());
    }
    if let Some(only) = &server.tools.only {
        set("only_tools", only.clone().into());
    }
    if !server.tools.except.is_empty() {
        set("except_tools", server.tools.except.clone().into());
    }
    if server.decode == Decode::Json {
        set("decode", "json".into());
    }
    if server.on_change != OnChange::default() {
        set("on_change", server.on_change.as_str().into());
    }
    described
}

fn stdio(command: &ServerCommand, written: &Written) -> Map<String, Value> {
    let mut described = Map::new();
    described.insert("command".into(), command.program.clone().into());
    described.insert("args".into(), arguments(&command.arguments).into());
    described.insert("env".into(), hidden(&command.environment, |name| written.text("env", name)));
    if let Some(directory) = &command.directory {
        described.insert("cwd".into(), directory.display().to_string().into());
    }
    if let Some(Confinement { read, write, network }) = &command.confinement {
        described.insert("sandbox".into(), json!({"read": read, "write": write, "network": network}));
    }
    described
}

fn http(endpoint: &HttpEndpoint, written: &Written) -> Map<String, Value> {
    let authorization = match &endpoint.authorization {
        Authorization::OnDemand => "on demand: `lockhouse server login` if the server asks for it",
        Authorization::Bearer(_) => "a fixed token",
        Authorization::OAuth(_) => "OAuth, with a client of one's own",
        Authorization::ClientCredentials(_) => "OAuth, with the credentials of a client",
    };
    let mut described = Map::new();
    described.insert("url".into(), url(&endpoint.url).into());
    described.insert("headers".into(), hidden(&endpoint.headers, |name| written.text("headers", name)));
    described.insert("authorization".into(), authorization.into());
    described
}

/// Names, each with the reference that its value comes from, if it comes from one.
fn hidden(values: &BTreeMap<String, String>, written: impl Fn(&str) -> Option<String>) -> Value {
    let reference = |name: &str| written(name).filter(|text| text.contains("${"));
    let shown = |name: &String| reference(name).map_or(HIDDEN.into(), |text| format!("{HIDDEN} from {text}"));
    values.keys().map(|name| (name.clone(), Value::String(shown(name)))).collect::<Map<_, _>>().into()
}

/// With what may be a secret left out of each.
pub(super) fn arguments(arguments: &[String]) -> Vec<String> {
    let mut before = "";
    let mut shown = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let mut hidden = |name: &str, value: &str| looks_secret(name, value).then(|| HIDDEN.to_owned());
        let text = with_references(before, argument, &mut hidden, str::to_owned);
        shown.push(text.unwrap_or_else(|| argument.clone()));
        before = argument.strip_prefix('-').filter(|option| !option.contains('=')).unwrap_or_default();
    }
    shown
}

fn url(url: &url::Url) -> String {
    let mut shown = url.clone();
    if shown.password().is_some() {
        let _ = shown.set_password(Some(HIDDEN));
    }
    let pair = |(name, value): (_, _)| {
        let (name, value) = (String::from(name), String::from(value));
        let value = if looks_secret(&name, &value) { HIDDEN.to_owned() } else { value };
        (name, value)
    };
    let pairs: Vec<(String, String)> = url.query_pairs().map(pair).collect();
    if !pairs.is_empty() {
        shown.query_pairs_mut().clear().extend_pairs(pairs);
    }
    shown.into()
}

/// A value of [`described`] on one line.
pub(super) fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(in_words).collect::<Vec<_>>().join(" "),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| format!("{name} = {}", in_words(value)));
            entries.collect::<Vec<_>>().join(", ")
        }
        Value::Number(number) => number.as_f64().map(|number| number.to_string()).unwrap_or_default(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_among_arguments_and_in_a_url_are_not_shown() {
        let given = [
            "-y",
            "pkg",
            "--api-key",
            "0123456789",
            "--token=0123456789",
            "--root",
            "/srv/data",
            "ghp_0123456789",
        ];
        let shown = arguments(&given.map(str::to_owned));
        assert_eq!(shown.join(" "), "-y pkg --api-key *** --token=*** --root /srv/data ***");
        let parsed = url::Url::parse("https://u:hunter2@x.example/mcp?apiKey=0123456789&a=b").expect("a URL");
        assert_eq!(url(&parsed), "https://u:***@x.example/mcp?apiKey=***&a=b");
    }
}
