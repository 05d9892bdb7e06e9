//! Token bucket that limits the rate of bytes that have already been received.
//!
//! The crate `governor` cannot be used, because here a chunk of bytes may be larger than the burst. The chunk is
//! charged in full, and its sender waits until the debt is refilled; `governor` would charge nothing for such a chunk.

use std::time::{Duration, Instant};

/// A token bucket whose tokens are bytes. The number of tokens may become negative.
#[derive(Debug)]
pub struct TokenBucket {
    burst_bytes: f64,
    bytes_per_second: f64,
    tokens: f64,
    refilled_at: Instant,
}

impl TokenBucket {
    pub fn new(burst_bytes: f64, bytes_per_second: f64) -> Self {
        Self { burst_bytes, bytes_per_second, tokens: burst_bytes, refilled_at: Instant::now() }
    }

    /// Takes `bytes` tokens from the bucket, even if fewer are left.
    ///
    /// # Errors
    ///
    /// If the number of tokens becomes negative: the time until it is zero again.
    pub fn take(&mut self, bytes: usize) -> Result<(), Duration> {
        let elapsed = std::mem::replace(&mut self.refilled_at, Instant::now()).elapsed();
        self.tokens = (self.tokens + elapsed.as_secs_f64() * self.bytes_per_second).min(self.burst_bytes);
        self.tokens -= bytes as f64;
        match self.tokens >= 0.0 {
            true => Ok(()),
            false => Err(Duration::from_secs_f64(-self.tokens / self.bytes_per_second)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_with_time_and_never_beyond_the_burst() {
        let mut bucket = TokenBucket::new(1_000.0, 100.0);
        assert!(bucket.take(900).is_ok());
        let wait = bucket.take(600).expect_err("more than there is");
        assert!((Duration::from_secs(4)..=Duration::from_secs(5)).contains(&wait), "{wait:?}");
        bucket.refilled_at -= Duration::from_secs(3_600);
        assert!(bucket.take(1_000).is_ok(), "an hour later the burst is there again");
        assert!(bucket.take(100).is_err(), "and no more than the burst");
    }
}
