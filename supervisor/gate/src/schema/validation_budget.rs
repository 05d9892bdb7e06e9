//! Limits the cost of validating arguments against a schema: each read of the arguments is counted, and a
//! validation that exceeds its budget is aborted.
//!
//! A malicious schema with matching arguments could make the validator run or recurse without end, and the
//! validator has no limits of its own.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Number of reads of JSON values between two checks of a validation's time limit.
const READS_PER_CLOCK_CHECK: u32 = 32;
/// Maximum number of bytes of stack that the validator may use. The stack of each thread has at least two million
/// bytes.
const STACK_BYTES_MAX: usize = 1024 * 1024;

/// The limits of one validation of arguments against a schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Maximum number of reads of JSON values in the arguments.
    pub(super) reads: u32,
    /// Maximum duration of the validation, checked at reads.
    pub(super) time: Duration,
}

/// The error for a validation that exceeded its budget and was aborted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BudgetExceeded;

/// Counts the reads of one validation, and aborts the validation when it exceeds its budget.
#[derive(Debug)]
pub(super) struct ValidationMeter {
    /// The number of reads that are still permitted.
    left: Cell<u32>,
    /// The time limit of the validation, as a point in time.
    until: Instant,
    /// An address in the stack frame from which the validation was started. The distance to it measures the stack
    /// use.
    stack: usize,
}

impl ValidationMeter {
    /// Runs `work`, which validates arguments and counts its reads with the meter. Fails if `work` exceeds the
    /// budget.
    pub(super) fn run<T>(budget: Budget, work: impl FnOnce(&Self) -> T) -> Result<T, BudgetExceeded> {
        let meter = Self {
            left: Cell::new(budget.reads),
            until: Instant::now() + budget.time,
            stack: stack_address(),
        };
        // Values that `work` was changing when it was aborted are not used again.
        match catch_unwind(AssertUnwindSafe(|| work(&meter))) {
            Ok(done) => Ok(done),
            Err(_) => Err(BudgetExceeded),
        }
    }

    /// Counts one read. Aborts the validation by unwinding if the number of reads, the time or the stack limit is
    /// exceeded.
    pub(super) fn count_read(&self) {
        let left = self.left.get();
        let deep = self.stack.abs_diff(stack_address()) > STACK_BYTES_MAX;
        let late = left.is_multiple_of(READS_PER_CLOCK_CHECK) && Instant::now() > self.until;
        if left == 0 || deep || late {
            // The validator cannot be cancelled, so it is aborted by unwinding. `resume_unwind` does not call the panic
            // hook.
            resume_unwind(Box::new(BudgetExceeded));
        }
        self.left.set(left - 1);
    }
}

/// Returns an address in the current stack frame.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_beyond_its_budget_is_aborted() {
        let look = |times: u32, budget: Budget| {
            ValidationMeter::run(budget, |meter| (0..times).for_each(|_| meter.count_read()))
        };
        let budget = Budget { reads: 100, time: Duration::from_secs(60) };
        assert_eq!((look(100, budget), look(101, budget)), (Ok(()), Err(BudgetExceeded)));
        assert_eq!(look(1_000, Budget { reads: 1_000, time: Duration::ZERO }), Err(BudgetExceeded));
    }

    #[test]
    fn recursion_is_aborted_before_the_stack_overflows() {
        fn deeper(meter: &ValidationMeter) -> usize {
            meter.count_read();
            if std::hint::black_box(true) { 1 + std::hint::black_box(deeper(meter)) } else { 0 }
        }
        let budget = Budget { reads: u32::MAX, time: Duration::from_secs(60) };
        assert_eq!(ValidationMeter::run(budget, deeper), Err(BudgetExceeded));
    }
}
