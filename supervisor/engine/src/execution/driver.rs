//! Carries out the effects that [`StateMachine`] decides for a run: reads and writes the channel of the worker, waits
//! for timers and for replies of the gate, and sends signals to the worker.

use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use lockhouse_pool::{Worker, WorkerExitReport, WorkerProcess};
use lockhouse_protocol::{FrameDecoder, FromWorker, Job, ToWorker};
use lockhouse_run_channel::{PausableTimer, ProgressRequests};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv};
use tokio::time::Sleep;

use super::cancellation::Cancellation;
use super::captured_output::CapturedOutput;
use super::cpu_budget::{self, CpuBudget};
use super::end_reason::EndReason;
use super::outbox::Outbox;
use super::state_machine::{ExecutionEffect, ExecutionEvent, StateMachine, WorkerExit};
use super::worker_requests::WorkerRequests;

/// If this number of bytes waits to be written to a worker, no more messages of that worker are read
/// (backpressure).
/// Bound: workers and programs.
const PENDING_OUT_BYTES_MAX: usize = 1024 * 1024;

/// The start time of a run and its limits on wall-clock time and CPU time.
pub(super) struct RunClocks {
    pub(super) started: Instant,
    pub(super) wall: PausableTimer,
    pub(super) cpu: Option<CpuBudget>,
    pub(super) cpu_credit: Option<Duration>,
}

/// An event that does not come from the worker. Most runs have no such event. The futures that wait for these events
/// are therefore polled only when one of them is woken.
enum Interrupt {
    /// The run must stop, for this cause.
    StopRequested(Cancellation),
    /// The run has reached its deadline in wall-clock time.
    DeadlineReached,
    /// The run has used all the CPU time that its CPU limit permits.
    CpuLimitReached,
    /// The run has also used all the CPU grace time, which follows its CPU limit.
    CpuGraceExpired,
    /// The run has used up the CPU credit of its AI client.
    CreditExhausted,
}

/// How the conversation of the supervisor with a worker ended.
pub(super) enum RunOutcome {
    /// The run ended for this reason. The exit of the worker process has not been observed.
    Ended(EndReason),
    /// The worker process exited, with its exit status and resource use. `None` if these are unknown, because the
    /// zygote (the parent process of the worker) exited too.
    Exited(Option<WorkerExitReport>),
}

/// One run with its state, its requests and its output. The methods get the worker as a parameter.
pub(super) struct RunDriver<'a> {
    pub(super) state: StateMachine,
    pub(super) requests: WorkerRequests<'a>,
    pub(super) output: CapturedOutput,
    pub(super) out: Outbox,
    /// Maximum bytes of an encoded message to the worker.
    pub(super) frame_bytes: u32,
    timer: Pin<Box<Sleep>>,
    timer_is_set: bool,
}

impl<'a> RunDriver<'a> {
    /// Creates the driver of a run. `out` holds encoded messages of an earlier run of the session that the worker has
    /// not read yet. `output` captures the output of the run.
    pub(super) fn new(
        state: StateMachine,
        requests: WorkerRequests<'a>,
        output: CapturedOutput,
        out: Outbox,
        frame_bytes: u32,
    ) -> Self {
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { state, requests, output, out, frame_bytes, timer, timer_is_set: false }
    }

    /// Resumes the stopped worker of a session. Before that, processes the output and the requests that threads of the
    /// worker sent after the last run. Any other message ends the run. Returns the end reason in that case, otherwise
    /// `None`.
    pub(super) fn resume(&mut self, worker: &mut Worker) -> Option<EndReason> {
        let Worker { process, decoder, socket, .. } = worker;
        let mut end_reason = self.receive(decoder, process);
        // The worker is still stopped, so the amount of buffered data is bounded.
        while end_reason.is_none() {
            end_reason = match recv(socket.descriptor(), decoder.space(), MsgFlags::MSG_DONTWAIT) {
                Ok(count @ 1..) => self.on_read(Ok(count), decoder, process),
                Err(Errno::EINTR) => None,
                // A closed channel or an exited worker is handled by `drive`.
                _ => {
                    process.signal(Signal::SIGCONT);
                    return None;
                }
            }
        }
        end_reason
    }

