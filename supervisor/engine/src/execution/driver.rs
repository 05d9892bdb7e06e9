//! Carries out what [`State`] decides: reads and writes the channel of the worker, waits for clocks and replies, sends signals.

use std::io;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use lockhouse_pool::{Death, Worker, WorkerProcess};
use lockhouse_protocol::{FrameDecoder, FromWorker, Job, ToWorker, frame};
use lockhouse_upstream::ai_client::{Clock, Looks};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Sleep;

use super::cpu::{self, CpuBudget};
use super::ending::Ending;
use super::output::Output;
use super::requests::Requests;
use super::state::{Effect, Event, Exited, State};
use super::stop::Cancellation;

const READ_BYTES: usize = 64 * 1024;
/// Replies that wait to be written to a worker, bytes, before it is no longer heard.
const OUT_BYTES_MAX: usize = 1024 * 1024;

/// What a run may take.
pub(super) struct Clocks {
    pub(super) started: Instant,
    pub(super) wall: Clock,
    pub(super) cpu: Option<CpuBudget>,
    pub(super) cpu_credit: Option<Duration>,
}

/// Why nothing more is heard of a worker.
pub(super) enum Over {
    Ended(Ending),
    /// Its process has ended. None: its zygote has, too.
    Exited(Option<Death>),
}

/// A run and all that it holds besides its worker.
pub(super) struct Run<'a> {
    pub(super) state: State,
    pub(super) requests: Requests<'a>,
    pub(super) output: Output,
    /// Encoded messages to the worker that are not written yet. Bounded: a worker has only so many requests under way.
    pub(super) out: Vec<u8>,
    /// Bytes of an encoded message.
    pub(super) frame_bytes: u32,
    timer: Pin<Box<Sleep>>,
    timer_is_set: bool,
}

impl<'a> Run<'a> {
    /// `out` are encoded messages that the worker has not read yet.
    pub(super) fn new(state: State, requests: Requests<'a>, out: Vec<u8>, frame_bytes: u32) -> Self {
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { state, requests, output: Output::default(), out, frame_bytes, timer, timer_is_set: false }
    }

    /// Wakes a session's worker. What its threads printed and asked meanwhile is the first that this run hears, and it has
    /// said nothing else. An ending, when it did.
    pub(super) fn wake(&mut self, worker: &mut Worker) -> Option<Ending> {
        let descriptor = worker.descriptor();
        let Worker { process, decoder, .. } = worker;
        let mut buffer = vec![0; READ_BYTES];
        let mut heard = self.hear(&[], decoder, process);
        // It is stopped, so that there is only so much.
        while heard.is_none() {
            heard = match recv(descriptor, &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(count @ 1..) => self.hear(&buffer[..count], decoder, process),
                Err(Errno::EINTR) => None,
                // Of one that has closed its end, or died, the run hears soon enough.
                _ => {
                    process.signal(Signal::SIGCONT);
                    return None;
                }
            }
        }
        heard
    }

    /// Sends the worker its code. Gives the ending, when that cannot be.
    pub(super) fn begin(&mut self, job: Job, process: &WorkerProcess) -> Option<Ending> {
        self.on(Event::Begin(job), process)
    }

