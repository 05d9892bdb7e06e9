//! The Python language engine: the extension module `_lockhouse` for the `python3` of the system.
//!
//! The supervisor starts `python3 -I` with code that loads this extension and calls [`_lockhouse::zygote`]. From then
//! on Rust controls the process: zygote loop, fork, sandbox and channel. The Python modules in `worker/python/lib` are
//! embedded, because a sandboxed worker cannot open files.
#![allow(missing_docs)] // pyo3's macros make items that cannot carry any.

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
