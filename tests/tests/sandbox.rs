//! Tests of the worker sandbox with hostile programs, from inside the worker and through `/proc`.

mod ablation;
mod attack_targets;
mod hostile_programs;
mod imports;
mod isolation;
mod libraries;
mod missing_protections;
mod syscall_sweep;
mod upstream_confinement;
mod worker_properties;
