//! Tests of Python packages: which workers have them, `lockhouse python`, and the packages of PyPI that
//! `tests/libraries/prepare.sh packages` installs.

mod commands;
pub(crate) mod environments;
mod installers;
pub(crate) mod libraries;
mod report;
mod selection;
