//! The [`Engine`] of JavaScript and TypeScript.

use std::mem::ManuallyDrop;

use lockhouse_protocol::{ExecutionId, Job, Outcome};
use lockhouse_worker::engine::Engine;
use lockhouse_worker::sandbox::Sandboxed;
use lockhouse_worker::tool_host::ToolHost;
use rquickjs::{Result, Runtime};

use super::errors;
use super::realm::{self, Realm, Rejections};
use super::run_loop::Execution;

/// What code may use when nobody has said it: a worker that is not warmed up.
const MEMORY_BYTES: u64 = 256 * 1024 * 1024;

/// A program that goes everywhere and does nothing.
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

/// JavaScript and TypeScript.
#[derive(Default)]
pub(crate) struct JavaScript {
    /// Made in the worker: what the zygote made would draw the same random numbers in each worker.
    interpreter: Option<Interpreter>,
}

/// A worker ends with its one execution, and the system frees faster than QuickJS.
struct Interpreter {
    realm: ManuallyDrop<Realm>,
    rejections: ManuallyDrop<Rejections>,
    runtime: ManuallyDrop<Runtime>,
    memory_bytes: u64,
}

impl JavaScript {
    /// Nothing is loaded yet.
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

    /// In a realm of its own, which is gone afterwards: programs find nothing of it.
    fn warm(&self) -> Result<()> {
        let realm = Realm::new(&self.runtime)?;
        let job = Job { execution: ExecutionId(0), code: WARM_UP.to_owned(), servers: Vec::new() };
        let outcome = self.execution(&realm, None).run(&job);
        debug_assert!(matches!(outcome, Outcome::Value(Some(_))), "{outcome:?}");
        self.rejections.borrow_mut().clear();
        drop(realm);
        self.runtime.run_gc();
        Ok(())
    }

    fn execution<'a>(&'a self, realm: &'a Realm, host: Option<&'static dyn ToolHost>) -> Execution<'a> {
        let Self { rejections, runtime, memory_bytes, .. } = self;
        Execution { realm, runtime, rejections, host, memory_bytes: *memory_bytes }
    }
}

impl Engine for JavaScript {
    fn prepare(&mut self, _preload: &[String]) -> std::result::Result<String, String> {
        Ok(format!("QuickJS-NG {}, TypeScript by oxc", realm::version()))
    }

    fn after_fork(&mut self) {}

    fn warm(&mut self, _sandboxed: &Sandboxed, _host: &'static dyn ToolHost, memory_bytes: u64) {
        // Without memory for this, `run` will fail in words.
        if let Ok(interpreter) = Interpreter::new(memory_bytes) {
            let _ = interpreter.warm();
            self.interpreter = Some(interpreter);
        }
    }

    fn run(&mut self, _sandboxed: &Sandboxed, host: &'static dyn ToolHost, job: &Job) -> Outcome {
        let interpreter = match self.interpreter.take().map_or_else(|| Interpreter::new(MEMORY_BYTES), Ok) {
            Ok(interpreter) => interpreter,
            Err(error) => return Outcome::MemoryLimit(errors::plain("RangeError", error.to_string())),
        };
        interpreter.execution(&interpreter.realm, Some(host)).run(job)
    }
}
