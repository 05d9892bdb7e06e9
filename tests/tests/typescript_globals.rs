//! Tests of what TypeScript programs find besides the language: locales, URLs, bytes and hash functions, as in Node.js.

mod locales;
mod modules;
