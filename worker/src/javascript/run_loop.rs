//! One program from its text to its outcome.

use std::thread;
use std::time::{Duration, Instant};

use lockhouse_protocol::{Job, Outcome};
use lockhouse_worker::signals;
use lockhouse_worker::tool_host::{ToolHost, Waited};
use nix::sys::resource::{UsageWho, getrusage};
use rquickjs::promise::PromiseState;
use rquickjs::{Array, Ctx, Error, Function, Object, Persistent, Promise, Runtime, Value};

use super::ending::End;
use super::errors;
use super::evaluate::{evaluate, evaluate_sloppy};
use super::realm::{Realm, Rejections};
use super::typescript::{self, GENERATED};
use super::{requests, values};

/// A sleep for timers is cut up, so that a signal which arrives just before it is seen.
const NAP: Duration = Duration::from_millis(10);

/// Memory beyond the limit for telling what happened.
const MEMORY_BYTES_FOR_ERRORS: usize = 4 * 1024 * 1024;

/// A program on its way.
pub(super) struct Execution<'a> {
    pub(super) realm: &'a Realm,
    pub(super) runtime: &'a Runtime,
    pub(super) rejections: &'a Rejections,
    /// None in the warm-up.
    pub(super) host: Option<&'static dyn ToolHost>,
    pub(super) memory_bytes: u64,
}

