//! The requests of the running code, such as tool calls. The gate answers each request, and each call
//! leaves a record for the answer of the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lockhouse_gate::{CallRecord, Gate, RunContext, ToolRequest};
use lockhouse_messages::Progress;
use lockhouse_protocol::{CallId, Reply, WorkerRequest};

use super::captured_output::CapturedOutput;
use lockhouse_run_channel::TAIL_BYTES_MAX;

type PendingReply<'a> = BoxFuture<'a, (CallId, Reply, Option<CallRecord>)>;

/// All requests of the code of one run. The number of unanswered requests is not limited here: the check of the
/// worker's messages limits it.
pub(super) struct WorkerRequests<'a> {
    gate: &'a Gate,
    from: Arc<RunContext>,
    pending_replies: FuturesUnordered<PendingReply<'a>>,
    /// The calls that have no reply yet, with the times at which they were requested.
    in_flight: BTreeMap<CallId, (ToolRequest, Instant)>,
    records: Vec<CallRecord>,
}

impl<'a> WorkerRequests<'a> {
    pub(super) fn new(gate: &'a Gate, from: RunContext) -> Self {
        Self {
            gate,
            from: Arc::new(from),
            pending_replies: FuturesUnordered::new(),
            in_flight: BTreeMap::new(),
            records: Vec::new(),
        }
    }

    /// Submits a request of the code to the gate. The gate works on the request, and its reply arrives, only while
    /// [`Self::next`] is polled.
    pub(super) fn submit(&mut self, call: CallId, request: WorkerRequest) {
        let asked = self.gate.tool_request(&self.from, &request);
        if let Some(asked) = &asked {
            self.in_flight.insert(call, (asked.clone(), Instant::now()));
        }
        let (gate, from) = (self.gate, self.from.clone());
        self.pending_replies.push(Box::pin(async move {
            let (reply, record) = gate.handle_request(&from, call, asked, request).await;
            (call, reply, record)
        }));
    }

    /// Returns the next reply of the gate, or `None` if the code waits for no reply. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<(CallId, Reply)> {
        let (call, reply, record) = self.pending_replies.next().await?;
        self.in_flight.remove(&call);
        self.records.extend(record);
        Some((call, reply))
    }

    /// Records that the run is ended by a cause other than its program and its AI client, so that unanswered approval
    /// questions do not count as refusals.
    pub(super) fn cancel_approvals(&self) {
        self.from.approvals.cancel();
    }

    /// Returns the progress of the run, for an AI client that asks for it. `elapsed` is the time since the run started,
    /// and `output` the captured output of the run.
    pub(super) fn progress(&self, elapsed: Duration, output: &CapturedOutput) -> Progress {
        let mut in_flight = BTreeMap::new();
        for (asked, _) in self.in_flight.values() {
            *in_flight.entry(format!("{}.{}", asked.server, asked.item)).or_default() += 1;
        }
        let person = self.from.channel.questions().oldest();
        let stdout = output.tail(TAIL_BYTES_MAX).to_owned();
        Progress { elapsed, finished_calls: self.records.len(), in_flight, waiting_for: person, stdout }
    }

    /// Ends all requests when the run ends. Returns a record of each call, and the number of calls without a reply,
    /// whose records come last. Whether a call without a reply took effect is unknown, and its record says so.
    pub(super) fn abandon(self) -> (Vec<CallRecord>, usize) {
        let Self { gate, from, in_flight, mut records, pending_replies } = self;
        let in_flight_count = in_flight.len();
        for (call, (asked, since)) in in_flight {
            records.push(gate.record_abandoned(&from, call, &asked, since.elapsed()));
        }
        drop(pending_replies);
        (records, in_flight_count)
    }
}
