//! Runs one program: translates it, runs its event loop, and creates its outcome.

use std::thread;
use std::time::{Duration, Instant};

use lockhouse_protocol::{Job, Outcome, Stream};
use lockhouse_worker::program_text::program;
use lockhouse_worker::signals;
use lockhouse_worker::tool_host::{ToolHost, WaitOutcome};
use nix::sys::resource::{UsageWho, getrusage};
use rquickjs::promise::PromiseState;
use rquickjs::{Array, Ctx, Error, Function, Object, Persistent, Promise, Runtime, Value};

use super::call_check;
use super::errors;
use super::evaluate::{evaluate, evaluate_sloppy};
use super::program_failure::ProgramFailure;
use super::realm::{Realm, Rejections};
use super::typescript::{self, GENERATED};
use super::{json_values, runtime_error_hints, tool_requests, undefined_value};

/// Maximum duration of one sleep while a program waits for a timer. A signal that arrives just before a sleep does not
/// interrupt it, so the sleep must be short.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// The texts by which the realm tells that a value is undefined, or that a part of it consists of undefined members.
const UNDEFINED: &str = "undefined";
const PART: &str = "part";

/// Memory in bytes that is available beyond the memory limit to describe the error of a failed program.
const MEMORY_BYTES_FOR_ERRORS: usize = 4 * 1024 * 1024;

/// The parts of a worker that run a program: the JavaScript realm, the connection to the supervisor, and limits.
pub(super) struct Execution<'a> {
    pub(super) realm: &'a Realm,
    pub(super) runtime: &'a Runtime,
    pub(super) rejections: &'a Rejections,
    /// The connection to the supervisor; `None` during the warm-up.
    pub(super) host: Option<&'static dyn ToolHost>,
    pub(super) memory_bytes: u64,
}

