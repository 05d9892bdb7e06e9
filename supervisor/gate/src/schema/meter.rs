//! What a validation may cost: every look at its arguments is counted, and the look that is one too many ends it.
//!
//! A schema comes from an upstream server and arguments come from a program. Between them they can make a validator work
//! for as long as they like, and as deep as they like; the validator itself knows no bound.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Looks between two looks at the clock.
const LOOKS_PER_GLANCE: u32 = 32;
/// How deep the validator may go, in bytes of stack. A thread has at least two million.
const STACK_BYTES_MAX: usize = 1024 * 1024;

/// What one validation may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) looks: u32,
    pub(super) time: Duration,
}

/// A validation was ended because it cost too much.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// Counts one validation.
#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<u32>,
    until: Instant,
    stack: usize,
}

impl Meter {
    /// Runs `work` until it is done, or has cost more than the budget.
    pub(super) fn within<T>(budget: Budget, work: impl FnOnce(&Self) -> T) -> Result<T, Exhausted> {
        let meter = Self {
            left: Cell::new(budget.looks),
            until: Instant::now() + budget.time,
            stack: stack_address(),
        };
        // Nothing is used afterwards that was in the making when it ended.
        match catch_unwind(AssertUnwindSafe(|| work(&meter))) {
            Ok(done) => Ok(done),
            Err(_) => Err(Exhausted),
        }
    }

    pub(super) fn look(&self) {
        let left = self.left.get();
        let deep = self.stack.abs_diff(stack_address()) > STACK_BYTES_MAX;
        let late = left.is_multiple_of(LOOKS_PER_GLANCE) && Instant::now() > self.until;
        if left == 0 || deep || late {
            // The one way out of a library that asks nobody whether to go on. The panic hook is not told.
            resume_unwind(Box::new(Exhausted));
        }
        self.left.set(left - 1);
    }
}

/// Near the end of the stack that is in use.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_costs_more_than_its_budget_ends() {
        let look =
            |times: u32, budget: Budget| Meter::within(budget, |meter| (0..times).for_each(|_| meter.look()));
        let budget = Budget { looks: 100, time: Duration::from_secs(60) };
        assert_eq!((look(100, budget), look(101, budget)), (Ok(()), Err(Exhausted)));
        assert_eq!(look(1_000, Budget { looks: 1_000, time: Duration::ZERO }), Err(Exhausted));
    }

    #[test]
    fn work_that_goes_too_deep_ends_before_the_stack_does() {
        fn deeper(meter: &Meter) -> usize {
            meter.look();
            if std::hint::black_box(true) { 1 + std::hint::black_box(deeper(meter)) } else { 0 }
        }
        let budget = Budget { looks: u32::MAX, time: Duration::from_secs(60) };
        assert_eq!(Meter::within(budget, deeper), Err(Exhausted));
    }
}
