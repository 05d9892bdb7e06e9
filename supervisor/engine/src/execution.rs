//! Executes one run of submitted code in its worker and returns the result.
//!
//! [`run`] is the supervisor's side of the conversation with the worker: it reads the worker's messages, passes the
//! worker's requests to the gate, and enforces the limits. At the end, the worker is killed, or paused for the next run
//! of its session. `state_machine.rs` decides what each event leads to, `state_machine/deadline_and_interrupt.rs`
//! enforces the deadline, and `driver.rs` does the I/O.

mod answer;
mod answer_truncation;
mod call_summary;
mod cancellation;
mod captured_output;
mod complete_answer;
mod cpu_budget;
mod display_limits;
mod driver;
mod end_reason;
mod error_report;
mod limits;
mod outbox;
mod refusal;
mod session_worker;
mod state_machine;
mod worker_requests;

use std::time::{Duration, Instant};

use lockhouse_gate::{CallRecord, Gate, ReturnedFiles, RunContext};
use lockhouse_protocol::Job;
use lockhouse_run_channel::ProgressRequests;

pub use answer::ExecutionAnswer;
pub use answer_truncation::{
    DisplayOptions, FileStorage, RenderedAnswer, describe_files, omit_files, render_answer,
};
pub use cancellation::{Cancellation, StopHandle};
use captured_output::CapturedOutput;
pub use captured_output::{OutputFollower, OutputPart};
pub use complete_answer::parse_value;
pub use display_limits::DisplayLimits;
use driver::{RunClocks, RunDriver, RunOutcome};
pub use end_reason::{EndReason, ReachedLimit};
pub use limits::ExecutionLimits;
pub use lockhouse_messages::{ResultFile, RunError, RunStatus, Sandbox, SessionReport};
pub use refusal::Refusal;
use session_worker::RunStart;
pub use session_worker::{RunWorker, SessionWorker};
use state_machine::StateMachine;
use worker_requests::WorkerRequests;

/// The result of a run: how it ended, what it printed, which calls it made, and the resources it used.
#[derive(Debug)]
pub struct RunResult {
    pub end_reason: EndReason,
    pub stdout: String,
    pub stderr: String,
    pub calls: Vec<CallRecord>,
    /// How many calls had no reply when the run ended. They are the last ones in `calls`.
    pub calls_in_flight: usize,
    pub wall: Duration,
    pub cpu: Option<Duration>,
    pub peak_memory_bytes: Option<u64>,
    /// The files that the program returned, apart from those in its value.
    pub files: ReturnedFiles,
    /// The worker of the session, paused for the next run. `None` for a run without a session, and if the
    /// session cannot have another run.
    pub session_worker: Option<SessionWorker>,
}

/// The program of a run.
#[derive(Debug)]
pub struct SubmittedProgram {
    pub code: String,
    /// Whether the program is only checked, and does not run.
    pub check_only: bool,
    /// The tools that the program mentions, as JSON: see [`Job::tools`].
    pub tools: Vec<u8>,
    /// Receives the output of the program while it runs. `None` if only the answer contains the output.
    pub output: Option<OutputFollower>,
}

/// Runs a program until it ends, reaches a limit, or the future `stop` completes with the cause of a cancellation.
pub async fn run(
    mut run_worker: RunWorker,
    program: SubmittedProgram,
    context: RunContext,
    gate: &Gate,
    limits: &ExecutionLimits,
    progress_requests: ProgressRequests,
    stop: impl Future<Output = Cancellation> + Send,
) -> RunResult {
    let session = matches!(run_worker, RunWorker::Session(_));
    let SubmittedProgram { code, check_only, tools, output } = program;
    let (execution, servers) = (context.execution(), context.scope.servers().to_vec());
    let (files, left_out) = (context.files.clone(), context.scope.left_out());
    let given = gate.job_files(&context);
    let job = Job { execution, code, servers, session, check_only, tools, files: given, left_out };
    let RunStart { conversation, out, cpu } = run_worker.start_run(limits.cpu, limits.conversation);
    let questions = context.channel.questions().clone();
    let state = StateMachine::new(conversation, *limits, session);
    let started = Instant::now();
    let requests = WorkerRequests::new(gate, context);
    let output = CapturedOutput::with_follower(output);
    let mut run = RunDriver::new(state, requests, output, out, limits.conversation.frame_bytes);
    progress_requests.mark_started();
    let worker = run_worker.worker_mut();
    let end_reason = if session { run.resume(worker) } else { None };
    let outcome = match end_reason.or_else(|| run.begin(job, &worker.process)) {
        Some(end_reason) => RunOutcome::Ended(end_reason),
        None => {
            let wall = questions.timer(limits.wall);
            let clocks = RunClocks { started, wall, cpu, cpu_credit: limits.cpu_credit };
            run.drive(worker, clocks, stop, progress_requests).await
        }
    };
    let (end_reason, death) = match outcome {
        RunOutcome::Ended(end_reason) => (end_reason, None),
        RunOutcome::Exited(death) => (run.exited(run_worker.worker(), death, cpu), death),
    };
    let wall = started.elapsed();
    let RunDriver { state, requests, output, out, frame_bytes, .. } = run;
    // The questions of pending approvals close with the run in every case. If the program or the AI client ended the run,
    // they count as refusals: otherwise a client could cancel and ask the approver again and again.
    if matches!(&end_reason, EndReason::Cancelled(cause, _) if *cause != Cancellation::Client) {
        requests.cancel_approvals();
    }
    let (calls, calls_in_flight) = requests.abandon();
    // The kernel reported the resource use of an exited process. A live process is queried instead.
    let process = &run_worker.worker().process;
    let total_cpu = death.map(|death| death.cpu).or_else(|| process.cpu_time());
    let cpu = total_cpu.map(|total_cpu| cpu.map_or(total_cpu, |budget| budget.used(total_cpu)));
    let peak_memory_bytes =
        death.map(|death| death.peak_memory_bytes).or_else(|| process.peak_memory_bytes());
    // A worker that is not returned to its session is killed by this drop, after its answer is complete.
    let session_worker = match (run_worker, state.into_idle_conversation()) {
        (RunWorker::Session(session_worker), Some(conversation)) => {
            Some(session_worker.pause(conversation, out, frame_bytes))
        }
        _ => None,
    };
    RunResult {
        end_reason,
        stdout: output.stdout,
        stderr: output.stderr,
        calls,
        calls_in_flight,
        wall,
        cpu,
        peak_memory_bytes,
        files: files.take_returned(),
        session_worker,
    }
}
