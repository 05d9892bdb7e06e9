//! Tests of the architecture: which crates and modules may depend on each other, and which names only certain source
//! files may use. These are the rules that neither Cargo nor Rust's visibility enforces.

mod crate_documentation;
mod crates;
mod module_cycles;
mod paths;
mod permitted_names;
mod source;
mod type_names;
