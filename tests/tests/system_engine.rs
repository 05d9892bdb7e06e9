//! Tests of a host whose engines belong to the system: what the AI clients of a person can do, and what the agent of that
//! person cannot.

mod attempts;
mod clients;
mod host;
mod hostile_server;
mod operators;
mod service_servers;
