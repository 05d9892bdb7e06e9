//! Compiles the seccomp filters of sandboxed upstream servers, with the compiler of the worker's filters. All system calls
//! that no rule names are allowed.
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

#[path = "../../worker/seccomp/compiler.rs"]
#[allow(dead_code, reason = "the filters of workers need more of it")]
mod compiler;

use std::path::Path;

use compiler::{ARCHITECTURES, Fallible, Filters};
use serde_json::json;

/// The programs, each with the files of `seccomp/` that have its rules.
const PROGRAMS: [(&str, &[&str]); 4] = [
    ("no_sockets", &["socket_pairs", "no_sockets"]),
    ("internet_sockets", &["socket_pairs", "internet_sockets"]),
    ("processes", &["processes"]),
    ("processes_without_user_namespaces", &["processes", "user_namespaces"]),
];

fn main() -> Fallible<()> {
    println!("cargo::rerun-if-changed=seccomp");
    let out = std::env::var("OUT_DIR")?;
    println!("cargo::rustc-env=LOCKHOUSE_SECCOMP_PROGRAMS={out}/{}", std::env::var("CARGO_CFG_TARGET_ARCH")?);
    for target in ARCHITECTURES {
        let directory = Path::new(&out).join(target.0);
        std::fs::create_dir_all(&directory)?;
        for (name, files) in PROGRAMS {
            let mut filters = Filters::new();
            for file in files {
                filters.extend(compiler::read("seccomp", file)?);
            }
            let program = compiler::program(target, &filters, &json!({"errno": 38}), &json!("allow"))?;
            std::fs::write(directory.join(format!("{name}.bpf")), compiler::bytes(&program))?;
        }
    }
    Ok(())
}