    /// Sends the code to the worker. Returns the end reason if the run cannot start, otherwise `None`.
    pub(super) fn begin(&mut self, job: Job, process: &WorkerProcess) -> Option<EndReason> {
        self.on(ExecutionEvent::Begin(job), process)
    }

    /// Processes the events of the run until it ends or its worker exits.
    pub(super) async fn drive(
        &mut self,
        worker: &mut Worker,
        clocks: RunClocks,
        stop: impl Future<Output = Cancellation> + Send,
        mut progress_requests: ProgressRequests,
    ) -> RunOutcome {
        let Worker { process, socket, decoder, exit, .. } = worker;
        let (process, socket) = (&*process, &*socket);
        let RunClocks { started, mut wall, cpu, cpu_credit } = clocks;
        let mut interrupts = FuturesUnordered::<BoxFuture<'_, Interrupt>>::new();
        interrupts.push(stop.map(Interrupt::StopRequested).boxed());
        interrupts.push(wall.expired().map(|_| Interrupt::DeadlineReached).boxed());
        if let Some(cpu) = cpu {
            interrupts.push(cpu.wait_for_limit(process).map(|()| Interrupt::CpuLimitReached).boxed());
            interrupts.push(cpu.wait_for_grace_end(process).map(|()| Interrupt::CpuGraceExpired).boxed());
        }
        if let Some(credit) = cpu_credit {
            let exhausted = cpu_budget::wait_for_credit(credit, process);
            interrupts.push(exhausted.map(|()| Interrupt::CreditExhausted).boxed());
        }
        loop {
            let answers_requests = self.state.answers_requests();
            // Backpressure: while the worker does not read its replies, no more messages are read and no more replies
            // are made.
            let accepts_messages = answers_requests && self.out.len() < PENDING_OUT_BYTES_MAX;
            let has_code = answers_requests || self.state.is_stopping();
            let end_reason = tokio::select! {
                // The order matters: an expired clock comes before everything else, and all available replies are sent
                // before more messages are read.
                biased;
                Some(interrupt) = interrupts.next() => self.on_interrupt(interrupt, process),
                () = &mut self.timer, if self.timer_is_set => {
                    self.timer_is_set = false;
                    self.on(ExecutionEvent::TimerExpired { has_exited: !process.is_alive() }, process)
                }
                Some(reply_to) = progress_requests.next() => {
                    drop(reply_to.send(self.requests.progress(started.elapsed(), &self.output)));
                    None
                }
                Some((call, reply)) = self.requests.next(), if accepts_messages => {
                    self.on(ExecutionEvent::ReplyReady(call, reply), process)
                }
                written = socket.write(self.out.next_bytes()), if has_code && self.out.len() > 0 => {
                    self.on_written(written, process)
                }
                read = socket.read(decoder.space()), if accepts_messages || self.state.is_stopping() => {
                    self.on_read(read, decoder, process)
                }
                death = &mut *exit, if self.state.is_exiting() => return RunOutcome::Exited(death.ok()),
            };
            if let Some(reason) = end_reason {
                return RunOutcome::Ended(reason);
            }
        }
    }

    /// Returns the end reason of a run whose worker process exited. `death` is the exit status and the resource use of
    /// the process; `None` if they are unknown. `cpu` is the CPU limit that the supervisor enforced, if any.
    pub(super) fn exited(
        &mut self,
        worker: &Worker,
        death: Option<WorkerExitReport>,
        cpu: Option<CpuBudget>,
    ) -> EndReason {
        self.state.exited(death.map(|death| WorkerExit {
            exit: death.exit,
            cpu: cpu.map_or(death.cpu, |budget| budget.used(death.cpu)),
            was_out_of_memory: worker.was_out_of_memory(),
            peak_growth_bytes: death.peak_memory_bytes.saturating_sub(worker.resident_bytes),
        }))
    }

