//! `lockhouse confine`: what the process of a server with `sandbox` begins as.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_upstream::{Confinement, become_confined};

use super::{UNAVAILABLE, complain};

/// What the program may do, and the program.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[arg(long)]
    read: Vec<PathBuf>,
    #[arg(long)]
    write: Vec<PathBuf>,
    #[arg(long)]
    network: bool,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the program, or says why not.
pub(super) fn confine(arguments: Arguments) -> ExitCode {
    let Arguments { read, write, network, command } = arguments;
    let (program, arguments) =
        command.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
    complain(&become_confined(&Confinement { read, write, network }, &program, arguments), UNAVAILABLE)
}
