//! The Python interpreter as an [`Engine`].
#![allow(
    unsafe_code,
    reason = "CPython's own functions around fork and for compiled modules are C functions, and nix cannot read a sigaction"
)]

use std::ffi::CString;

use lockhouse_protocol::{CodeError, Job, LoadedPackage, Outcome, PythonPackages, SandboxProfile};
use lockhouse_sandbox::Sandboxed;
use lockhouse_worker::engine::{Engine, EngineError, PreparedEngine};
use lockhouse_worker::program_text::program;
use lockhouse_worker::tool_host::ToolHost;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyModule, PyString};

use crate::{native, recipes};

/// The embedded Python module that is executed first: it imports the standard modules, and compiles the modules in
/// [`MODULES`].
const STANDARD_MODULES: &str = include_str!("../lib/standard_modules.py");

/// Embedded Python modules, in an order in which each one imports only earlier ones.
const MODULES: [(&str, &str); 40] = [
    ("lockhouse_values", include_str!("../lib/values.py")),
    ("lockhouse_decoded", include_str!("../lib/decoded.py")),
    ("lockhouse_results", include_str!("../lib/results.py")),
    ("lockhouse_streams", include_str!("../lib/streams.py")),
    ("lockhouse_sources", include_str!("../lib/sources.py")),
    ("lockhouse_calls", include_str!("../lib/calls.py")),
    ("lockhouse_resources", include_str!("../lib/resources.py")),
    ("lockhouse_signatures", include_str!("../lib/signatures.py")),
    ("lockhouse_servers", include_str!("../lib/servers.py")),
    ("mcp_tools", include_str!("../lib/mcp_tools.py")),
    ("mcp_tools.aio", include_str!("../lib/aio.py")),
    ("lockhouse_dialects", include_str!("../lib/dialects.py")),
    ("skills", include_str!("../lib/skills.py")),
    ("lockhouse_skill_source", include_str!("../lib/skill_source.py")),
    ("lockhouse_final_value", include_str!("../lib/final_value.py")),
    ("lockhouse_check", include_str!("../lib/check.py")),
    ("lockhouse_files_nodes", include_str!("../lib/files/nodes.py")),
    ("lockhouse_files_store", include_str!("../lib/files/store.py")),
    ("lockhouse_files_host", include_str!("../lib/files/host.py")),
    ("lockhouse_files_open", include_str!("../lib/files/open.py")),
    ("lockhouse_files_status", include_str!("../lib/files/status.py")),
    ("lockhouse_files_os", include_str!("../lib/files/os_functions.py")),
    ("lockhouse_files_descriptors", include_str!("../lib/files/descriptors.py")),
    ("lockhouse_files_databases", include_str!("../lib/files/databases.py")),
    ("lockhouse_files", include_str!("../lib/files/files.py")),
    ("lockhouse_host_files", include_str!("../lib/host_files.py")),
    ("lockhouse_server_files", include_str!("../lib/server_files.py")),
    ("lockhouse_refusals", include_str!("../lib/refusals.py")),
    ("lockhouse_excerpts", include_str!("../lib/excerpts.py")),
    ("lockhouse_expressions", include_str!("../lib/expressions.py")),
    ("lockhouse_hints_syntax", include_str!("../lib/hints_syntax.py")),
    ("lockhouse_hints_packages", include_str!("../lib/hints_packages.py")),
    ("lockhouse_hints_async", include_str!("../lib/hints_async.py")),
    ("lockhouse_hints_names", include_str!("../lib/hints_names.py")),
    ("lockhouse_hints_values", include_str!("../lib/hints_values.py")),
    ("lockhouse_hints", include_str!("../lib/hints.py")),
    ("lockhouse_errors", include_str!("../lib/errors.py")),
    ("lockhouse_preload", include_str!("../lib/preload.py")),
    ("lockhouse_denied_modules", include_str!("../lib/denied_modules.py")),
    ("lockhouse_runner", include_str!("../lib/runner.py")),
];
/// Embedded Python modules that only zygotes with packages execute, in an order in which each one imports only earlier ones.
const PACKAGE_MODULES: [(&str, &str); 4] = [
    ("lockhouse_shown_images", include_str!("../lib/shown_images.py")),
    ("lockhouse_path_arguments", include_str!("../lib/path_arguments.py")),
    ("lockhouse_module_memory", include_str!("../lib/module_memory.py")),
    ("lockhouse_packages", include_str!("../lib/packages.py")),
];
const RUNNER: &str = "lockhouse_runner";