    fn on_interrupt(&mut self, interrupt: Interrupt, process: &WorkerProcess) -> Option<EndReason> {
        match interrupt {
            Interrupt::StopRequested(cause) => self.on(ExecutionEvent::StopRequested(cause), process),
            Interrupt::DeadlineReached => self.on(ExecutionEvent::DeadlineReached, process),
            Interrupt::CpuLimitReached => self.on(ExecutionEvent::CpuLimitReached, process),
            Interrupt::CpuGraceExpired => self.on(ExecutionEvent::CpuGraceExpired, process),
            Interrupt::CreditExhausted => {
                process.lower_priority();
                None
            }
        }
    }

    fn on_written(&mut self, written: io::Result<usize>, process: &WorkerProcess) -> Option<EndReason> {
        let Ok(count) = written else { return self.on(ExecutionEvent::ChannelClosed, process) };
        self.out.advance(count);
        None
    }

    fn on_read(
        &mut self,
        read: io::Result<usize>,
        decoder: &mut FrameDecoder,
        process: &WorkerProcess,
    ) -> Option<EndReason> {
        match read {
            Ok(count @ 1..) => {
                decoder.received(count);
                self.receive(decoder, process)
            }
            _ => self.on(ExecutionEvent::ChannelClosed, process),
        }
    }

    /// Processes the messages that the decoder has received completely. Returns the end reason if a message ended the
    /// run. Bytes after that message stay in the decoder for the next run of the session.
    fn receive(&mut self, decoder: &mut FrameDecoder, process: &WorkerProcess) -> Option<EndReason> {
        loop {
            let event = match decoder.next::<FromWorker>() {
                Ok(Some(message)) => ExecutionEvent::Message(message),
                Ok(None) => return None,
                Err(error) => ExecutionEvent::InvalidFrame(error.to_string()),
            };
            if let Some(end_reason) = self.on(event, process) {
                return Some(end_reason);
            }
        }
    }

    /// Processes one event of the run and carries out its effect. Returns the end reason if the run has ended.
    fn on(&mut self, event: ExecutionEvent, process: &WorkerProcess) -> Option<EndReason> {
        match self.state.on(event) {
            ExecutionEffect::Nothing => {}
            ExecutionEffect::Append(stream, text) => self.output.append(stream, text),
            ExecutionEffect::AskGate(call, request) => self.requests.submit(call, request),
            ExecutionEffect::Send(message) => return self.send(message),
            ExecutionEffect::Signal(signal) => process.signal(signal),
            ExecutionEffect::Wait(time) => self.set_timer(time),
            ExecutionEffect::Interrupt(time) => {
                process.signal(Signal::SIGINT);
                self.set_timer(time);
                return self.send(ToWorker::Interrupt);
            }
            ExecutionEffect::Kill(time) => {
                process.signal(Signal::SIGKILL);
                self.set_timer(time);
            }
            ExecutionEffect::End(end_reason) => return Some(end_reason),
        }
        None
    }

    fn send(&mut self, message: ToWorker) -> Option<EndReason> {
        let is_job = matches!(message, ToWorker::Run(_));
        match self.out.push(message, self.frame_bytes) {
            Ok(()) => None,
            Err(error) if is_job => Some(EndReason::ProtocolViolation(error.to_string())),
            // Unreachable: the gate limits the size of each reply to less than a frame.
            Err(error) => {
                tracing::error!("a reply to a worker cannot be encoded: {error}");
                None
            }
        }
    }

    fn set_timer(&mut self, time: Duration) {
        self.timer.as_mut().reset(tokio::time::Instant::now() + time);
        self.timer_is_set = true;
    }
}
