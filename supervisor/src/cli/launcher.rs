//! `lockhouse launcher`: starts upstream servers in the session of this person, for the engine of the system. The thin process
//! of each AI client starts one, and all but the first end at once.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;

use lockhouse_base::directories;
use lockhouse_base::own_places::OwnPlaces;
use lockhouse_config::{SystemEngine, secrets_directory};
use lockhouse_host_files::answer_requests;
use lockhouse_upstream::{StoragePaths, launch_servers, process_guard};
use tokio::net::UnixStream;

use super::engine_socket::LAUNCHER_SOCKET;
use super::{UNAVAILABLE, USAGE, client_sandbox, print_error, system_engine};

/// Options of `lockhouse launcher`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Continue as a process of its own session, whose parent is not the client
    #[arg(long)]
    detach: bool,
}

impl Arguments {
    pub(super) fn detaches(&self) -> bool {
        self.detach
    }
}

/// Starts a launcher that survives this process and its AI client.
pub(super) fn start() {
    let mut launcher = tokio::process::Command::new("/proc/self/exe");
    launcher.arg0("lockhouse").args(["launcher", "--detach"]).current_dir("/");
    launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Servers in the session of this person are not available without it, and the engine says so.
    let _ = launcher.spawn().inspect_err(|error| tracing::warn!("the launcher cannot be started: {error}"));
}

/// Starts servers until the engine needs no further one, and all of them have ended.
pub(super) async fn launcher() -> ExitCode {
    let engine = match SystemEngine::of_this_account() {
        Ok(Some(engine)) => engine,
        Ok(None) => {
            eprintln!("lockhouse: no engine of the system starts servers in the session of this account");
            return ExitCode::from(USAGE);
        }
        Err(error) => return print_error(&error, USAGE),
    };
    if let Some(reason) = client_sandbox::find().await {
        eprintln!(
            "lockhouse: this process may run in a sandbox ({reason}), in which servers of others would be, too"
        );
        return ExitCode::from(UNAVAILABLE);
    }
    let connect = async || {
        let stream = system_engine::connect(&engine.directory(), LAUNCHER_SOCKET).await;
        unix_stream(stream.map_err(io::Error::other)?)
    };
    let ended = launch_servers(connect, &places(), std::env::home_dir().as_deref()).await;
    process_guard::release();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

fn unix_stream(stream: interprocess::local_socket::tokio::Stream) -> io::Result<UnixStream> {
    let interprocess::local_socket::tokio::Stream::UdSocket(stream) = stream;
    let stream = OwnedFd::try_from(stream).map_err(io::Error::other)?;
    UnixStream::from_std(stream.into())
}

/// Answers the requests of the engine for files of this person.
pub(super) fn file_helper() -> ExitCode {
    match answer_requests(io::stdin().lock(), io::stdout().lock(), own_places()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

/// Returns the places of this person that servers use, and those of Lockhouse's own files, which no sandbox grants.
fn places() -> StoragePaths {
    let own = Arc::new(own_places());
    StoragePaths { state_dir: directories::state(), own, ..StoragePaths::default() }
}

/// Returns the places of Lockhouse's own files of this person.
fn own_places() -> OwnPlaces {
    let own = [directories::configuration(), directories::state(), directories::cache(), directories::logs()];
    let folders = own.into_iter().chain([secrets_directory()]).flatten();
    let folders = folders.chain([PathBuf::from("/etc/lockhouse")]).collect();
    OwnPlaces { folders, ..OwnPlaces::default() }
}
