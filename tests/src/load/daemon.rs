//! A `lockhouse serve --listen` process for load tests, and tokens for its clients.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use lockhouse_tests::Lockhouse;

use super::Fallible;
use super::stream::TLS;

/// A child process that is killed when this is dropped.
pub(crate) struct KilledChild(pub(crate) Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `lockhouse serve --listen` process.
pub(crate) struct Daemon {
    pub(crate) process: KilledChild,
    pub(crate) host: String,
}

impl Daemon {
    /// Starts a `lockhouse serve --listen` process and waits until it listens. `host` begins with [`TLS`] if it speaks TLS.
    pub(crate) fn start(lockhouse: &Lockhouse) -> Fallible<Self> {
        let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut log = BufReader::new(process.stderr.take().ok_or("no log")?).lines();
        let reported = log.by_ref().map_while(Result::ok);
        let host = reported.inspect(|line| eprintln!("{line}")).find_map(|line| {
            let (_, url) = line.split_once("listening at http")?;
            let (scheme, address) = url.split_once("://")?;
            let address = address.split('/').next()?;
            Some(if scheme == "s" { format!("{TLS}{address}") } else { address.to_owned() })
        });
        // Reads and discards the rest of the log, so that the daemon never blocks on a full pipe.
        std::thread::spawn(move || log.map_while(Result::ok).for_each(drop));
        Ok(Self { process: KilledChild(process), host: host.ok_or("it does not listen")? })
    }
}

/// Creates a bearer token for the AI client `name`.
pub(crate) fn token(lockhouse: &Lockhouse, name: &str) -> Fallible<String> {
    let made = lockhouse.command(&["token", "create", name]).output()?;
    let reported = String::from_utf8_lossy(&made.stderr).into_owned();
    let token = String::from_utf8(made.stdout)?.trim().to_owned();
    if made.status.success() && !token.is_empty() { Ok(token) } else { Err(reported.into()) }
}
