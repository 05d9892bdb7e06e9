//! Values of programs in answers: their JSON form, truncation, and stored results that AI clients can fetch later.

mod decoding;
mod files;
mod hostile;
mod mapping;
mod stored_results;
mod truncation;
