//! The requests of running code: with the gate until they have a reply, and then a record of each call.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lockhouse_gate::{Asked, CallRecord, Gate, Requester};
use lockhouse_messages::Course;
use lockhouse_protocol::{CallId, Reply, Request};

use super::output::Output;
use lockhouse_upstream::ai_client::TAIL_BYTES_MAX;

type Answering<'a> = BoxFuture<'a, (CallId, Reply, Option<CallRecord>)>;

/// All of one run. The conversation bounds how many are open at one time.
pub(super) struct Requests<'a> {
    gate: &'a Gate,
    from: Requester,
    answering: FuturesUnordered<Answering<'a>>,
    /// Calls without a reply yet, and when they began.
    under_way: BTreeMap<CallId, (Asked, Instant)>,
    records: Vec<CallRecord>,
}

impl<'a> Requests<'a> {
    pub(super) fn new(gate: &'a Gate, from: Requester) -> Self {
        Self {
            gate,
            from,
            answering: FuturesUnordered::new(),
            under_way: BTreeMap::new(),
            records: Vec::new(),
        }
    }

    /// Has the gate answer a request, while [`Self::next`] is waited for.
    pub(super) fn ask(&mut self, call: CallId, request: Request) {
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

    /// The next reply. None while no request is open. It may be waited for again and again.
    pub(super) async fn next(&mut self) -> Option<(CallId, Reply)> {
        let (call, reply, record) = self.answering.next().await?;
        self.under_way.remove(&call);
        self.records.extend(record);
        Some((call, reply))
    }

    /// Withdraws the questions to people that calls are waiting for.
    pub(super) fn cancel_approvals(&self) {
        self.from.approvals.cancel();
    }

    /// What the run is doing.
    pub(super) fn course(&self, elapsed: Duration, output: &Output) -> Course {
        let mut under_way = BTreeMap::new();
        for (asked, _) in self.under_way.values() {
            *under_way.entry(format!("{}.{}", asked.server, asked.item)).or_default() += 1;
        }
        let person = self.from.caller.questions.oldest();
        let stdout = output.tail(TAIL_BYTES_MAX).to_owned();
        Course { elapsed, calls: self.records.len(), under_way, person, stdout }
    }

    /// At the end of the run: a record of each call, and how many of them, the last ones, have no reply. Whether those took
    /// effect is not known, and their records say so.
    pub(super) fn abandon(self) -> (Vec<CallRecord>, usize) {
        let Self { gate, from, under_way, mut records, answering } = self;
        let waiting = under_way.len();
        for (call, (asked, since)) in under_way {
            records.push(gate.abandoned(&from, call, &asked, since.elapsed()));
        }
        drop(answering);
        (records, waiting)
    }
}
