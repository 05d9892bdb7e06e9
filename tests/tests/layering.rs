//! Rules on dependencies between crates and between modules, and on names that only certain files may use. Cargo and
//! visibility enforce the rest.

mod architecture_table;
mod crates;
mod module_cycles;
mod paths;
mod permitted_names;
mod source;
