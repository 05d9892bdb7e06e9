//! Compiles the JavaScript code of the engine into the form in which the binary contains it.
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

#[path = "src/javascript/compile_parts.rs"]
mod compile_parts;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    compile_parts::compile(std::env::var("OUT_DIR")?.as_ref())
}
