//! Tests of a host whose engines belong to the system: what the AI clients of a person can do, and what the agent of that
//! person cannot.

mod attempts;
mod authenticator;
mod clients;
mod host;
mod hostile_server;
mod operators;
mod presence;
mod proposal_proofs;
mod proposals;
mod server_logins;
mod server_secrets;
mod service_servers;
mod session_files;
mod session_servers;
mod tool_proofs;