/// Runs Python programs through the embedded `runner` module.
pub(crate) struct PythonEngine {
    runner: Py<PyModule>,
    /// Whether packages were preloaded that may have registered functions to be called around a fork.
    needs_fork_hooks: bool,
    /// The handlers of the interpreter for the signals that interrupt code.
    signal_actions: Vec<(i32, libc::sigaction)>,
}

impl PythonEngine {
    /// Creates the engine: loads the standard modules and the embedded modules.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let sources = MODULES.map(|(name, source)| (file_of(name), source));
        let first = (CString::new(STANDARD_MODULES)?, CString::new(file_of("standard_modules"))?);
        let first = PyModule::from_code(py, &first.0, &first.1, c"lockhouse_standard_modules")?;
        let compiled = first.call_method1("import_and_compile", (sources.to_vec(),))?;
        for ((name, _), code) in MODULES.iter().zip(compiled.cast_into::<PyList>()?) {
            execute_module(name, &code)?;
        }
        let runner = py.import(RUNNER)?.unbind();
        Ok(Self { runner, needs_fork_hooks: true, signal_actions: Vec::new() })
    }

    /// Loads the modules and packages of the profile. Without any, executes nothing of what packages need.
    fn preload(&mut self, py: Python<'_>, profile: &SandboxProfile) -> PyResult<PreparedEngine> {
        let (packages, elsewhere) = match &profile.packages {
            PythonPackages::Loaded(packages) => (packages.clone(), Vec::new()),
            PythonPackages::Elsewhere(modules) => (Vec::new(), modules.clone()),
        };
        self.needs_fork_hooks = !profile.preload.is_empty() || !packages.is_empty();
        let recipes = PyDict::new(py);
        if self.needs_fork_hooks {
            for (name, source) in PACKAGE_MODULES {
                let (source, file, name) =
                    (CString::new(source)?, CString::new(file_of(name))?, CString::new(name)?);
                PyModule::from_code(py, &source, &file, &name)?;
            }
            recipes::ALL.iter().try_for_each(|(name, source)| recipes.set_item(name, source))?;
        }
        let arguments =
            (profile.preload.clone(), packages, recipes, elsewhere, profile.denied_modules.clone());
        let prepared = self.runner.bind(py).call_method1("preload", arguments)?;
        let (runtime, loaded): (String, Vec<(String, String, u64, u64)>) = prepared.extract()?;
        let package =
            |(name, version, memory_kib, import_ms)| LoadedPackage { name, version, memory_kib, import_ms };
        Ok(PreparedEngine { runtime, packages: loaded.into_iter().map(package).collect() })
    }

    fn call(&self, function: &str) {
        // Errors are ignored, since they must not end the worker here. They occur again, with a message, when code
        // runs.
        let _ = Python::attach(|py| self.runner.bind(py).call_method0(function).map(Bound::unbind));
    }
}

/// Returns the file name of an embedded module in tracebacks.
fn file_of(module: &str) -> String {
    format!("<lockhouse>/{module}.py")
}

/// Creates the Python module `name` by executing its compiled code.
fn execute_module(name: &str, code: &Bound<'_, PyAny>) -> PyResult<()> {
    let (file, name) = (CString::new(file_of(name))?, CString::new(name)?);
    // SAFETY: the interpreter is attached, and all three arguments live until the call returns.
    let module = unsafe { ffi::PyImport_ExecCodeModuleEx(name.as_ptr(), code.as_ptr(), file.as_ptr()) };
    // SAFETY: the call returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(code.py(), module) }.map(drop)
}

impl Engine for PythonEngine {
    fn prepare(&mut self, profile: &SandboxProfile) -> Result<PreparedEngine, EngineError> {
        let prepared = Python::attach(|py| self.preload(py, profile)).map_err(EngineError::new)?;
        let signals = [libc::SIGINT, libc::SIGXCPU];
        self.signal_actions = signals.map(|signal| (signal, signal_action(signal))).into();
        Ok(prepared)
    }

    fn before_fork(&mut self) {
        if self.needs_fork_hooks {
            // SAFETY: called by the one thread, which holds the interpreter; the other two follow in parent and child.
            unsafe { ffi::PyOS_BeforeFork() };
        }
    }

    fn after_fork_in_zygote(&mut self) {
        if self.needs_fork_hooks {
            // SAFETY: follows PyOS_BeforeFork.
            unsafe { ffi::PyOS_AfterFork_Parent() };
        }
    }

