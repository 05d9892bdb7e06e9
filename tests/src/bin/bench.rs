//! `make bench`: measures times at the MCP boundary, as an AI client sees them, with the built `lockhouse serve`.
//!
//! `bench [--beside BINARY | --sink] [--only TEXT | --large]`. The client writes and reads JSON lines without a library, so that its own cost stays
//! small. All figures of a table come from one run on one machine; compare them with each other, and compare
//! machines only by ratios. The rows that `bench-gateway` can serve, a gateway without any checks, are measured with it in
//! turns, and have the ratio of both times. With `--beside`, an older build is measured in turns, too;
//! with `--sink`, the same build without and with an audit sink in a process of its own.

#![allow(clippy::print_stdout, reason = "it prints a table")]

#[path = "../bench/audit_sink.rs"]
mod audit_sink;
#[path = "../bench/build.rs"]
mod build;
#[path = "../bench/build_comparison.rs"]
mod build_comparison;
#[path = "../bench/client.rs"]
mod client;
#[path = "../bench/cpu_time.rs"]
mod cpu_time;
#[path = "../bench/gateway.rs"]
mod gateway;
#[path = "../bench/large_results.rs"]
mod large_results;
#[path = "../bench/percentiles.rs"]
mod percentiles;
#[path = "../bench/single_build.rs"]
mod single_build;
#[path = "../bench/workloads.rs"]
mod workloads;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use audit_sink::AuditSink;
use build::Build;
use clap::Parser;
use gateway::Gateway;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Measures times at the MCP boundary, with the built `lockhouse` or the one that LOCKHOUSE_BIN names.
#[derive(Debug, Parser)]
struct Arguments {
    /// An older build of `lockhouse`, with its worker and its Python engine in the same directory: both builds are
    /// measured in alternation, and the table has the ratios
    #[arg(long, value_name = "BINARY")]
    beside: Option<PathBuf>,
    /// Measures this build without ("old") and with ("new") an audit sink in a process of its own, in alternation
    #[arg(long, conflicts_with = "beside")]
    sink: bool,
    /// Measures only the rows whose name has this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Measures calls with results of 59 MB instead
    #[arg(long, conflicts_with_all = ["only", "sink"])]
    large: bool,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Fallible<()> {
    let directory = std::env::current_exe()?.parent().map(Path::to_owned).ok_or("no directory")?;
    let lockhouse =
        std::env::var_os("LOCKHOUSE_BIN").map_or_else(|| directory.join("lockhouse"), PathBuf::from);
    if arguments.large {
        let old = arguments.beside.iter().map(|old| Build::at(old, &directory, large_results::LIMITS));
        let new = std::iter::once_with(|| Build::at(&lockhouse, &directory, large_results::LIMITS));
        return large_results::measure(&old.chain(new).collect::<Fallible<Vec<_>>>()?);
    }
    let new = Build::at(&lockhouse, &directory, "")?;
    let gateway = Gateway::with_engines_of(&new, &directory)?;
    if arguments.sink {
        let sink = AuditSink::start(&lockhouse)?;
        let with_sink = Build::at(&lockhouse, &directory, &sink.configuration())?;
        return build_comparison::measure(&new, &with_sink, &gateway, &arguments.only);
    }
    match &arguments.beside {
        None => single_build::measure(&new, &gateway, &arguments.only),
        Some(old) => {
            build_comparison::measure(&Build::at(old, &directory, "")?, &new, &gateway, &arguments.only)
        }
    }
}
