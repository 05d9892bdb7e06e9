//! Tests `lockhouse run` on a terminal and in scripts.

mod broken_host;
mod configuration;
mod errors;
mod invalid_input;
mod limits;
mod results;
mod unavailable_features;
