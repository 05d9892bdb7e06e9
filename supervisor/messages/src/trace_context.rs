//! The spans of OpenTelemetry traces that the engine opens on behalf of a front: one for each `tools/call` of an AI
//! client.

use serde::{Deserialize, Serialize};

/// Maximum length of a `traceparent`, in bytes. The only version of the format that exists has 55.
const TRACEPARENT_BYTES_MAX: usize = 256;
/// Maximum length of a `tracestate`, in bytes. Recipients must pass on at least 512.
const TRACESTATE_BYTES_MAX: usize = 4_096;
/// Maximum number of characters of a tool's name in a span. AI clients can send longer names.
const TOOL_CHARS_MAX: usize = 80;

/// The trace that a request belongs to, as the AI client gives it (W3C Trace Context).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    pub traceparent: String,
    pub tracestate: Option<String>,
}

/// The number of a span that a front has opened. A front numbers its spans upwards from 1 and never reuses a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpanId(pub u64);

/// The span of a `tools/call` of an AI client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallSpan {
    pub tool: String,
    /// `None` if the client gave none: the span then begins a new trace.
    pub context: Option<TraceContext>,
}

/// How a `tools/call` of an AI client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpanOutcome {
    /// The call was answered with a result, or was cancelled.
    Ok,
    /// The call was answered with a result that is an error.
    ToolError,
    /// The call was answered with a JSON-RPC error with this code.
    RpcError(i32),
}

impl ToolCallSpan {
    /// Returns the span without the parts that exceed their maximum length: the rest of a tool's name, and a trace context
    /// that no client has reason to send.
    #[must_use]
    pub fn bounded(self) -> Self {
        let tool = match self.tool.char_indices().nth(TOOL_CHARS_MAX) {
            Some((end, _)) => self.tool[..end].to_owned(),
            None => self.tool,
        };
        let context = self.context.filter(|context| context.traceparent.len() <= TRACEPARENT_BYTES_MAX);
        let context = context.map(|TraceContext { traceparent, tracestate }| TraceContext {
            traceparent,
            tracestate: tracestate.filter(|state| state.len() <= TRACESTATE_BYTES_MAX),
        });
        Self { tool, context }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_too_long_are_left_out() {
        let span = |tool: usize, parent: usize, state: usize| {
            let context =
                TraceContext { traceparent: "0".repeat(parent), tracestate: Some("a".repeat(state)) };
            let span = ToolCallSpan { tool: "é".repeat(tool), context: Some(context) }.bounded();
            let state = span.context.as_ref().map(|context| context.tracestate.as_ref().map(String::len));
            (span.tool.chars().count(), state)
        };
        assert_eq!(span(80, 256, 4_096), (80, Some(Some(4_096))));
        assert_eq!(span(81, 55, 4_097), (80, Some(None)));
        assert_eq!(span(0, 257, 1), (0, None));
    }
}
