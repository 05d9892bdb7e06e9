//! Bytes as JavaScript strings.

use rquickjs::{Ctx, Exception, Result};

/// Converts a string of the characters U+0000 to U+00FF to bytes.
pub(super) fn latin1_to_bytes(ctx: &Ctx<'_>, latin1: &str) -> Result<Vec<u8>> {
    latin1
        .chars()
        .map(u8::try_from)
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| Exception::throw_type(ctx, "the string contains characters beyond U+00FF"))
}
