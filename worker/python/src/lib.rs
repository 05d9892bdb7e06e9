//! The Python language engine: the extension module `_lockhouse` for the `python3` of the system, from 3.10 on.
//!
//! The supervisor starts `python3 -I` with code that loads this extension and calls `_lockhouse.zygote`. From then on
//! Rust controls the process: zygote loop, fork, sandbox and channel.
//!
//! # Parts
//!
//! - `engine.rs` is the interpreter as a `lockhouse_worker::engine::Engine`.
//! - `native.rs` has the functions that the Python library calls to send requests and output.
//! - `reserve.rs` keeps address space free, so that an error can still be reported at the memory limit.
//! - `recipes.rs` embeds what is special about single packages (`lib/recipes/`).
//! - `lib/` has the Python modules that programs see. They are embedded, because a sandboxed worker cannot open files.
//!   `runner.py` runs a program; `servers.py` and `calls.py` are the imports of servers and their calls; `values.py`
//!   converts values; `check.py` finds the calls to check before a run; `errors.py` and `hints*.py` report errors;
//!   `files/` are files in memory; `packages.py` and `module_memory.py` load packages before the seal and keep their
//!   other modules in memory.
//!
//! # Invariants
//!
//! - Nothing here depends on a certain version of Python: the extension uses the stable ABI alone.
//! - No module of `lib/` is a security boundary. What a program replaces there changes only what that program sees.
//! - No function of `native.rs` parses a value. Values cross as JSON text.
//!
//! # Decisions
//!
//! - A Python zygote skips CPython's fork hooks, unless packages are loaded, which may have registered hooks of their
//!   own. The hooks reset locks and states of other threads, and a zygote has one thread, which holds no lock. The seed
//!   of `random` and the number of the main thread are set in each worker.
//! - Streams, signal handlers and the specialization of code are prepared in the zygote: each memory page that a worker
//!   writes first is copied.
//! - Packages are rehearsed in a process that is thrown away, to learn what they import later; after the seal, no file
//!   can be read.
//! - Names of similar products (`tools`, `codemode`) exist only in programs that use them (`lib/dialects.py`).

mod engine;
mod native;
mod recipes;
mod reserve;

use pyo3::prelude::*;

#[pymodule]
mod _lockhouse {
    use super::*;

    #[pymodule_export]
    use crate::native::{
        call, check_calls, create_file, describe, drain, fileno, finish_file, flush, get_prompt,
        list_prompts, list_resources, list_servers, list_tools, load_result, load_skill, memory_bytes,
        open_file, read_piece, read_resource, require_memory, search, search_skills, start_call, wake_fileno,
        write, write_piece,
    };

    #[pymodule_export]
    use crate::reserve::{keep_reserve, release_reserve};

    #[pymodule_export]
    const SEARCH_LIMIT_DEFAULT: u32 = lockhouse_protocol::SEARCH_LIMIT_DEFAULT;
    #[pymodule_export]
    const SEARCH_LIMIT_MAX: u32 = lockhouse_protocol::SEARCH_LIMIT_MAX;

    /// Runs the zygote process, which forks a worker on each request of the supervisor. Returns when the
    /// supervisor closes the socket on standard input.
    #[pyfunction]
    fn zygote(py: Python<'_>) -> PyResult<()> {
        let mut engine = engine::PythonEngine::new(py)?;
        lockhouse_worker::zygote::run(&mut engine, lockhouse_sandbox::Layers::ALL)
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }
}
