//! What a front reports about itself: its requests in flight, for which a drain waits, its counters for the metrics, and
//! the spans of its clients' calls. All of it ends with the connection.

use std::collections::HashMap;

use lockhouse_base::lifecycle::{InFlightGuard, Lifecycle};
use lockhouse_base::telemetry::traces;
use lockhouse_base::telemetry::{self, OpenConnections};
use lockhouse_messages::{FrontCounters, SpanId, SpanOutcome, ToolCallSpan};
use parking_lot::Mutex;
use tracing::Span;

/// Maximum number of open spans of a front. Further calls have no span.
const SPANS_MAX: usize = 1_024;

/// The reports of one front.
#[derive(Default)]
pub(super) struct FrontReports {
    /// Makes a drain wait for the requests of AI clients in flight in the front. Held as long as the front listens,
    /// unless it has reported that there are none: so a drain waits at least for its report.
    in_flight: Mutex<Option<InFlightGuard>>,
    open_connections: Mutex<OpenConnections>,
    spans: Mutex<HashMap<SpanId, Span>>,
}

impl FrontReports {
    /// Records whether the front has requests of AI clients in flight.
    pub(super) fn set_in_flight(&self, lifecycle: &Lifecycle, has_requests: bool) {
        let mut in_flight = self.in_flight.lock();
        match has_requests {
            true if in_flight.is_none() => *in_flight = Some(lifecycle.begin_request()),
            true => {}
            false => *in_flight = None,
        }
    }

    /// Adds the counters of the front to the metrics of this process.
    pub(super) fn count(&self, counters: FrontCounters) {
        let FrontCounters {
            responses,
            refusals,
            authentication_failures,
            opened_connections,
            open_connections,
        } = counters;
        responses.into_iter().for_each(|(status, count)| telemetry::count_http_responses(status, count));
        refusals.into_iter().for_each(|(why, count)| telemetry::count_http_refusals(why.as_str(), count));
        telemetry::count_auth_failures(authentication_failures);
        telemetry::count_http_connections(opened_connections);
        self.open_connections.lock().set(open_connections);
    }

    /// Begins the span of an AI client's call.
    pub(super) fn begin_span(&self, id: SpanId, call: ToolCallSpan) {
        let ToolCallSpan { tool, context } = call.bounded();
        let mut spans = self.spans.lock();
        if spans.len() < SPANS_MAX {
            spans.insert(id, traces::tool_call(&tool, context));
        }
    }

    /// Returns the span with this number; an absent one if there is none.
    pub(super) fn span(&self, id: Option<SpanId>) -> Span {
        id.and_then(|id| self.spans.lock().get(&id).cloned()).unwrap_or_else(Span::none)
    }

    pub(super) fn end_span(&self, id: SpanId, outcome: SpanOutcome) {
        let Some(span) = self.spans.lock().remove(&id) else { return };
        match outcome {
            SpanOutcome::Ok => {}
            SpanOutcome::ToolError => traces::record_error(&span, "tool_error"),
            SpanOutcome::RpcError(code) => traces::record_rpc_error(&span, code),
        }
    }

    /// Forgets everything when the front disconnects.
    pub(super) fn end(&self) {
        *self.in_flight.lock() = None;
        *self.open_connections.lock() = OpenConnections::default();
        self.spans.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn open_spans_are_bounded() {
        let reports = FrontReports::default();
        for id in 0..2 * SPANS_MAX as u64 {
            reports.begin_span(SpanId(id), ToolCallSpan { tool: "run_code".into(), context: None });
        }
        assert_eq!(reports.spans.lock().len(), SPANS_MAX);
        reports.end_span(SpanId(0), SpanOutcome::Ok);
        assert_eq!(reports.spans.lock().len(), SPANS_MAX - 1);
        reports.end();
        assert!(reports.spans.lock().is_empty());
    }

    #[tokio::test]
    async fn a_drain_waits_for_the_requests_of_a_front_and_not_for_one_that_has_gone() {
        for ends in [FrontReports::end as fn(&FrontReports), |reports| drop(reports.in_flight.lock().take())]
        {
            let (lifecycle, reports) = (Lifecycle::new(Duration::from_secs(3_600)), FrontReports::default());
            reports.set_in_flight(&lifecycle, true);
            reports.set_in_flight(&lifecycle, true);
            let drained = lifecycle.clone();
            let draining = tokio::spawn(async move { drained.drain().await });
            lifecycle.draining().cancelled().await;
            tokio::task::yield_now().await;
            assert!(!draining.is_finished());
            ends(&reports);
            draining.await.expect("a task");
        }
    }
}
