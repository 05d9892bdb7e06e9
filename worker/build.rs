//! Compiles data of the worker into the form in which the binary contains it: the seccomp filters, and the JavaScript code
//! of the engine.
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

#[path = "seccomp/compile_filters.rs"]
mod compile_filters;
#[path = "src/javascript/compile_parts.rs"]
mod compile_parts;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::var("OUT_DIR")?;
    compile_filters::compile(out.as_ref())?;
    compile_parts::compile(out.as_ref())
}
