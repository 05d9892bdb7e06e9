//! Checks whether the program of an upstream server exists, or whether the server's host name resolves. A missing
//! program and an unknown host name are the most common reasons why a server does not work.

use std::collections::BTreeSet;

use lockhouse_upstream::{Endpoint, NotExecutable, ServerCommand};

use crate::cli::server::redacted_definition::redact_arguments;

/// Why an upstream server cannot be started or connected to, and how to fix that.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreachable {
    #[error("{reason}. The command is in {origin}")]
    NotExecutable { reason: NotExecutable, origin: String },
    #[error("its URL has no host")]
    NoHost,
    #[error("the host name {host} cannot be resolved: {source}; correct the URL or the DNS configuration")]
    UnknownHost { host: String, source: std::io::Error },
}

/// Returns the path of the executable file that a server's command starts. `origin` says where the server is
/// configured, for the error messages.
pub(super) fn find_program(command: &ServerCommand, origin: &str) -> Result<String, Unreachable> {
    match lockhouse_upstream::find_program(command) {
        Ok(file) => Ok(file.display().to_string()),
        Err(reason) => Err(Unreachable::NotExecutable { reason, origin: origin.to_owned() }),
    }
}

/// Resolves the host name of a server's URL and returns a description of the addresses. If a proxy is configured, a
/// failure is accepted, since the proxy resolves the name.
pub(super) async fn resolve_address(url: &url::Url) -> Result<String, Unreachable> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(Unreachable::NoHost);
    };
    let proxies = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let proxy = proxies.iter().find(|name| std::env::var_os(name).is_some());
    let host = host.trim_matches(['[', ']']);
    match (tokio::net::lookup_host((host, port)).await, proxy) {
        (Ok(found), _) => {
            let found: BTreeSet<String> = found.map(|address| address.ip().to_string()).collect();
            Ok(format!("{host} is {}", found.into_iter().collect::<Vec<_>>().join(", ")))
        }
        (Err(_), Some(proxy)) => Ok(format!("{host} will be resolved by the proxy in {proxy}")),
        (Err(source), None) => Err(Unreachable::UnknownHost { host: host.to_owned(), source }),
    }
}

/// Returns advice about an upstream server that can be started or reached but does not answer as expected.
pub(super) fn advice(name: &str, reach: &Endpoint) -> String {
    match reach {
        Endpoint::Stdio(command) => {
            let words = [vec![command.program.clone()], redact_arguments(&command.arguments)].concat();
            format!(
                "run `{}` in a terminal: it should wait for input and print nothing. A server only receives \
                 a few variables of your environment; put others that it needs into its env",
                words.join(" ")
            )
        }
        Endpoint::Socket(path) => {
            format!(
                "check that the service which opens {} runs, and that it starts the server",
                path.display()
            )
        }
        Endpoint::Http(_) => {
            format!(
                "check the URL; if the server requires authentication, run `lockhouse server login {name}`"
            )
        }
    }
}
