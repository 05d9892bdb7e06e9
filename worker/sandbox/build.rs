//! Compiles the seccomp filters into the form in which the binary contains them.
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

#[path = "../seccomp/compile_filters.rs"]
mod compile_filters;
#[path = "../seccomp/compiler.rs"]
mod compiler;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rustc-env=LOCKHOUSE_ARCHITECTURE={}", std::env::var("CARGO_CFG_TARGET_ARCH")?);
    compile_filters::compile(std::env::var("OUT_DIR")?.as_ref())
}
