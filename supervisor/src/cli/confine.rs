//! `lockhouse confine`: sandboxes its own process and then executes the program of an upstream server whose
//! configuration sets `sandbox`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_upstream::{Grants, Network, exec_confined};

use super::{UNAVAILABLE, print_error};

/// The sandbox permissions of an upstream server's program, and the command line that starts the program.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[arg(long)]
    read: Vec<PathBuf>,
    #[arg(long)]
    write: Vec<PathBuf>,
    /// All sockets
    #[arg(long)]
    network: bool,
    /// Sockets of TCP and UDP
    #[arg(long, conflicts_with = "network")]
    internet: bool,
    #[arg(long)]
    user_namespaces: bool,
    /// Do not start the program on a kernel that cannot enforce the restrictions of files
    #[arg(long)]
    require_full: bool,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Enters the sandbox and replaces this process by the upstream server's program (exec). Returns only on failure.
pub(super) fn confine(arguments: Arguments) -> ExitCode {
    let Arguments { read, write, network, internet, user_namespaces, require_full, command } = arguments;
    let network = match (network, internet) {
        (true, _) => Network::All,
        (false, true) => Network::Internet,
        (false, false) => Network::None,
    };
    let (program, arguments) =
        command.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
    let grants = Grants { read, write, network, user_namespaces, requires_full: require_full };
    print_error(&exec_confined(&grants, &program, arguments), UNAVAILABLE)
}
