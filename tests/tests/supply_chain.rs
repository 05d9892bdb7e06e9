//! Tests of what a build says about itself: its version, its files, and the list of its components.

mod bill_of_materials;
mod version;
