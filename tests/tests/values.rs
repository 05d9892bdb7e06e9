//! Tests of the values that programs return in answers: their JSON form, their truncation, and stored results that AI
//! clients can fetch later.

mod decoding;
mod files;
mod hostile;
mod mapping;
mod missing_values;
mod stored_results;
mod truncation;