    /// Goes on until the run is over, or its worker is gone.
    pub(super) async fn drive(
        &mut self,
        worker: &mut Worker,
        clocks: Clocks,
        stop: impl Future<Output = Cancellation>,
        mut looks: Looks,
    ) -> Over {
        let Worker { process, stream, decoder, exit, .. } = worker;
        let (process, mut from, mut to) = (&*process, &*stream, &*stream);
        let Clocks { started, mut wall, cpu, cpu_credit } = clocks;
        let mut buffer = vec![0; READ_BYTES];
        // These wait for the whole run, and are made once: nobody waits anew for them because a message came.
        let mut stop = pin!(stop.fuse());
        let mut wall = pin!(wall.ends().fuse());
        let mut cpu_used_up = pin!(CpuBudget::used_up(cpu, process).fuse());
        let mut cpu_grace_used_up = pin!(CpuBudget::grace_used_up(cpu, process).fuse());
        let mut credit_used_up = pin!(cpu::credit_used_up(cpu_credit, process).fuse());
        loop {
            let is_conversing = self.state.is_conversing();
            // A worker that does not read what it asked for is not heard, and nothing more is made for it.
            let converses = is_conversing && self.out.len() < OUT_BYTES_MAX;
            let ended = tokio::select! {
                // In this order: a clock that has run out wins over whatever else is ready, and replies that are there
                // leave together before more is heard.
                biased;
                why = &mut stop => self.on(Event::StopWanted(why), process),
                _ = &mut wall => self.on(Event::WallClockEnded, process),
                () = &mut self.timer, if self.timer_is_set => {
                    self.timer_is_set = false;
                    self.on(Event::TimerEnded, process)
                }
                () = &mut cpu_used_up => self.on(Event::CpuUsedUp, process),
                () = &mut cpu_grace_used_up => self.on(Event::CpuGraceUsedUp, process),
                () = &mut credit_used_up => {
                    process.yield_to_others();
                    None
                }
                Some(asked) = looks.next() => {
                    drop(asked.send(self.requests.course(started.elapsed(), &self.output)));
                    None
                }
                Some((call, reply)) = self.requests.next(), if converses => {
                    self.on(Event::Replied(call, reply), process)
                }
                written = to.write(&self.out), if is_conversing && !self.out.is_empty() => {
                    self.wrote(written, process)
                }
                read = from.read(&mut buffer), if converses || self.state.is_stopping() => {
                    let ended = self.hear_read(read, &buffer, decoder, process);
                    if ended.is_none() {
                        // A worker that never pauses would be heard again before any clock or any other execution.
                        tokio::task::yield_now().await;
                    }
                    ended
                }
                death = &mut *exit, if self.state.is_leaving() => return Over::Exited(death.ok()),
            };
            if let Some(ending) = ended {
                return Over::Ended(ending);
            }
        }
    }

    /// What the end of its process means for a run that used so much CPU time.
    pub(super) fn exited(&mut self, worker: &Worker, death: Option<Death>, cpu: Option<CpuBudget>) -> Ending {
        self.state.exited(death.map(|death| Exited {
            exit: death.exit,
            cpu: cpu.map_or(death.cpu, |budget| budget.used(death.cpu)),
            was_out_of_memory: worker.was_out_of_memory(),
            peak_growth_bytes: death.peak_memory_bytes.saturating_sub(worker.resident_bytes),
        }))
    }

    fn wrote(&mut self, written: io::Result<usize>, process: &WorkerProcess) -> Option<Ending> {
        let Ok(count) = written else { return self.on(Event::ChannelClosed, process) };
        self.out.drain(..count);
        None
    }

    fn hear_read(
        &mut self,
        read: io::Result<usize>,
        buffer: &[u8],
        decoder: &mut FrameDecoder,
        process: &WorkerProcess,
    ) -> Option<Ending> {
        match read {
            Ok(count @ 1..) => self.hear(&buffer[..count], decoder, process),
            _ => self.on(Event::ChannelClosed, process),
        }
    }

    /// Takes in what was read. An ending, when there is one: what comes after it is the next run's.
    fn hear(&mut self, bytes: &[u8], decoder: &mut FrameDecoder, process: &WorkerProcess) -> Option<Ending> {
        decoder.push(bytes);
        loop {
            let event = match decoder.next::<FromWorker>() {
                Ok(Some(message)) => Event::Message(message),
                Ok(None) => return None,
                Err(error) => Event::InvalidFrame(error.to_string()),
            };
            if let Some(ending) = self.on(event, process) {
                return Some(ending);
            }
        }
    }

    /// Carries out what an event leads to. An ending, when that is one.
    fn on(&mut self, event: Event, process: &WorkerProcess) -> Option<Ending> {
        match self.state.on(event) {
            Effect::Nothing => {}
            Effect::Append(stream, text) => self.output.append(stream, &text),
            Effect::Ask(call, request) => self.requests.ask(call, request),
            Effect::Send(message) => return self.send(&message),
            Effect::Signal(signal) => process.signal(signal),
            Effect::Wait(time) => self.set_timer(time),
            Effect::SignalAndWait(signal, time) => {
                process.signal(signal);
                self.set_timer(time);
            }
            Effect::End(ending) => return Some(ending),
        }
        None
    }

    fn send(&mut self, message: &ToWorker) -> Option<Ending> {
        match (frame::encode(message, self.frame_bytes), message) {
            (Ok(frame), _) => self.out.extend_from_slice(&frame),
            (Err(error), ToWorker::Run(_)) => return Some(Ending::Broken(error.to_string())),
            // The gate bounds each reply below the limit of a frame, so this always encodes.
            (Err(error), ToWorker::Reply { .. }) => tracing::error!("a reply was lost: {error}"),
        }
        None
    }

    fn set_timer(&mut self, time: Duration) {
        self.timer.as_mut().reset(tokio::time::Instant::now() + time);
        self.timer_is_set = true;
    }
}
