//! What a destination did with a batch.

/// What a destination did with a batch that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acceptance {
    Accepted,
    /// The destination accepted the batch without this number of its records, which it rejects for good.
    Partial {
        rejected: u64,
        reason: String,
    },
}
