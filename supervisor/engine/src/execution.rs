//! One run, from a leased worker to its one final answer.
//!
//! [`run`] is the supervisor's half of the conversation: it reads the worker's messages, has the gate answer its
//! requests, keeps the clock, and ends the worker whatever happens. `state.rs` decides what each event leads to, and
//! `driver.rs` carries that out.

mod answer;
mod calls;
mod cpu;
mod display;
mod driver;
mod ending;
mod held;
mod limits;
mod output;
mod requests;
mod shown;
mod state;
mod status;
mod stop;
mod to_json;
mod told;

use std::time::{Duration, Instant};

use lockhouse_gate::{CallRecord, Gate, Requester};
use lockhouse_protocol::Job;
use lockhouse_upstream::ai_client::Looks;

pub use answer::{Answer, InSession, Refusal, Sandbox};
pub use display::DisplayLimits;
use driver::{Clocks, Over, Run};
pub use ending::{Ending, Limit};
use held::Begun;
pub use held::{Held, Place};
pub use limits::ExecutionLimits;
use requests::Requests;
pub use shown::{Showing, Shown, shown, without_files};
use state::State;
pub use status::Status;
pub use stop::{Cancellation, Stop};
pub use to_json::parsed;

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

/// Runs `code` until it ends, the clock does, or `stop` says why it is to end.
pub async fn run(
    mut place: Place,
    code: String,
    from: Requester,
    gate: &Gate,
    limits: &ExecutionLimits,
    looks: Looks,
    stop: impl Future<Output = Cancellation>,
) -> Ended {
    let session = matches!(place, Place::Held(_));
    let job = Job { execution: from.caller.execution, code, servers: from.scope.servers().to_vec(), session };
    let Begun { conversation, out, cpu } = place.begin(limits.cpu, limits.conversation);
    let questions = from.caller.questions.clone();
    let state = State::new(conversation, *limits, session);
    let mut run = Run::new(state, Requests::new(gate, from), out, limits.conversation.frame_bytes);
    let started = Instant::now();
    looks.begin();
    let worker = place.worker_mut();
    let woken = if session { run.wake(worker) } else { None };
    let over = match woken.or_else(|| run.begin(job, &worker.process)) {
        Some(ending) => Over::Ended(ending),
        None => {
            let wall = questions.clock(limits.wall);
            let clocks = Clocks { started, wall, cpu, cpu_credit: limits.cpu_credit };
            run.drive(worker, clocks, stop, looks).await
        }
    };
    let (ending, death) = match over {
        Over::Ended(ending) => (ending, None),
        Over::Exited(death) => (run.exited(place.worker(), death, cpu), death),
    };
    let wall = started.elapsed();
    let Run { state, requests, output, out, frame_bytes, .. } = run;
    // A client that cancels leaves its questions as a program does that ends: it could ask again and again.
    if matches!(ending, Ending::Cancelled(why, _) if why != Cancellation::Client) {
        requests.cancel_approvals();
    }
    let (calls, waiting) = requests.abandon();
    // The kernel has told of a process that is gone; of one that is not, it is asked.
    let process = &place.worker().process;
    let in_all = death.map(|death| death.cpu).or_else(|| process.cpu_time());
    let cpu = in_all.map(|in_all| cpu.map_or(in_all, |budget| budget.used(in_all)));
    let peak_memory_bytes =
        death.map(|death| death.peak_memory_bytes).or_else(|| process.peak_memory_bytes());
    // A worker that is not held is killed here, as it is dropped: after its answer, whatever it still does.
    let held = match (place, state.into_resting()) {
        (Place::Held(held), Some(conversation)) => Some(held.rest(conversation, out, frame_bytes)),
        _ => None,
    };
    Ended {
        ending,
        stdout: output.stdout,
        stderr: output.stderr,
        calls,
        waiting,
        wall,
        cpu,
        peak_memory_bytes,
        held,
    }
}