impl Execution<'_> {
    /// Runs a program to its end and returns its outcome.
    pub(super) fn run(&self, job: &Job) -> Outcome {
        self.rejections.borrow_mut().clear();
        self.runtime.set_memory_limit(usize::try_from(self.memory_bytes).unwrap_or(usize::MAX));
        let outcome = self.outcome(job);
        if job.session && !matches!(outcome, Outcome::Value(_) | Outcome::NoValue(_)) {
            self.reset_after_failure(&outcome);
        }
        outcome
    }

    /// Discards timers and promises of a failed or interrupted run, so that they do not affect the session's next
    /// run.
    fn reset_after_failure(&self, outcome: &Outcome) {
        self.realm.shared.timers.take();
        let forget_result =
            self.in_realm(|_, functions| Ok(functions.get::<_, Function>("forget")?.call::<_, ()>(())?));
        let stopped = matches!(outcome, Outcome::Interrupted(_) | Outcome::CpuLimit(_));
        // Promise jobs that are queued cannot be discarded, so the session must end: this worker stops answering and
        // is killed.
        while stopped && (forget_result.is_err() || self.runtime.is_job_pending()) {
            thread::sleep(SLEEP_MAX);
        }
    }

    fn outcome(&self, job: &Job) -> Outcome {
        self.realm.shared.started.set(Instant::now());
        self.realm.shared.host.set(self.host);
        let failure = match (self.value(job), signals::pending()) {
            (Ok(None), None) => {
                let advice = self.realm.shared.missing_value_advice.take();
                return advice.map_or(Outcome::Value(None), Outcome::NoValue);
            }
            (Ok(value), None) => return Outcome::Value(value),
            (Ok(_), Some(_)) => ProgramFailure::Stuck,
            (Err(failure), _) => failure,
        };
        let is_full = self.runtime.memory_usage().malloc_size.unsigned_abs() > self.memory_bytes / 2;
        let was_full = peak_bytes() > self.memory_bytes / 4 * 3;
        // Describing an out-of-memory error needs memory.
        let memory_bytes = usize::try_from(self.memory_bytes).unwrap_or(usize::MAX);
        self.runtime.set_memory_limit(memory_bytes.saturating_add(MEMORY_BYTES_FOR_ERRORS));
        let source_map = self.realm.shared.source_map.borrow();
        let source_map = source_map.as_ref();
        let outcome = self.realm.with(|ctx, functions| {
            Ok::<_, Error>(match signals::pending() {
                Some(interrupt) => failure.into_interrupted_outcome(ctx, functions, source_map, interrupt),
                None => {
                    match (
                        failure.into_failed_outcome(ctx, functions, source_map, is_full, was_full),
                        signals::pending(),
                    ) {
                        (outcome, None) => outcome,
                        // A getter of the thrown value ran until the interrupt.
                        (_, Some(interrupt)) => ProgramFailure::Stuck
                            .into_interrupted_outcome(ctx, functions, source_map, interrupt),
                    }
                }
            })
        });
        outcome.unwrap_or_else(|error| Outcome::Error(errors::code_error("InternalError", error.to_string())))
    }

    fn value(&self, job: &Job) -> Result<Option<Vec<u8>>, ProgramFailure> {
        let main = self.in_realm(|ctx, functions| self.start(ctx, functions, job))?;
        while self.state(&main)? == PromiseState::Pending {
            self.wait_for_event()?;
        }
        // A rejected promise throws here.
        let value = self.in_realm(|ctx, _| {
            let value: Value = main.restore(ctx)?.result().unwrap_or(Err(Error::Unknown))?;
            Ok(Persistent::save(ctx, value))
        })?;
        let undefined_part: Option<String> = match job.check_only {
            true => None,
            false => self.in_realm(|ctx, functions| {
                Ok(functions.get::<_, Function>("undefinedPart")?.call((value.clone().restore(ctx)?,))?)
            })?,
        };
        let unanswered = undefined_part.as_ref().and_then(|_| self.unanswered_call());
        // Calls without await are completed too, and their failures are reported.
        while self.realm.shared.in_flight.get() > 0 {
            self.wait_for_event()?;
        }
        if let Some((_, reason)) = self.rejections.borrow().first() {
            return Err(ProgramFailure::Exception(reason.clone()));
        }
        if self.host.is_some() {
            self.in_realm(|_, functions| {
                Ok(functions.get::<_, Function>("sendOutputs")?.call::<_, ()>(())?)
            })?;
        }
        if let Some(part) = undefined_part
            && let Some(advice) = self.undefined_advice(&part, unanswered)
        {
            if part == PART {
                self.realm.shared.print(Stream::Stderr, &format!("note: {advice}\n"));
            } else {
                self.realm.shared.missing_value_advice.set(Some(advice));
                return Ok(None);
            }
        }
        self.in_realm(|ctx, functions| encode(functions, value.restore(ctx)?))
    }

    /// Describes a call that the program has made and not awaited. Returns `None` if there is none.
    fn unanswered_call(&self) -> Option<String> {
        let waiting = self.in_realm(|_, functions| {
            Ok(functions.get::<_, Function>("waiting")?.call::<_, Vec<String>>(())?)
        });
        let source_map = self.realm.shared.source_map.borrow();
        runtime_error_hints::unanswered_call(&waiting.ok()?, source_map.as_ref())
    }

    /// Explains a value that is undefined or has undefined parts; `part` is [`UNDEFINED`], [`PART`], or another text for
    /// a value of undefined members only. Returns `None` if there is nothing to say: the program ends with output, or
    /// returns such a value on purpose.
    fn undefined_advice(&self, part: &str, unanswered: Option<String>) -> Option<String> {
        let shared = &self.realm.shared;
        let advice = shared.missing_value_advice.take();
        if advice.is_some() && part == UNDEFINED {
            return advice;
        }
        let expressions =
            shared.source_map.borrow().as_ref().map(|map| undefined_value::find(map.source()))?;
        // What was printed is the answer of a program that ends with a call.
        let has_printed = part == UNDEFINED && shared.has_printed.get();
        if expressions.reads.is_empty() && has_printed && unanswered.is_none() {
            return None;
        }
        let json = serde_json::to_string(&expressions).ok()?;
        let advice = self.in_realm(|ctx, functions| {
            let expressions = ctx.json_parse(json)?;
            Ok(functions.get::<_, Function>("explainUndefined")?.call::<_, Option<String>>((
                expressions,
                part,
                unanswered,
            ))?)
        });
        let is_undefined = part == UNDEFINED && expressions.ends_with_value;
        advice.ok().flatten().or_else(|| is_undefined.then(|| "the value is undefined".to_owned()))
    }

    /// Calls `body` in the realm. If `body` fails with a JavaScript exception, takes the exception out of the context
    /// and returns it.
    fn in_realm<R>(
        &self,
        body: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> Result<R, ProgramFailure>,
    ) -> Result<R, ProgramFailure> {
        self.realm.with(|ctx, functions| body(ctx, functions).map_err(|failure| failure.with_exception(ctx)))
    }

    fn start<'js>(
        &self,
        ctx: &Ctx<'js>,
        functions: &Object<'js>,
        job: &Job,
    ) -> Result<Persistent<Promise<'static>>, ProgramFailure> {
        let code = program(&job.code);
        let program = typescript::translate(&code, job.session)
            .map_err(|error| ProgramFailure::Report(Box::new(errors::syntax_error(&code, error))))?;
        let shared = &self.realm.shared;
        shared.missing_value_advice.set(program.missing_value_advice);
        shared.has_printed.set(false);
        shared.runs.set(shared.runs.get() + u32::from(job.session));
        let before = shared.source_map.take();
        let source_map = match job.session {
            true => program.source_map.following(shared.runs.get(), before),
            false => program.source_map,
        };
        *shared.source_map.borrow_mut() = Some(source_map);
        if !job.files.is_empty() || shared.knows_files.get() {
            let files = match job.files.is_empty() {
                true => Value::new_undefined(ctx.clone()),
                false => ctx.json_parse(job.files.as_slice())?,
            };
            functions.get::<_, Function>("beginFiles")?.call::<_, ()>((files,))?;
            shared.knows_files.set(!job.files.is_empty());
        }
        offer_servers(ctx, functions, job)?;
        if job.session {
            functions.get::<_, Function>("forget")?.call::<_, ()>(())?;
        }
        if !program.flat_names.is_empty() {
            functions.get::<_, Function>("offerFlatNames")?.call::<_, ()>((program.flat_names,))?;
        }
        if !job.servers.is_empty()
            && let Some(host) = self.host
        {
            call_check::check(ctx, functions, host, &code, program.planned_calls)?;
        }

        if job.check_only {
            shared.missing_value_advice.take();
            let (nothing, resolve, _) = Promise::new(ctx)?;
            resolve.call::<_, ()>(())?;
            return Ok(Persistent::save(ctx, nothing));
        }
        let part = |name: &str| functions.get::<_, Value>(name);
        let lookups = (part("module")?, part("import")?);
        let functions_pair: Array = if job.session {
            let name = format!("{GENERATED}-{}", shared.runs.get());
            let make: Function = evaluate_sloppy(ctx, name, &program.javascript)?;
            make.call((lookups.0, lookups.1, part("scope")?, part("declare")?))?
        } else {
            evaluate::<Function>(ctx, GENERATED, &program.javascript)?.call(lookups)?
        };
        let (main, awaiting) = into_pair(functions_pair)?;
        functions.set("awaiting", awaiting)?;
        let promise: Promise = main.call(())?;
        Ok(Persistent::save(ctx, promise))
    }

    /// Runs all pending promise jobs, and returns the state of `main`, the program's promise.
    fn state(&self, main: &Persistent<Promise<'static>>) -> Result<PromiseState, ProgramFailure> {
        self.run_jobs()?;
        self.in_realm(|ctx, _| Ok(main.clone().restore(ctx)?.state()))
    }

    /// Runs pending promise jobs. Jobs can create further jobs forever, so the loop checks for interrupts after each
    /// one. An exception of a job ends the program, which cannot catch it.
    fn run_jobs(&self) -> Result<(), ProgramFailure> {
        loop {
            if signals::pending().is_some() {
                return Err(ProgramFailure::Stuck);
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(thrown) => {
                    return Err(thrown
                        .0
                        .with(|ctx| ProgramFailure::from(Error::Exception).with_exception(&ctx)));
                }
            }
        }
    }

    /// Handles one event: runs the callback of a due timer, or waits for a reply or the next timer. Then runs all
    /// pending promise jobs. Fails if there is neither a timer nor a request in flight. May return early without an
    /// event.
    fn wait_for_event(&self) -> Result<(), ProgramFailure> {
        let shared = &self.realm.shared;
        let due = shared.timers.borrow_mut().take_due();
        let next = shared.timers.borrow().next();
        if let Some(timer) = due {
            self.in_realm(|_, functions| {
                Ok(functions.get::<_, Function>("fire")?.call::<_, ()>((timer,))?)
            })?;
        } else if let (true, Some(host)) = (shared.in_flight.get() > 0, self.host) {
            if let WaitOutcome::Reply(call, reply) = host.next_reply(next) {
                shared.in_flight.set(shared.in_flight.get().saturating_sub(1));
                self.in_realm(|ctx, functions| {
                    let reply = tool_requests::to_realm(ctx, reply)?;
                    let settled = (call.0, reply.succeeded, reply.value, reply.is_text, reply.bytes);
                    Ok(functions.get::<_, Function>("settle")?.call::<_, ()>(settled)?)
                })?;
            }
        } else {
            thread::sleep(next.ok_or(ProgramFailure::Stuck)?.min(SLEEP_MAX));
        }
        self.run_jobs()
    }
}

