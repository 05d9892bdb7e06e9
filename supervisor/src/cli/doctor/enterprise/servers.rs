//! The checks of the upstream servers in the configuration.

use lockhouse_config::Configuration;
use lockhouse_policies::OnChange;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerSandbox};

use crate::cli::doctor::checklist::{Check, Outcome};

pub(super) fn checks(configuration: &Configuration) -> Vec<Check> {
    let servers = &configuration.settings.engine.servers;
    let names = |is_found: &dyn Fn(&ServerName, &ServerDefinition) -> bool| -> Vec<String> {
        let found = servers.iter().filter(|(name, server)| is_found(name, server));
        found.map(|(name, _)| name.to_string()).collect()
    };
    let has_no_sandbox = |_: &ServerName, server: &ServerDefinition| {
        ServerSandbox::of(&server.endpoint) == Some(ServerSandbox::None)
    };
    let only_warns = |name: &ServerName, server: &ServerDefinition| {
        configuration.policy.on_change(name, None).unwrap_or(server.on_change) == OnChange::Warn
    };
    let check = |id, title, found: &[String], fix| Check {
        id,
        title,
        outcome: Outcome::none_of(found, &format!("servers checked: {}", servers.len()), fix),
    };
    vec![
        check(
            "server_rights",
            "each server has a sandbox, or an account of its own",
            &names(&has_no_sandbox),
            "add sandbox = { profile = \"default\" } to its table, or make it a service (docs/managed-host.md)",
        ),
        check(
            "tool_pins",
            "a tool that has changed waits for a person",
            &names(&only_warns),
            "add on_change = \"ask\" to [servers.\"*\"] of the requirements",
        ),
        check(
            "secret_arguments",
            "no server has a secret in its arguments",
            &names(&|_, server| server.has_secret_arguments),
            "pass it in env: every account can read the arguments of a process",
        ),
        check(
            "transports",
            "no server uses the deprecated HTTP+SSE",
            &names(&|_, server| server.endpoint.uses_sse()),
            "ask its vendor for the URL of streamable HTTP",
        ),
    ]
}
