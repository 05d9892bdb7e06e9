//! Builds the settings of the worker pools: one for each language, and one for Python with packages.

use std::path::PathBuf;
use std::time::Duration;

use lockhouse_engine::execution::ExecutionLimits;
use lockhouse_engine::supervisor::{MissingProgram, PackageSettings, WorkerKind};
use lockhouse_pool::{PoolSettings, QueueLimits, ZygoteCommand};
use lockhouse_protocol::{PythonPackages, SandboxProfile};

use super::config_toml::ConfigToml;
use super::module_name::ModuleName;
use super::{python_environment, search_paths};

/// The Python program that a zygote runs: it loads Lockhouse's extension module by the module's path. The option `-I`
/// isolates the interpreter from the user's environment.
const PYTHON_ENTRY: &str = "\
import sys
if sys.version_info < (3, 10): sys.exit('Python %d.%d is too old: Lockhouse needs 3.10 or later' % sys.version_info[:2])
from importlib import machinery, util
loader = machinery.ExtensionFileLoader('_lockhouse', sys.argv[1])
sys.argv, sys.orig_argv = [''], ['']
module = util.module_from_spec(util.spec_from_loader('_lockhouse', loader))
loader.exec_module(module)
sys.modules['_lockhouse'] = module
module.zygote()
";

/// The number of idle workers with packages that are kept ready once the packages are loaded. Each shares the memory of
/// the packages, but a fork of a large process takes milliseconds.
const PACKAGES_IDLE: usize = 1;

/// Returns the settings of the pool of Python workers without packages. Returns an error if the interpreter or the Python engine is not
/// installed.
pub(super) fn python(
    document: &ConfigToml,
    limits: &ExecutionLimits,
    packages: Option<&PackageSettings>,
) -> Result<PoolSettings, MissingProgram> {
    let program = search_paths::python_interpreter(document.python.interpreter.as_deref())?;
    let modules = packages.map(|packages| packages.modules.iter().cloned().collect());
    python_pool(document, limits, program, PythonPackages::Elsewhere(modules.unwrap_or_default()))
}

/// Returns the settings of the pool of Python workers with packages. `None` if the configuration names no packages.
pub(super) fn python_packages(document: &ConfigToml, limits: &ExecutionLimits) -> Option<PackageSettings> {
    let python = &document.python;
    if python.packages.is_empty() {
        return None;
    }
    let environment = python_environment::environment_in_use(python.environment.as_deref());
    let modules = python_environment::importable_modules(environment.as_deref(), &python.packages);
    let program = environment.unwrap_or_default().join("bin/python");
    let pool = match program.is_file() {
        true => {
            let names = python.packages.iter().map(|package| package.as_str().to_owned()).collect();
            let memory_mib = python.packages_memory_mib.map(|mib| u64::from(mib) * 1024 * 1024);
            let limits =
                ExecutionLimits { memory_bytes: memory_mib.unwrap_or(limits.memory_bytes), ..*limits };
            python_pool(document, &limits, program, PythonPackages::Loaded(names)).map(|pool| PoolSettings {
                language: WorkerKind::PythonPackages.as_str(),
                idle: PACKAGES_IDLE,
                unused_max: Some(Duration::from_secs(python.packages_idle_seconds.into())),
                ..pool
            })
        }
        false => Err(MissingProgram {
            what: "the environment with the packages of [python]",
            looked_at: vec![program],
            advice: "Install the packages with: lockhouse python lock",
        }),
    };
    let names = python.packages.iter().map(|package| package.name().to_owned()).collect();
    Some(PackageSettings { pool, names, modules })
}

fn python_pool(
    document: &ConfigToml,
    limits: &ExecutionLimits,
    program: PathBuf,
    packages: PythonPackages,
) -> Result<PoolSettings, MissingProgram> {
    let python = &document.python;
    let extension = search_paths::installed_file(
        python.extension.as_deref(),
        "liblockhouse_python.so",
        "the Python engine",
    )?;
    let arguments = ["-I", "-B", "-c", PYTHON_ENTRY].map(str::to_owned).into_iter();
    let arguments = arguments.chain([extension.to_string_lossy().into_owned()]).collect();
    let pool = pool(document, limits, WorkerKind::Python, program, arguments);
    let denied_modules = names_of(&python.denied_modules);
    let profile =
        SandboxProfile { preload: python.preload.clone(), packages, denied_modules, ..pool.zygote.profile };
    Ok(PoolSettings { zygote: ZygoteCommand { profile, ..pool.zygote }, ..pool })
}

/// Returns the settings of the pool of JavaScript workers. Returns an error if the JavaScript engine is not installed.
pub(super) fn typescript(
    document: &ConfigToml,
    limits: &ExecutionLimits,
) -> Result<PoolSettings, MissingProgram> {
    let worker = document.javascript.worker.as_deref();
    let program = search_paths::installed_file(worker, "lockhouse-worker", "the JavaScript engine")?;
    let pool = pool(document, limits, WorkerKind::Typescript, program, Vec::new());
    let denied_modules = names_of(&document.javascript.denied_modules);
    let profile = SandboxProfile { denied_modules, ..pool.zygote.profile };
    Ok(PoolSettings { zygote: ZygoteCommand { profile, ..pool.zygote }, ..pool })
}

/// Returns the user as whom workers run. `None` if they run as the user of this process, because that is not root.
pub(super) fn user_of_workers(document: &ConfigToml) -> Option<u32> {
    nix::unistd::geteuid().is_root().then_some(document.pool.unprivileged_id)
}

fn names_of(modules: &[ModuleName]) -> Vec<String> {
    modules.iter().map(|name| name.as_str().to_owned()).collect()
}

fn pool(
    document: &ConfigToml,
    limits: &ExecutionLimits,
    kind: WorkerKind,
    program: PathBuf,
    arguments: Vec<String>,
) -> PoolSettings {
    let pool = &document.pool;
    let profile = SandboxProfile {
        cpu_seconds: limits.cpu.as_secs(),
        memory_bytes: limits.memory_bytes,
        unprivileged_id: user_of_workers(document),
        preload: Vec::new(),
        packages: PythonPackages::none(),
        denied_modules: Vec::new(),
        limits: limits.conversation,
    };
    PoolSettings {
        language: kind.as_str(),
        zygote: ZygoteCommand { program, arguments, profile, require_full: pool.require_full },
        idle: pool.idle as usize,
        running_max: pool.running as usize,
        queue: QueueLimits { all: pool.queue as usize, of_one: pool.queue_per_client as usize },
        recycle_after: pool.recycle_after,
        recycle_age: Duration::from_secs(pool.recycle_seconds.into()),
        unused_max: None,
    }
}
