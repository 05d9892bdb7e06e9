//! Tests of a host whose engines belong to the system: what the AI clients of a person can do, and what the agent of that
//! person cannot.

mod clients;
mod host;
