//! A QuickJS context with the global scope of programs.

use std::cell::RefCell;
use std::ffi::CStr;
use std::rc::Rc;

use lockhouse_worker::signals;
use rquickjs::{Context, Ctx, Function, Module, Object, Persistent, Result, Runtime, Value};

use super::native_functions;
use super::shared_state::SharedState;

/// Includes the bytecode of the named source files, which the build script compiles (`compile_parts.rs`).
macro_rules! bytecode {
    ($($name:literal),* $(,)?) => {
        [$(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytecode")) as &[u8]),*]
    };
}

/// JavaScript source files that build the global scope of programs, as bytecode. A file comes after those that it depends
/// on.
const PARTS: [&[u8]; 22] = bytecode![
    "decoded",
    "values",
    "results",
    "requests",
    "servers",
    "tools",
    "skills",
    "standard_modules",
    "buffer",
    "files",
    "host_files",
    "server_files",
    "file_functions",
    "paths",
    "crypto",
    "url",
    "intl",
    "denied_modules",
    "error_hints",
    "undefined_values",
    "console",
    "web",
];

/// Maximum size in bytes of the C stack that QuickJS uses. The rest of the usual 8 MiB is for oxc and native functions.
const STACK_BYTES: usize = 1024 * 1024;

/// Maximum number of entries in [`Rejections`]; further rejected promises are ignored.
const REJECTIONS_MAX: usize = 64;

/// Promises that were rejected and have no handler, each with the reason of its rejection.
pub(super) type Rejections = Rc<RefCell<Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>>>;

/// Creates a QuickJS runtime that allocates at most `memory_bytes` bytes, uses at most [`STACK_BYTES`] of the C stack,
/// and stops code when an interrupt signal has arrived. Also returns the list to which the runtime adds rejected
/// promises without a handler.
///
/// # Errors
/// There is too little memory.
pub(super) fn runtime(memory_bytes: u64) -> Result<(Runtime, Rejections)> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(usize::try_from(memory_bytes).unwrap_or(usize::MAX));
    runtime.set_max_stack_size(STACK_BYTES);
    runtime.set_interrupt_handler(Some(Box::new(|| signals::pending().is_some())));
    let rejections = Rejections::default();
    let tracked = Rc::clone(&rejections);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
        let mut tracked = tracked.borrow_mut();
        if is_handled {
            tracked.retain(|(other, _)| other.clone().restore(&ctx).is_ok_and(|other| other != promise));
        } else if tracked.len() < REJECTIONS_MAX {
            tracked.push((Persistent::save(&ctx, promise), Persistent::save(&ctx, reason)));
        }
    })));
    Ok((runtime, rejections))
}

/// A QuickJS context with the global scope of programs, and the JavaScript functions that the engine calls.
pub(super) struct Realm {
    context: Context,
    functions: Persistent<Object<'static>>,
    pub(super) shared: Rc<SharedState>,
}

impl Realm {
    /// Creates a context and builds the global scope of programs in it.
    ///
    /// # Errors
    /// There is too little memory.
    pub(super) fn new(runtime: &Runtime) -> Result<Self> {
        let context = Context::full(runtime)?;
        let shared = SharedState::new();
        let functions = context.with(|ctx| -> Result<_> {
            let natives = native_functions::create(&ctx, &shared)?;
            let functions = Object::new(ctx.clone())?;
            for bytecode in PARTS {
                load(&ctx, bytecode)?.call::<_, ()>((natives.clone(), functions.clone()))?;
            }
            Ok(Persistent::save(&ctx, functions))
        })?;
        Ok(Self { context, functions, shared })
    }

    /// Makes imports of these modules fail in programs.
    ///
    /// # Errors
    /// There is too little memory.
    pub(super) fn deny_modules(&self, names: &[String]) -> Result<()> {
        self.with(|_, functions| functions.get::<_, Function>("denyModules")?.call((names.to_vec(),)))
    }

    /// Enters the context, and calls `body` with the object of the engine's JavaScript functions.
    ///
    /// # Errors
    /// The errors of `body`.
    pub(super) fn with<R, E: From<rquickjs::Error>>(
        &self,
        body: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.context.with(|ctx| body(&ctx, &self.functions.clone().restore(&ctx)?))
    }
}

/// Loads a source file from its bytecode, and returns its function.
#[allow(unsafe_code, reason = "QuickJS trusts bytecode")]
fn load<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Function<'js>> {
    // SAFETY: the build script has written the bytecode with the same version of QuickJS, and it is part of this binary.
    let module = unsafe { Module::load(ctx.clone(), bytecode) }?;
    let (module, evaluated) = module.eval()?;
    evaluated.finish::<()>()?;
    module.get("default")
}

/// Returns the version of QuickJS-NG.
#[allow(unsafe_code, reason = "The binding is generated and says so of every function")]
pub(super) fn version() -> String {
    // SAFETY: it takes nothing and gives a string literal, which ends with NUL and lives as long as the process.
    let version = unsafe { CStr::from_ptr(rquickjs::qjs::JS_GetVersion()) };
    version.to_string_lossy().into_owned()
}
