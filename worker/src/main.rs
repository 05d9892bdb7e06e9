//! `lockhouse-worker`: the zygote of the language engine for JavaScript and TypeScript. The supervisor starts this
//! program with the socket between them as standard input.

mod javascript;

use std::process::ExitCode;

use lockhouse_sandbox::Layers;

fn main() -> ExitCode {
    match lockhouse_worker::zygote::run(&mut javascript::JavaScript::new(), Layers::ALL) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockhouse-worker: {error}");
            ExitCode::FAILURE
        }
    }
}
