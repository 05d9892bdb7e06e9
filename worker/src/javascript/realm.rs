//! A QuickJS context with the global scope of programs.

use std::cell::RefCell;
use std::ffi::CStr;
use std::rc::Rc;

use lockhouse_worker::signals;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Result, Runtime, Value};

use super::evaluate::evaluate;
use super::native_functions;
use super::shared_state::SharedState;

/// JavaScript source files that build the global scope of programs, each with its name in stack traces. A file comes
/// after those that it depends on.
const PARTS: [(&str, &str); 22] = [
    ("lockhouse:decoded", include_str!("decoded.js")),
    ("lockhouse:values", include_str!("values.js")),
    ("lockhouse:results", include_str!("results.js")),
    ("lockhouse:requests", include_str!("requests.js")),
    ("lockhouse:servers", include_str!("servers.js")),
    ("lockhouse:tools", include_str!("tools.js")),
    ("lockhouse:skills", include_str!("skills.js")),
    ("lockhouse:standard_modules", include_str!("standard_modules.js")),
    ("lockhouse:buffer", include_str!("buffer.js")),
    ("lockhouse:files", include_str!("files.js")),
    ("lockhouse:host_files", include_str!("host_files.js")),
    ("lockhouse:server_files", include_str!("server_files.js")),
    ("lockhouse:file_functions", include_str!("file_functions.js")),
    ("lockhouse:paths", include_str!("paths.js")),
    ("lockhouse:crypto", include_str!("crypto.js")),
    ("lockhouse:url", include_str!("url.js")),
    ("lockhouse:intl", include_str!("intl.js")),
    ("lockhouse:denied_modules", include_str!("denied_modules.js")),
    ("lockhouse:error_hints", include_str!("error_hints.js")),
    ("lockhouse:undefined_values", include_str!("undefined_values.js")),
    ("lockhouse:console", include_str!("console.js")),
    ("lockhouse:web", include_str!("web.js")),
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
            for (name, source) in PARTS {
                let part: Function = evaluate(&ctx, name, source)?;
                part.call::<_, ()>((natives.clone(), functions.clone()))?;
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

/// Returns the version of QuickJS-NG.
#[allow(unsafe_code, reason = "The binding is generated and says so of every function")]
pub(super) fn version() -> String {
    // SAFETY: it takes nothing and gives a string literal, which ends with NUL and lives as long as the process.
    let version = unsafe { CStr::from_ptr(rquickjs::qjs::JS_GetVersion()) };
    version.to_string_lossy().into_owned()
}