/// Returns the peak resident memory of this process in bytes; 0 if unknown.
fn peak_bytes() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    usage.map_or(0, |usage| u64::try_from(usage.max_rss()).unwrap_or_default() * 1024)
}

fn into_pair<'js>(functions: Array<'js>) -> rquickjs::Result<(Function<'js>, Function<'js>)> {
    Ok((functions.get(0)?, functions.get(1)?))
}

/// Encodes a value as JSON. Returns `None` if the value is undefined, or is encoded as nothing.
fn encode<'js>(functions: &Object<'js>, value: Value<'js>) -> Result<Option<Vec<u8>>, ProgramFailure> {
    if value.is_undefined() {
        return Ok(None);
    }
    let json: Option<String> = functions.get::<_, Function>("encode")?.call((value,))?;
    let Some(json) = json else { return Ok(None) };
    let too_deep = |_| {
        ProgramFailure::Report(Box::new(errors::code_error(
            "RangeError",
            "the result is nested too deeply for JSON: return a part",
        )))
    };
    json_values::to_portable_json(json).map(|json| Some(json.into_bytes())).map_err(too_deep)
}

/// Tells the realm which servers and tools the program may use, and which servers its request left out.
fn offer_servers<'js>(ctx: &Ctx<'js>, functions: &Object<'js>, job: &Job) -> Result<(), Error> {
    let servers: Vec<&str> = job.servers.iter().map(|server| server.as_str()).collect();
    functions.get::<_, Function>("serve")?.call::<_, ()>((servers,))?;
    if !job.left_out.is_empty() || job.session {
        let left_out = match job.left_out.is_empty() {
            true => Object::new(ctx.clone())?.into_value(),
            false => ctx.json_parse(job.left_out.as_slice())?,
        };
        functions.get::<_, Function>("leaveOut")?.call::<_, ()>((left_out,))?;
    }
    if !job.tools.is_empty() {
        let tools = ctx.json_parse(job.tools.as_slice())?;
        functions.get::<_, Function>("rememberTools")?.call::<_, ()>((tools,))?;
    }
    Ok(())
}
