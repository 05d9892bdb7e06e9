//! What a front reports to its engine: for metrics and traces, and the ends of MCP sessions.

use std::sync::atomic::Ordering;

use lockhouse_messages::{FrontCounters, SpanId, SpanOutcome, ToEngine, ToolCallSpan};

use crate::engine_client::EngineClient;

/// The span of a call of an AI client, which the engine exports. Ends when this value is dropped.
pub struct CallSpan {
    engine: EngineClient,
    id: SpanId,
    outcome: SpanOutcome,
}

impl EngineClient {
    /// Reports what the front has counted since the previous report.
    pub fn report_counters(&self, counters: FrontCounters) {
        self.shared().notify(ToEngine::Counters(Box::new(counters)));
    }

    /// Reports that an MCP session has ended, so that no other front continues it.
    pub fn report_session_end(&self, id: String) {
        self.shared().notify(ToEngine::McpSessionEnded(id));
    }

    /// Begins the span of a call of an AI client. Returns `None` if the engine does not export traces.
    pub fn begin_span(&self, span: impl FnOnce() -> ToolCallSpan) -> Option<CallSpan> {
        if !self.shared().settings.borrow().has_traces {
            return None;
        }
        let id = SpanId(self.shared().last_span.fetch_add(1, Ordering::Relaxed) + 1);
        self.shared().notify(ToEngine::BeginSpan(id, Box::new(span().bounded())));
        Some(CallSpan { engine: self.with_span(id), id, outcome: SpanOutcome::Ok })
    }
}

impl CallSpan {
    /// Returns the connection to the engine for the requests that this call causes.
    pub fn engine(&self) -> EngineClient {
        self.engine.clone()
    }

    /// Ends the span with the outcome of the call.
    pub fn end(mut self, outcome: SpanOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        self.engine.shared().notify(ToEngine::EndSpan(self.id, self.outcome));
    }
}
