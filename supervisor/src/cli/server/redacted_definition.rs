//! Describes the settings of a configured upstream server, with possible secrets redacted.

use std::collections::BTreeMap;

use lockhouse_config::{UnresolvedServer, looks_secret, replace_secrets};
use lockhouse_policies::OnChange;
use lockhouse_upstream::{
    Authorization, Confinement, DecodeRules, Endpoint, HttpEndpoint, HttpTransport, Network, Proxy,
    ServerCommand, ServerDefinition,
};
use serde_json::{Map, Value, json};

/// The text that replaces a redacted value.
const REDACTED: &str = "***";

/// Returns the settings of a server with possible secrets redacted. `written` is the server as configured, with its
/// placeholders. The keys are those of the `--json` output, which are stable.
pub(super) fn describe(server: &ServerDefinition, written: &UnresolvedServer) -> Map<String, Value> {
    let mut described = match &server.endpoint {
        Endpoint::Stdio(command) => stdio(command, written),
        Endpoint::Http(endpoint) => http(endpoint, written),
        Endpoint::Socket(path) => {
            let url = format!("unix:{}", path.display());
            [("transport".to_owned(), "socket".into()), ("url".to_owned(), url.into())].into_iter().collect()
        }
    };
    let limits = server.limits;
    let mut insert = |name: &str, value: Value| drop(described.insert(name.to_owned(), value));
    insert("start_timeout_seconds", limits.start_timeout.as_secs_f32().into());
    insert("call_timeout_seconds", limits.call_timeout.as_secs_f32().into());
    insert("calls_at_one_time", limits.calls_max.into());
    insert("calls_that_wait", limits.queue_max.into());
    insert("queue_timeout_seconds", limits.queue_timeout.as_secs_f32().into());
    insert("message_bytes", limits.message_bytes_max.into());
    insert("lazy", server.start.lazy.into());
    if let Some(idle) = server.start.idle_stop {
        insert("idle_stop_seconds", idle.as_secs().into());
    }
    if let Some(only) = &server.tools.only {
        insert("only_tools", only.clone().into());
    }
    if !server.tools.except.is_empty() {
        insert("except_tools", server.tools.except.clone().into());
    }
    if server.decode != DecodeRules::default() {
        insert("decode", server.decode.to_string().into());
    }
    if server.on_change != OnChange::default() {
        insert("on_change", server.on_change.as_str().into());
    }
    described
}

fn stdio(command: &ServerCommand, written: &UnresolvedServer) -> Map<String, Value> {
    let mut described = Map::new();
    described.insert("command".into(), command.program.clone().into());
    described.insert("args".into(), redact_arguments(&command.arguments).into());
    described.insert("env".into(), redact_values(&command.environment, |name| written.text("env", name)));
    if let Some(directory) = &command.directory {
        described.insert("cwd".into(), directory.display().to_string().into());
    }
    if let Some(Confinement { profile, read, write, network, user_namespaces, requires_full: _ }) =
        &command.confinement
    {
        let mut sandbox = json!({"read": read, "write": write, "network": *network != Network::None});
        if let Some(profile) = profile {
            sandbox["profile"] = profile.as_str().into();
        }
        if *user_namespaces {
            sandbox["user_namespaces"] = true.into();
        }
        described.insert("sandbox".into(), sandbox);
    }
    described
}

fn http(endpoint: &HttpEndpoint, written: &UnresolvedServer) -> Map<String, Value> {
    let authorization = match &endpoint.authorization {
        Authorization::OnDemand => "on demand: `lockhouse server login` if the server asks for it",
        Authorization::Bearer(_) => "a fixed token",
        Authorization::OAuth(_) => "OAuth, with a client of one's own",
        Authorization::ClientCredentials(_) => "OAuth, with the credentials of a client",
    };
    let mut described = Map::new();
    described.insert("url".into(), redact_url(&endpoint.url).into());
    if endpoint.transport != HttpTransport::default() {
        described.insert("transport".into(), endpoint.transport.as_str().into());
    }
    described
        .insert("headers".into(), redact_values(&endpoint.headers, |name| written.text("headers", name)));
    described.insert("authorization".into(), authorization.into());
    if let Proxy::Address(proxy) = &endpoint.proxy {
        described.insert("proxy".into(), redact_url(proxy).into());
    }
    described
}

