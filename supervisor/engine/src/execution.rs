//! One run, from a leased worker to its one final answer.
//!
//! [`run`] is the supervisor's half of the conversation: it reads the worker's messages, has the gate answer its
//! requests, keeps the clock, and ends the worker whatever happens.

mod answer;
mod calls;
mod display;
mod ending;
mod held;
mod limits;
mod shown;
mod status;
mod stop;
mod to_json;
mod told;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lockhouse_gate::{Asked, CallRecord, Gate, Requester};
use lockhouse_pool::{Death, Worker, WorkerProcess};
use lockhouse_protocol::{
    Action, CallId, CodeError, ExceededLimit, Exit, FromWorker, Job, LOOKUPS_MAX, Outcome, Reply, Stream,
    ToWorker, frame,
};
use lockhouse_upstream::ai_client::{Clock, Course, Looks, TAIL_BYTES_MAX};
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub use answer::{Answer, InSession, Refusal, Sandbox};
pub use display::DisplayLimits;
pub use ending::{Ending, Limit};
use held::CpuBudget;
pub use held::{Held, Place};
pub use limits::ExecutionLimits;
pub use shown::{Showing, Shown, Taken, shown, without_files};
pub use status::Status;
pub use stop::{Cancellation, Stop};
pub use to_json::parsed;

const READ_BYTES: usize = 64 * 1024;
/// How often it is looked at that CPU time, at least.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Replies that wait to be written to a worker, bytes, before it is no longer heard.
const OUT_BYTES_MAX: usize = 1024 * 1024;
/// How long the zygote may take to reap a worker that was ended.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a worker that closed its channel may take to end by itself.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// What a run amounted to.
#[derive(Debug)]
pub struct Ended {
    pub ending: Ending,
    pub stdout: String,
    pub stderr: String,
    pub calls: Vec<CallRecord>,
    /// Of the calls, those that were under way.
    pub waiting: usize,
    pub wall: Duration,
    pub cpu: Option<Duration>,
    pub peak_memory_bytes: Option<u64>,
    /// The worker of a session that can have another run.
    pub held: Option<Held>,
}

type Answering<'a> = BoxFuture<'a, (CallId, Reply, Option<CallRecord>)>;

/// Runs `code` until it ends, the clock does, or `stop` wants it to.
pub async fn run(
    mut place: Place,
    code: String,
    from: Requester,
    gate: &Gate,
    limits: &ExecutionLimits,
    looks: Looks,
    stop: &Stop,
) -> Ended {
    let session = matches!(place, Place::Held(_));
    let execution = from.caller.execution;
    let job = Job { execution, code, servers: from.scope.servers().to_vec(), session };
    let (out, cpu) = place.begin(limits.cpu);
    let mut run = Run {
        place,
        gate,
        from,
        limits,
        out,
        cpu,
        finished: false,
        answering: FuturesUnordered::new(),
        stdout: String::new(),
        stderr: String::new(),
        calls: Vec::new(),
        under_way: BTreeMap::new(),
        interrupted: false,
        death: None,
    };
    let started = Instant::now();
    looks.begin();
    let waking = if session { run.wake() } else { None };
    let ending = match waking.or_else(|| run.send_job(job)) {
        None => run.until_the_end(stop, looks, started).await,
        Some(ending) => ending,
    };
    let wall = started.elapsed();
    // A client that cancels leaves its questions as a program does that ends: it could ask again and again.
    if matches!(ending, Ending::Cancelled(why, _) if why != Cancellation::Client) {
        run.from.approvals.cancel();
    }
    let waiting = run.abandon_calls();
    // The kernel has told of a process that is gone; of one that is not, it is asked.
    let process = &run.worker().process;
    let cpu = run.death.map(|death| death.cpu).or_else(|| process.cpu_time());
    let cpu = cpu.map(|in_all| run.cpu.map_or(in_all, |budget| budget.used(in_all)));
    let peak_memory_bytes =
        run.death.map(|death| death.peak_memory_bytes).or_else(|| process.peak_memory_bytes());
    let (stdout, stderr) = (std::mem::take(&mut run.stdout), std::mem::take(&mut run.stderr));
    let calls = std::mem::take(&mut run.calls);
    // A worker that is not held is killed here, as it is dropped: after its answer, whatever it still does.
    let held = run.rest();
    Ended { ending, stdout, stderr, calls, waiting, wall, cpu, peak_memory_bytes, held }
}

