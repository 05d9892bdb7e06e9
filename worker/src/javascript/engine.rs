//! The JavaScript and TypeScript implementation of [`Engine`].

use std::mem::ManuallyDrop;

use lockhouse_protocol::{ExecutionId, Job, Outcome, SandboxProfile};
use lockhouse_sandbox::Sandboxed;
use lockhouse_worker::engine::{Engine, EngineError, PreparedEngine};
use lockhouse_worker::tool_host::ToolHost;
use rquickjs::{Result, Runtime};

use super::errors;
use super::realm::{self, Realm, Rejections};
use super::run_loop::Execution;

/// The memory limit divided by this number is the part for native code. Native code needs this reserve because Rust
/// aborts the process when an allocation fails, and because allocators need more than the requested size.
const NATIVE_MEMORY_FRACTION: u64 = 16;

/// Memory limit of the interpreter in the zygote, in bytes. Each worker sets its own limit.
const MEMORY_BYTES: u64 = 256 * 1024 * 1024;

/// A program that uses all parts of the engine, so that their memory pages are mapped before the first real
/// job.
const WARM_UP: &str = r#"
    import { callTool, ToolError } from "mcp_tools";
    enum Kind { A, B }
    interface Row { id: number; name?: string }
    const later = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
    const rows: Row[] = Array.from({ length: 8 }, (_, id) => ({ id, name: `row ${id}` }));
    async function main<T extends Row>(given: T[]): Promise<unknown> {
        await Promise.all([later(0), Promise.resolve(Kind.B)]);
        console.log("warm", given, new Map([[1, 2]]), JSON.parse(JSON.stringify(given)));
        try {
            throw new ToolError("warm", { code: typeof callTool as string });
        } catch (error) {
            console.error(error);
        }
        return given.filter((row) => row.id > 2).map((row) => row.name?.toUpperCase() ?? Kind.A);
    }
    await main(rows);
"#;

#[derive(Debug, thiserror::Error)]
#[error("QuickJS does not start: {0}")]
struct StartError(rquickjs::Error);

/// The language engine for JavaScript and TypeScript.
#[derive(Default)]
pub(crate) struct JavaScript {
    /// The QuickJS runtime, which workers share with the zygote by copy on write. `None` until [`Engine::prepare`] has
    /// created it.
    interpreter: Option<Interpreter>,
    host: Option<&'static dyn ToolHost>,
}

/// A QuickJS runtime with its realm. The runtime is never dropped: the kernel frees the memory when the worker ends,
/// which is faster.
struct Interpreter {
    realm: ManuallyDrop<Realm>,
    rejections: ManuallyDrop<Rejections>,
    runtime: ManuallyDrop<Runtime>,
    memory_bytes: u64,
}

impl JavaScript {
    /// Creates an engine whose interpreter is not started yet.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }
}

impl Interpreter {
    fn new(memory_bytes: u64) -> Result<Self> {
        let (runtime, rejections) = realm::runtime(memory_bytes)?;
        let realm = Realm::new(&runtime)?;
        Ok(Self {
            realm: ManuallyDrop::new(realm),
            rejections: ManuallyDrop::new(rejections),
            runtime: ManuallyDrop::new(runtime),
            memory_bytes,
        })
    }

    fn limit_memory(&mut self, memory_bytes: u64) {
        let memory_bytes = memory_bytes - memory_bytes / NATIVE_MEMORY_FRACTION;
        self.runtime.set_memory_limit(usize::try_from(memory_bytes).unwrap_or(usize::MAX));
        self.memory_bytes = memory_bytes;
    }

    /// Runs the warm-up program. Its declarations are local, so later programs cannot observe it.
    fn warm(&self) {
        let job = Job {
            execution: ExecutionId(0),
            code: WARM_UP.to_owned(),
            servers: Vec::new(),
            session: false,
            check_only: false,
            tools: Vec::new(),
            files: Vec::new(),
            left_out: Vec::new(),
        };
        let outcome = self.execution(None).run(&job);
        debug_assert!(matches!(outcome, Outcome::Value(Some(_))), "{outcome:?}");
        self.rejections.borrow_mut().clear();
        self.realm.shared.timers.take();
    }

    fn execution(&self, host: Option<&'static dyn ToolHost>) -> Execution<'_> {
        let Self { realm, rejections, runtime, memory_bytes } = self;
        Execution { realm, runtime, rejections, host, memory_bytes: *memory_bytes }
    }
}

impl Engine for JavaScript {
    /// Starts the QuickJS interpreter and runs the warm-up program, once in the zygote. Each worker reseeds the random
    /// number generator after its fork.
    fn prepare(&mut self, profile: &SandboxProfile) -> std::result::Result<PreparedEngine, EngineError> {
        let start_error = |error| EngineError::new(StartError(error));
        let interpreter = Interpreter::new(MEMORY_BYTES).map_err(start_error)?;
        if !profile.denied_modules.is_empty() {
            interpreter.realm.deny_modules(&profile.denied_modules).map_err(start_error)?;
        }
        interpreter.warm();
        // The first use looks up the function of libc, which would cost every worker more than the seed itself.
        interpreter.realm.shared.reseed();
        self.interpreter = Some(interpreter);
        Ok(format!("QuickJS-NG {}, TypeScript by oxc", realm::version()).into())
    }

    fn after_fork(&mut self) {
        if let Some(interpreter) = &self.interpreter {
            interpreter.realm.shared.reseed();
        }
    }

    fn attach(&mut self, _sandboxed: &Sandboxed, host: &'static dyn ToolHost, memory_bytes: u64) {
        if let Some(interpreter) = &mut self.interpreter {
            interpreter.limit_memory(memory_bytes);
            interpreter.realm.shared.memory_bytes.set(memory_bytes);
        }
        self.host = Some(host);
    }

    fn warm(&mut self, _sandboxed: &Sandboxed) {
        if let Some(interpreter) = &self.interpreter {
            interpreter.warm();
        }
    }

    fn run(&mut self, _sandboxed: &Sandboxed, job: &Job) -> Outcome {
        match &self.interpreter {
            Some(interpreter) => interpreter.execution(self.host).run(job),
            None => Outcome::Error(errors::code_error("InternalError", "the engine was not prepared")),
        }
    }
}
