//! `make bench-parts`: the time to write and read a message of a worker.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints a table")]

#[path = "../../tests/bench/measure.rs"]
mod measure;

use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::{CallId, FromWorker, ServerName, Stream, ToWorker, ToolName, WorkerRequest};
use measure::measure;

const FRAME_BYTES_MAX: u32 = 8 * 1024 * 1024;

fn main() {
    measure::print_header();
    let request = WorkerRequest::Call {
        server: ServerName::new("github").unwrap(),
        tool: ToolName::new("list_issues").unwrap(),
        arguments: br#"{"owner":"acme","repo":"app","state":"open"}"#.to_vec(),
        decoded: Vec::new(),
        timeout_ms: None,
        line: Some(3),
    };
    let call = FromWorker::Request { call: CallId(1), request };
    let frame = encode(&call, FRAME_BYTES_MAX).unwrap();
    measure("encode a call", || encode(&call, FRAME_BYTES_MAX));
    measure("decode a call", || decode::<FromWorker>(&frame, FRAME_BYTES_MAX));
    let output = FromWorker::Output { stream: Stream::Stdout, text: "x".repeat(64 * 1024) };
    let frame = encode(&output, FRAME_BYTES_MAX).unwrap();
    measure("decode 64 KiB of output", || decode::<FromWorker>(&frame, FRAME_BYTES_MAX));
    let reply = ToWorker::Reply { call: CallId(1), reply: Ok(vec![b'1'; 1024 * 1024]) };
    let frame = encode(&reply, FRAME_BYTES_MAX).unwrap();
    measure("encode a result of 1 MiB", || encode(&reply, FRAME_BYTES_MAX));
    measure("decode a result of 1 MiB", || decode::<ToWorker>(&frame, FRAME_BYTES_MAX));
}
