//! Tests of the worker sandbox: hostile programs attack it from inside a worker, and `/proc` shows the properties of
//! workers from outside.

mod ablation;
mod attack_targets;
mod hostile_programs;
mod imports;
mod isolation;
mod libraries;
pub(crate) mod missing_protections;
mod older_kernels;
mod server_profile;
mod service_attacks;
mod service_sweep;
mod service_targets;
mod syscall_sweep;
mod upstream_confinement;
mod worker_properties;
