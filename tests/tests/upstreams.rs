//! Tests of the lifetime of upstream servers as programs observe it: starts, failures, changed tools, floods of
//! messages, and shutdown.

mod call_queue;
mod catalogue;
mod faults;
mod floods;
mod interrupted_calls;
mod invisible_characters;
mod package_runners;
mod pins;
mod reconnects;
mod reload;
mod scripted_server;
mod sse_refusals;
mod sse_transport;
mod start_and_stop;
mod unresponsive;