/// Redacts all values of a map, such as environment variables. `written` returns the configured text of a value by its
/// name. If this text has a placeholder such as `${file:...}`, it is shown.
fn redact_values(values: &BTreeMap<String, String>, written: impl Fn(&str) -> Option<String>) -> Value {
    let reference = |name: &str| written(name).filter(|text| text.contains("${"));
    let to_value =
        |name: &String| reference(name).map_or(REDACTED.into(), |text| format!("{REDACTED} from {text}"));
    values.keys().map(|name| (name.clone(), Value::String(to_value(name)))).collect::<Map<_, _>>().into()
}

/// Redacts possible secrets in command-line arguments.
pub(super) fn redact_arguments(arguments: &[String]) -> Vec<String> {
    let mut before = "";
    let mut redacted = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let mut redact = |name: &str, value: &str| looks_secret(name, value).then(|| REDACTED.to_owned());
        let text = replace_secrets(before, argument, &mut redact, str::to_owned);
        redacted.push(text.unwrap_or_else(|| argument.clone()));
        before = argument.strip_prefix('-').filter(|option| !option.contains('=')).unwrap_or_default();
    }
    redacted
}

fn redact_url(url: &url::Url) -> String {
    let mut redacted = url.clone();
    if redacted.password().is_some() {
        let _ = redacted.set_password(Some(REDACTED));
    }
    let pair = |(name, value): (_, _)| {
        let (name, value) = (String::from(name), String::from(value));
        let value = if looks_secret(&name, &value) { REDACTED.to_owned() } else { value };
        (name, value)
    };
    let pairs: Vec<(String, String)> = url.query_pairs().map(pair).collect();
    if !pairs.is_empty() {
        redacted.query_pairs_mut().clear().extend_pairs(pairs);
    }
    redacted.into()
}

/// Converts the settings of `server` that [`describe`] returned to pairs of configuration key and text. Uses the key
/// names of `config.toml`, some of which differ from those of the `--json` output. Settings without a text are left
/// out.
pub(super) fn to_config_lines(
    server: &ServerDefinition,
    described: &Map<String, Value>,
) -> Vec<(String, String)> {
    let line = |(key, value): (&String, &Value)| {
        let (key, value) = match key.as_str() {
            "calls_at_one_time" => ("parallel_calls", to_text(value)),
            "calls_that_wait" => ("queue", to_text(value)),
            "only_tools" => ("enabled_tools", to_text(value)),
            "except_tools" => ("disabled_tools", to_text(value)),
            "lazy" => ("start", if server.start.lazy { "lazy" } else { "eager" }.to_owned()),
            "authorization" => (key.as_str(), authorization_text(server).to_owned()),
            // The only transport that is described.
            "transport" => (key.as_str(), format!("{} (deprecated)", to_text(value))),
            // A limit in `[limits]`, shared by all servers: a message may have three times `frame_kib`.
            "message_bytes" => ("limits.frame_kib", (server.limits.message_bytes_max / 3 / 1024).to_string()),
            key => (key, to_text(value)),
        };
        (key.to_owned(), value)
    };
    described.iter().map(line).filter(|(_, value)| !value.is_empty()).collect()
}

/// Describes in a few words how Lockhouse authenticates to an upstream server, such as `bearer_token`. Empty
/// for a server that is not reached over HTTP.
fn authorization_text(server: &ServerDefinition) -> &'static str {
    let Endpoint::Http(endpoint) = &server.endpoint else { return "" };
    match &endpoint.authorization {
        Authorization::OnDemand => "on demand: `lockhouse server login` if the server requires it",
        Authorization::Bearer(_) => "bearer_token",
        Authorization::OAuth(_) => "oauth, with a registered client",
        Authorization::ClientCredentials(_) => "oauth, with client credentials",
    }
}

/// Renders a value that [`describe`] returned as one line of text.
fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(to_text).collect::<Vec<_>>().join(" "),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| format!("{name} = {}", to_text(value)));
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
        let redacted = redact_arguments(&given.map(str::to_owned));
        assert_eq!(redacted.join(" "), "-y pkg --api-key *** --token=*** --root /srv/data ***");
        let parsed = url::Url::parse("https://u:hunter2@x.example/mcp?apiKey=0123456789&a=b").expect("a URL");
        assert_eq!(redact_url(&parsed), "https://u:***@x.example/mcp?apiKey=***&a=b");
    }
}