    /// Restores the interpreter's signal handlers, and reseeds random number generators. Calls the fork hooks of the
    /// interpreter and of the modules only if packages were preloaded. The hooks of the standard modules reset locks
    /// that other threads may have held, and delete the state of other threads; but the zygote has one thread and holds
    /// no lock. Their only needed effects are the seeds of `random` and the stored id of the main thread, which the
    /// runner sets. The hooks also write to many memory pages, and the kernel copies each of these pages.
    fn after_fork(&mut self) {
        if self.needs_fork_hooks {
            // SAFETY: follows PyOS_BeforeFork, in the child.
            unsafe { ffi::PyOS_AfterFork_Child() };
        }
        for (signal, action) in &self.signal_actions {
            // SAFETY: the handlers are those that the interpreter installed in the zygote.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        self.call("after_fork");
    }

    /// Connects the Python library to the supervisor. `memory_bytes` limits only the files in memory, because Python
    /// has no memory limit of its own: the resource limits of the process apply.
    fn attach(&mut self, _sandboxed: &Sandboxed, host: &'static dyn ToolHost, memory_bytes: u64) {
        native::connect(host, memory_bytes);
    }

    fn warm(&mut self, _sandboxed: &Sandboxed) {
        self.call("warm");
    }

    fn run(&mut self, _sandboxed: &Sandboxed, job: &Job) -> Outcome {
        let servers: Vec<&str> = job.servers.iter().map(|server| server.as_str()).collect();
        let code = program(&job.code);
        let outcome = Python::attach(|py| {
            let tools = PyString::from_bytes(py, &job.tools)?;
            let files = PyString::from_bytes(py, &job.files)?;
            let left_out = PyString::from_bytes(py, &job.left_out)?;
            let arguments = (&*code, servers, job.session, job.check_only, tools, files, left_out);
            outcome(&self.runner.bind(py).call_method1("run", arguments)?)
        });
        // The runner catches errors of the code. An interrupt can still arrive within the runner itself.
        outcome.unwrap_or_else(|error| {
            let kind = Python::attach(|py| error.get_type(py).name().map(|name| name.to_string()));
            let error = CodeError {
                kind: kind.unwrap_or_default(),
                message: error.to_string(),
                ..CodeError::default()
            };
            if error.kind == "ExecutionInterrupted" {
                Outcome::Interrupted(error)
            } else {
                Outcome::Error(error)
            }
        })
    }
}

/// Returns the signal action (handler and flags) that the interpreter installed for a signal.
fn signal_action(signal: i32) -> libc::sigaction {
    // SAFETY: zeros are a valid action (the default one), and the kernel fills it in.
    unsafe {
        let mut action = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action);
        action
    }
}

/// Converts the result of the Python runner to an [`Outcome`]. The result is a pair of a kind and its payload: the
/// value of the program, the advice for a program without a value, or the parts of an error.
fn outcome(pair: &Bound<'_, PyAny>) -> PyResult<Outcome> {
    let (what, payload): (String, Bound<'_, PyAny>) = pair.extract()?;
    if what == "value" {
        let json: Option<Bound<'_, PyBytes>> = payload.extract()?;
        return Ok(Outcome::Value(json.map(|json| json.as_bytes().to_vec())));
    }
    if what == "no_value" {
        return Ok(Outcome::NoValue(payload.extract()?));
    }
    let error = code_error(&payload.cast_into::<PyDict>()?)?;
    Ok(match what.as_str() {
        "interrupted" => Outcome::Interrupted(error),
        "cpu" => Outcome::CpuLimit(error),
        "memory" => Outcome::MemoryLimit(error),
        _ => Outcome::Error(error),
    })
}

fn code_error(parts: &Bound<'_, PyDict>) -> PyResult<CodeError> {
    fn part<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
        parts: &Bound<'py, PyDict>,
        name: &str,
    ) -> PyResult<Option<T>> {
        match parts.get_item(name)? {
            Some(value) if !value.is_none() => value.extract().map(Some),
            _ => Ok(None),
        }
    }
    Ok(CodeError {
        kind: part(parts, "kind")?.unwrap_or_default(),
        code: part(parts, "code")?,
        message: part(parts, "message")?.unwrap_or_default(),
        line: part(parts, "line")?,
        column: part(parts, "column")?,
        traceback: part(parts, "traceback")?,
        hint: part(parts, "hint")?,
    })
}
