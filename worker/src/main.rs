//! `lockhouse-worker`: the zygote of the JavaScript engine. The supervisor starts it with its socket as standard
//! input.

mod javascript;

use std::process::ExitCode;

use lockhouse_worker::sandbox::Layers;

fn main() -> ExitCode {
    match lockhouse_worker::zygote::run(&mut javascript::JavaScript::new(), Layers::ALL) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockhouse-worker: {error}");
            ExitCode::FAILURE
        }
    }
}
