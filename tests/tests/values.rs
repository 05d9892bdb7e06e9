//! Tests of the values that programs return in answers: their JSON form, their truncation, and stored results that AI
//! clients can fetch later.

mod borders;
mod decoding;
mod files;
mod hostile;
mod mapping;
mod missing_values;
mod result_content;
mod stored_results;
mod truncation;
