//! A number of bytes that is there at once, and grows again with time.
//!
//! Not `governor`: what is counted here has come already, and may be more than the burst. It is charged in full, and whoever
//! sent it waits until the debt is paid; `governor` would charge nothing for what does not fit.

use std::time::{Duration, Instant};

/// A token bucket, whose tokens are bytes.
#[derive(Debug)]
pub struct Allowance {
    burst: f64,
    bytes_per_second: f64,
    left: f64,
    counted: Instant,
}

impl Allowance {
    pub fn new(burst: f64, bytes_per_second: f64) -> Self {
        Self { burst, bytes_per_second, left: burst, counted: Instant::now() }
    }

    /// Takes these bytes. If there are not so many, it says how long it takes until there are.
    pub fn take(&mut self, bytes: usize) -> Result<(), Duration> {
        let elapsed = std::mem::replace(&mut self.counted, Instant::now()).elapsed();
        self.left = (self.left + elapsed.as_secs_f64() * self.bytes_per_second).min(self.burst);
        self.left -= bytes as f64;
        match self.left >= 0.0 {
            true => Ok(()),
            false => Err(Duration::from_secs_f64(-self.left / self.bytes_per_second)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_with_time_and_never_beyond_the_burst() {
        let mut allowance = Allowance::new(1_000.0, 100.0);
        assert!(allowance.take(900).is_ok());
        let wait = allowance.take(600).expect_err("more than there is");
        assert!((Duration::from_secs(4)..=Duration::from_secs(5)).contains(&wait), "{wait:?}");
        allowance.counted -= Duration::from_secs(3_600);
        assert!(allowance.take(1_000).is_ok(), "an hour later the burst is there again");
        assert!(allowance.take(100).is_err(), "and no more than the burst");
    }
}
