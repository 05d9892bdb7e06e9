//! Whether there is a program to start, or an address to connect to: what goes wrong most often, in exact words.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lockhouse_upstream::{Reach, ServerCommand};

use crate::cli::server::definition::arguments;

/// Why there is nothing to start or to connect to, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreachable {
    #[error("there is no directory {directory} to start it in; correct cwd in {origin}")]
    NoDirectory { directory: PathBuf, origin: String },
    #[error("{path} is no program that can be started; correct command in {origin}")]
    NotExecutable { path: PathBuf, origin: String },
    #[error(
        "there is no program {program:?} in PATH ({}); install it, or write its whole path in {origin}. \
         An AI client may start Lockhouse with another PATH than your shell's",
        path.to_string_lossy()
    )]
    NotInPath { program: String, path: OsString, origin: String },
    #[error("its URL has no host")]
    NoHost,
    #[error("the name {host} leads nowhere: {source}; correct the URL, or look after DNS")]
    UnknownHost { host: String, source: std::io::Error },
}

/// Which file is started.
pub(super) fn program(command: &ServerCommand, origin: &str) -> Result<String, Unreachable> {
    let origin = origin.to_owned();
    if let Some(directory) = command.directory.as_deref().filter(|directory| !directory.is_dir()) {
        return Err(Unreachable::NoDirectory { directory: directory.to_owned(), origin });
    }
    if command.program.contains('/') {
        let path = command.directory.as_deref().unwrap_or(Path::new("")).join(&command.program);
        return match runs(&path) {
            true => Ok(path.display().to_string()),
            false => Err(Unreachable::NotExecutable { path, origin }),
        };
    }
    // Where the environment of the server sets a PATH, it is that one which counts.
    let own = || std::env::var_os("PATH").unwrap_or_default();
    let path = command.environment.get("PATH").map_or_else(own, |path| path.into());
    let found = std::env::split_paths(&path).map(|directory| directory.join(&command.program)).find(runs);
    let program = || command.program.clone();
    found.map(|path| path.display().to_string()).ok_or_else(|| Unreachable::NotInPath {
        program: program(),
        path,
        origin,
    })
}

fn runs(path: &PathBuf) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Where a name leads. With a proxy it is the proxy that looks it up.
pub(super) async fn address(url: &url::Url) -> Result<String, Unreachable> {
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
        (Err(_), Some(proxy)) => Ok(format!("{host} is left to the proxy of {proxy}")),
        (Err(source), None) => Err(Unreachable::UnknownHost { host: host.to_owned(), source }),
    }
}

/// What to do where a server is there and does not do its part.
pub(super) fn advice(name: &str, reach: &Reach) -> String {
    match reach {
        Reach::Stdio(command) => {
            let words = [vec![command.program.clone()], arguments(&command.arguments)].concat();
            format!(
                "run `{}` in a terminal: it should wait for input and print nothing. Of your environment a server has \
                 a few variables alone; what else it needs belongs into its env",
                words.join(" ")
            )
        }
        Reach::Http(_) => {
            format!(
                "check the URL; where the server wants to know who you are: `lockhouse server login {name}`"
            )
        }
    }
}
