//! Builds the settings of the worker pools, one for each language.

use std::path::PathBuf;
use std::time::Duration;

use lockhouse_engine::execution::ExecutionLimits;
use lockhouse_engine::supervisor::MissingProgram;
use lockhouse_pool::{PoolSettings, QueueLimits, ZygoteCommand};
use lockhouse_protocol::ConfinementProfile;

use super::config_toml::ConfigToml;
use super::search_paths;

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

/// Returns the settings of the pool of Python workers. Returns an error if the interpreter or the Python engine is not
/// installed.
pub(super) fn python(
    document: &ConfigToml,
    limits: &ExecutionLimits,
) -> Result<PoolSettings, MissingProgram> {
    let python = &document.python;
    let program = search_paths::python_interpreter(python.interpreter.as_deref())?;
    let extension = search_paths::installed_file(
        python.extension.as_deref(),
        "liblockhouse_python.so",
        "the Python engine",
    )?;
    let arguments = ["-I", "-B", "-c", PYTHON_ENTRY].map(str::to_owned).into_iter();
    let arguments = arguments.chain([extension.to_string_lossy().into_owned()]).collect();
    Ok(pool(document, limits, "python", program, arguments, python.preload.clone()))
}

/// Returns the settings of the pool of JavaScript workers. Returns an error if the JavaScript engine is not installed.
pub(super) fn typescript(
    document: &ConfigToml,
    limits: &ExecutionLimits,
) -> Result<PoolSettings, MissingProgram> {
    let worker = document.javascript.worker.as_deref();
    let program = search_paths::installed_file(worker, "lockhouse-worker", "the JavaScript engine")?;
    Ok(pool(document, limits, "typescript", program, Vec::new(), Vec::new()))
}

fn pool(
    document: &ConfigToml,
    limits: &ExecutionLimits,
    language: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    preload: Vec<String>,
) -> PoolSettings {
    let pool = &document.pool;
    let profile = ConfinementProfile {
        cpu_seconds: limits.cpu.as_secs(),
        memory_bytes: limits.memory_bytes,
        unprivileged_id: nix::unistd::geteuid().is_root().then_some(pool.unprivileged_id),
        preload,
        limits: limits.conversation,
    };
    PoolSettings {
        language,
        zygote: ZygoteCommand { program, arguments, profile, require_full: pool.require_full },
        idle: pool.idle as usize,
        running_max: pool.running as usize,
        queue: QueueLimits { all: pool.queue as usize, of_one: pool.queue_per_client as usize },
        recycle_after: pool.recycle_after,
        recycle_age: Duration::from_secs(pool.recycle_seconds.into()),
    }
}