impl Execution<'_> {
    /// Runs a job to its end.
    pub(super) fn run(&self, job: &Job) -> Outcome {
        self.rejections.borrow_mut().clear();
        self.runtime.set_memory_limit(usize::try_from(self.memory_bytes).unwrap_or(usize::MAX));
        let outcome = self.outcome(job);
        if job.session && !matches!(outcome, Outcome::Value(_)) {
            self.leave_nothing(&outcome);
        }
        outcome
    }

    /// A run of a session that failed, or was stopped, goes no further in the next one.
    fn leave_nothing(&self, outcome: &Outcome) {
        self.realm.link.timers.take();
        let forgotten =
            self.in_realm(|_, functions| Ok(functions.get::<_, Function>("forget")?.call::<_, ()>(())?));
        let stopped = matches!(outcome, Outcome::Interrupted(_) | Outcome::CpuLimit(_));
        // What promises have queued cannot be taken back: the session has to end. Whoever gives no answer is killed.
        while stopped && (forgotten.is_err() || self.runtime.is_job_pending()) {
            thread::sleep(NAP);
        }
    }

    fn outcome(&self, job: &Job) -> Outcome {
        self.realm.link.started.set(Instant::now());
        self.realm.link.host.set(self.host);
        let end = match (self.value(job), signals::pending()) {
            (Ok(value), None) => return Outcome::Value(value),
            (Ok(_), Some(_)) => End::Stuck,
            (Err(end), _) => end,
        };
        let is_full = self.runtime.memory_usage().malloc_size.unsigned_abs() > self.memory_bytes / 2;
        let was_full = peak_bytes() > self.memory_bytes / 4 * 3;
        // Otherwise telling of a lack of memory fails for lack of memory.
        let memory_bytes = usize::try_from(self.memory_bytes).unwrap_or(usize::MAX);
        self.runtime.set_memory_limit(memory_bytes.saturating_add(MEMORY_BYTES_FOR_ERRORS));
        let positions = self.realm.link.positions.borrow();
        let positions = positions.as_ref();
        let outcome = self.realm.with(|ctx, functions| {
            Ok::<_, Error>(match signals::pending() {
                Some(interrupt) => end.interrupted(ctx, functions, positions, interrupt),
                None => {
                    match (end.failed(ctx, functions, positions, is_full, was_full), signals::pending()) {
                        (outcome, None) => outcome,
                        // Its own getters were still at it.
                        (_, Some(interrupt)) => End::Stuck.interrupted(ctx, functions, positions, interrupt),
                    }
                }
            })
        });
        outcome.unwrap_or_else(|error| Outcome::Error(errors::plain("InternalError", error.to_string())))
    }

    fn value(&self, job: &Job) -> Result<Option<Vec<u8>>, End> {
        let main = self.in_realm(|ctx, functions| self.start(ctx, functions, job))?;
        while self.state(&main)? == PromiseState::Pending {
            self.turn()?;
        }
        // A rejection is thrown here.
        let value = self.in_realm(|ctx, _| {
            let value: Value = main.restore(ctx)?.result().unwrap_or(Err(Error::Unknown))?;
            Ok(Persistent::save(ctx, value))
        })?;
        // What nobody waited for was still asked for: it happens, and its failure is a failure.
        while self.realm.link.under_way.get() > 0 {
            self.turn()?;
        }
        if let Some((_, reason)) = self.rejections.borrow().first() {
            return Err(End::Thrown(reason.clone()));
        }
        self.in_realm(|ctx, functions| encode(functions, value.restore(ctx)?))
    }

    /// Calls into the realm, and takes exceptions out of it.
    fn in_realm<R>(
        &self,
        body: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> Result<R, End>,
    ) -> Result<R, End> {
        self.realm.with(|ctx, functions| body(ctx, functions).map_err(|end| end.caught(ctx)))
    }

    fn start<'js>(
        &self,
        ctx: &Ctx<'js>,
        functions: &Object<'js>,
        job: &Job,
    ) -> Result<Persistent<Promise<'static>>, End> {
        let program = typescript::translate(&job.code, job.session)
            .map_err(|error| End::Found(Box::new(errors::syntax(&job.code, error))))?;
        let link = &self.realm.link;
        link.runs.set(link.runs.get() + u32::from(job.session));
        let before = link.positions.take();
        let positions = match job.session {
            true => program.positions.after(link.runs.get(), before),
            false => program.positions,
        };
        *link.positions.borrow_mut() = Some(positions);
        let servers: Vec<&str> = job.servers.iter().map(|server| server.as_str()).collect();
        functions.get::<_, Function>("serve")?.call::<_, ()>((servers,))?;
        functions.get::<_, Function>("forget")?.call::<_, ()>(())?;

        let part = |name: &str| functions.get::<_, Value>(name);
        let lookups = (part("module")?, part("import")?);
        let made: Array = if job.session {
            let name = format!("{GENERATED}-{}", link.runs.get());
            let make: Function = evaluate_sloppy(ctx, name, &program.javascript)?;
            make.call((lookups.0, lookups.1, part("scope")?, part("declare")?))?
        } else {
            evaluate::<Function>(ctx, GENERATED, &program.javascript)?.call(lookups)?
        };
        let (main, awaiting) = two(made)?;
        functions.set("awaiting", awaiting)?;
        let promise: Promise = main.call(())?;
        Ok(Persistent::save(ctx, promise))
    }

    /// Of the program, after all that can happen by itself has happened.
    fn state(&self, main: &Persistent<Promise<'static>>) -> Result<PromiseState, End> {
        self.run_jobs()?;
        self.in_realm(|ctx, _| Ok(main.clone().restore(ctx)?.state()))
    }

    /// A program can make jobs for ever, so each is followed by a look at the signals. What a job throws is not for
    /// programs to catch.
    fn run_jobs(&self) -> Result<(), End> {
        loop {
            if signals::pending().is_some() {
                return Err(End::Stuck);
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(thrown) => return Err(thrown.0.with(|ctx| End::from(Error::Exception).caught(&ctx))),
            }
        }
    }

    /// One thing that comes from outside, and all that follows from it.
    fn turn(&self) -> Result<(), End> {
        let link = &self.realm.link;
        let due = link.timers.borrow_mut().take_due();
        let next = link.timers.borrow().next();
        if let Some(timer) = due {
            self.in_realm(|_, functions| {
                Ok(functions.get::<_, Function>("fire")?.call::<_, ()>((timer,))?)
            })?;
        } else if let (true, Some(host)) = (link.under_way.get() > 0, self.host) {
            if let Waited::Reply(call, reply) = host.next_reply(next) {
                link.under_way.set(link.under_way.get().saturating_sub(1));
                self.in_realm(|ctx, functions| {
                    let (succeeded, value) = requests::to_realm(ctx, reply)?;
                    Ok(functions.get::<_, Function>("settle")?.call::<_, ()>((call.0, succeeded, value))?)
                })?;
            }
        } else {
            thread::sleep(next.ok_or(End::Stuck)?.min(NAP));
        }
        self.run_jobs()
    }
}

/// The most memory that this process had at one time, or nothing when the system does not say.
fn peak_bytes() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    usage.map_or(0, |usage| u64::try_from(usage.max_rss()).unwrap_or_default() * 1024)
}

fn two<'js>(functions: Array<'js>) -> rquickjs::Result<(Function<'js>, Function<'js>)> {
    Ok((functions.get(0)?, functions.get(1)?))
}

/// JSON of a value, if it is one.
fn encode<'js>(functions: &Object<'js>, value: Value<'js>) -> Result<Option<Vec<u8>>, End> {
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    let json: Option<String> = functions.get::<_, Function>("encode")?.call((value,))?;
    let Some(json) = json.filter(|json| json != "null") else { return Ok(None) };
    let too_deep = |_| {
        End::Found(Box::new(errors::plain(
            "RangeError",
            "the result is nested too deeply for JSON: return a part",
        )))
    };
    values::portable(json).map(|json| Some(json.into_bytes())).map_err(too_deep)
}