struct Run<'a> {
    place: Place,
    gate: &'a Gate,
    from: Requester,
    limits: &'a ExecutionLimits,
    /// Encoded messages to the worker that are not written yet. Bounded: a worker has only so many requests under way.
    out: Vec<u8>,
    answering: FuturesUnordered<Answering<'a>>,
    stdout: String,
    stderr: String,
    calls: Vec<CallRecord>,
    /// Calls without an answer yet, and when they began.
    under_way: BTreeMap<CallId, (Asked, Instant)>,
    interrupted: bool,
    /// In a session, where the kernel's limit is one for all runs.
    cpu: Option<CpuBudget>,
    /// Whether the worker has said the last word of this run.
    finished: bool,
    /// How the process ended, if it did so by itself.
    death: Option<Death>,
}

impl Run<'_> {
    fn worker(&self) -> &Worker {
        self.place.worker()
    }

    fn worker_mut(&mut self) -> &mut Worker {
        self.place.worker_mut()
    }

    /// Gives the ending, when it cannot be sent.
    fn send_job(&mut self, job: Job) -> Option<Ending> {
        if !self.worker_mut().conversation.run(job.session) {
            return Some(Ending::Broken("it was not idle".into()));
        }
        match frame::encode(&ToWorker::Run(job), self.limits.conversation.frame_bytes) {
            Ok(frame) => {
                self.out.extend_from_slice(&frame);
                None
            }
            Err(error) => Some(Ending::Broken(error.to_string())),
        }
    }

    async fn until_the_end(&mut self, stop: &Stop, mut looks: Looks, started: Instant) -> Ending {
        let mut clock = self.from.caller.questions.clock(self.limits.wall);
        let mut buffer = vec![0; READ_BYTES];
        let (mut cpu, mut cancelled) = (self.cpu, None);
        let before = self.worker().process.cpu_time();
        let mut yields_after = self.limits.cpu_credit.zip(before).map(|(credit, before)| before + credit);
        loop {
            let worker = self.place.worker();
            let (mut from, mut to) = (&worker.stream, &worker.stream);
            // A worker that does not read what it asked for is not heard, and nothing more is made for it.
            let hears = self.out.len() < OUT_BYTES_MAX;
            tokio::select! {
                // In this order: a clock that has run out wins over whatever else is ready, and replies that are there
                // leave together before more is heard.
                biased;
                why = stop.wanted(), if cancelled.is_none() => {
                    if self.interrupted {
                        return Ending::Cancelled(why, None);
                    }
                    if self.cpu.is_none() {
                        return Ending::Cancelled(why, self.last_words().await);
                    }
                    // What a session has gathered is worth a moment.
                    (cancelled, self.interrupted) = (Some(why), true);
                    worker.process.signal(Signal::SIGINT);
                    clock = Clock::plain(self.limits.grace);
                }
                _ = clock.ends() => {
                    match (cancelled, self.interrupted) {
                        (Some(why), _) => return Ending::Cancelled(why, None),
                        (None, true) => return Ending::Timeout(None),
                        (None, false) => {}
                    }
                    self.interrupted = true;
                    worker.process.signal(Signal::SIGINT);
                    clock = Clock::plain(self.limits.grace);
                }
                true = Self::cpu_runs_out(&mut cpu, &worker.process) => {
                    return Ending::Limit(self.cpu_limit(), None);
                }
                () = Self::has_used(yields_after, &worker.process, started) => {
                    yields_after = None;
                    worker.process.yield_to_others();
                }
                Some(asked) = looks.next() => drop(asked.send(self.course(started.elapsed()))),
                Some((call, reply, record)) = self.answering.next(), if hears => {
                    self.under_way.remove(&call);
                    self.calls.extend(record);
                    self.reply(call, reply);
                }
                written = to.write(&self.out), if !self.out.is_empty() => match written {
                    Ok(count) => drop(self.out.drain(..count)),
                    Err(_) => return self.died().await,
                },
                read = from.read(&mut buffer), if hears => {
                    let ending = match read {
                        Ok(count @ 1..) => self.hear(&buffer[..count]),
                        _ => Some(self.died().await),
                    };
                    match ending.map(|ending| (ending, cancelled)) {
                        Some((Ending::Timeout(place), Some(why))) => return Ending::Cancelled(why, place),
                        Some((_, Some(why))) => return Ending::Cancelled(why, None),
                        // No outcome of the worker's: it was stopped by what it asked for or printed.
                        Some((Ending::Limit(limit, None), None)) => {
                            return Ending::Limit(limit, self.last_words().await);
                        }
                        Some((ending, None)) => return ending,
                        None => {}
                    }
                    // A worker that never pauses would be heard again before any clock or any other execution.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Waits until a worker has used so much CPU time.
    async fn has_used(cpu: Option<Duration>, process: &WorkerProcess, started: Instant) {
        let Some(cpu) = cpu else { return std::future::pending().await };
        // A process that is gone is heard of elsewhere.
        while let Some(used) = process.cpu_time() {
            let left = cpu.saturating_sub(used);
            if left.is_zero() {
                return;
            }
            // One that waits is looked at less and less often.
            tokio::time::sleep(left.max(LOOK_EVERY.min(started.elapsed() / 4))).await;
        }
        std::future::pending().await
    }

    fn course(&self, elapsed: Duration) -> Course {
        let mut under_way = BTreeMap::new();
        for (asked, _) in self.under_way.values() {
            *under_way.entry(format!("{}.{}", asked.server, asked.item)).or_default() += 1;
        }
        let mut from = self.stdout.len().saturating_sub(TAIL_BYTES_MAX);
        while !self.stdout.is_char_boundary(from) {
            from += 1;
        }
        let (calls, person) = (self.calls.len(), self.from.caller.questions.oldest());
        Course { elapsed, calls, under_way, person, stdout: self.stdout[from..].to_owned() }
    }

    /// Takes in what was read. An ending, when there is one.
    fn hear(&mut self, bytes: &[u8]) -> Option<Ending> {
        self.worker_mut().decoder.push(bytes);
        loop {
            let worker = self.worker_mut();
            let action = match worker.decoder.next::<FromWorker>() {
                Ok(Some(message)) => worker.conversation.receive(message),
                Ok(None) => return None,
                Err(error) => return Some(Ending::Broken(error.to_string())),
            };
            match action {
                Ok(Action::Append(Stream::Stdout, text)) => self.stdout.push_str(&text),
                Ok(Action::Append(Stream::Stderr, text)) => self.stderr.push_str(&text),
                Ok(Action::Answer(call, request)) => {
                    let asked = Asked::of(&request);
                    if let Some(asked) = &asked {
                        self.under_way.insert(call, (asked.clone(), Instant::now()));
                    }
                    let (gate, from) = (self.gate, self.from.clone());
                    self.answering.push(Box::pin(async move {
                        let (reply, record) = gate.answer(&from, call, asked, request).await;
                        (call, reply, record)
                    }));
                }
                Ok(Action::Finish(outcome)) => {
                    self.finished = true;
                    return Some(self.ended_by(outcome));
                }
                Ok(Action::Stop(limit)) => return Some(self.stopped(limit)),
                Ok(Action::Verify | Action::GiveUp(_)) => {
                    return Some(Ending::Broken("it was sealed twice".into()));
                }
                Err(violation) => return Some(Ending::Broken(violation.to_string())),
            }
        }
    }

    /// Where the code is that is stopped at a limit or from outside: it is interrupted as at its deadline. What it has printed
    /// by then is kept as far as there is room, and what it asks for is not done.
    async fn last_words(&mut self) -> Option<CodeError> {
        let output_bytes_max = self.limits.conversation.output_bytes as usize;
        let mut room = output_bytes_max.saturating_sub(self.stdout.len() + self.stderr.len());
        let (stdout, stderr) = (&mut self.stdout, &mut self.stderr);
        let worker = self.place.worker_mut();
        worker.process.signal(Signal::SIGINT);
        let mut buffer = vec![0; READ_BYTES];
        let asking = async {
            loop {
                while let Some(message) = worker.decoder.next::<FromWorker>().ok()? {
                    match message {
                        FromWorker::Done(Outcome::Interrupted(error)) => return Some(error),
                        FromWorker::Done(_) => return None,
                        FromWorker::Output { stream, text } if text.len() <= room => {
                            room -= text.len();
                            match stream {
                                Stream::Stdout => stdout.push_str(&text),
                                Stream::Stderr => stderr.push_str(&text),
                            }
                        }
                        _ => {}
                    }
                }
                match (&worker.stream).read(&mut buffer).await {
                    Ok(count @ 1..) => worker.decoder.push(&buffer[..count]),
                    _ => return None,
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(self.limits.grace, asking).await.ok().flatten()
    }

    /// Calls that were under way at the end: whether they took effect is not known, and the answer says so. How many.
    fn abandon_calls(&mut self) -> usize {
        let under_way = std::mem::take(&mut self.under_way);
        let waiting = under_way.len();
        for (call, (asked, since)) in under_way {
            self.calls.push(self.gate.abandoned(&self.from, call, &asked, since.elapsed()));
        }
        waiting
    }

    fn reply(&mut self, call: CallId, reply: Reply) {
        if !self.worker_mut().conversation.reply(call) {
            return;
        }
        let limit = self.limits.conversation.frame_bytes;
        // The gate bounds each reply below the limit of a frame, so this always encodes.
        match frame::encode(&ToWorker::Reply { call, reply }, limit) {
            Ok(frame) => self.out.extend_from_slice(&frame),
            Err(error) => tracing::error!("a reply was lost: {error}"),
        }
    }

    fn ended_by(&self, outcome: Outcome) -> Ending {
        match outcome {
            Outcome::Value(value) => Ending::Value(value),
            Outcome::Error(error) => Ending::Error(error),
            Outcome::Interrupted(error) if self.interrupted => Ending::Timeout(Some(error)),
            // Nobody interrupted it: the code raised that itself.
            Outcome::Interrupted(error) => Ending::Error(error),
            Outcome::CpuLimit(error) => Ending::Limit(self.cpu_limit(), Some(error)),
            Outcome::MemoryLimit(error) => Ending::Limit(self.memory_limit(), Some(error)),
        }
    }

    fn stopped(&self, limit: ExceededLimit) -> Ending {
        let limits = &self.limits.conversation;
        let reached = match limit {
            ExceededLimit::Calls => format!("tool call limit of {} reached", limits.calls),
            ExceededLimit::Lookups => format!("limit of {LOOKUPS_MAX} questions about tools reached"),
            ExceededLimit::Output => format!("output limit of {} KiB reached", limits.output_bytes / 1024),
        };
        Ending::Limit(Limit::amount(reached), None)
    }

    fn cpu_limit(&self) -> Limit {
        Limit::time(format!("CPU time limit of {} s reached", self.limits.cpu.as_secs()))
    }

    fn memory_limit(&self) -> Limit {
        Limit::memory(format!("memory limit of {} MiB reached", self.limits.memory_bytes / (1024 * 1024)))
    }

    /// The channel closed without a last word: what the kernel says of the end.
    async fn died(&mut self) -> Ending {
        let worker = self.place.worker_mut();
        let exit = match tokio::time::timeout(LEAVE_TIMEOUT, &mut worker.exit).await {
            Ok(exit) => exit,
            Err(_) => {
                worker.process.signal(Signal::SIGKILL);
                // How it ended tells whether it had gone on: one that ended by itself was not killed.
                let killed = Exit::Signal(Signal::SIGKILL as i32);
                match tokio::time::timeout(REAP_TIMEOUT, &mut worker.exit).await {
                    Ok(Ok(death)) if death.exit != killed => Ok(death),
                    _ => return Ending::Broken("it closed its channel and went on".into()),
                }
            }
        };
        self.death = exit.ok();
        match self.death {
            _ if self.interrupted => Ending::Timeout(None),
            // The kernel kills at the hard limit what ignores the signal at the soft one.
            Some(Death { cpu, .. }) if self.cpu.map_or(cpu, |budget| budget.used(cpu)) >= self.limits.cpu => {
                Ending::Limit(self.cpu_limit(), None)
            }
            Some(death) if self.lacked_memory(&death) => Ending::Limit(self.memory_limit(), None),
            Some(death) => ending::killed(death.exit),
            None => {
                Ending::Killed { words: "its zygote ended, and the worker with it".into(), attack: false }
            }
        }
    }

    /// Whether a death was for want of memory: the kernel says so, or an interpreter that could not say it aborted when
    /// most of its memory was used.
    fn lacked_memory(&self, death: &Death) -> bool {
        let worker = self.worker();
        let used = death.peak_memory_bytes.saturating_sub(worker.resident_bytes);
        let aborted = matches!(death.exit, Exit::Signal(number)
            if [Signal::SIGABRT, Signal::SIGSEGV, Signal::SIGBUS].iter().any(|signal| *signal as i32 == number));
        worker.was_out_of_memory() || aborted && used >= self.limits.memory_bytes / 4 * 3
    }
}
