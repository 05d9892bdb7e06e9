//! A global allocator that counts the allocations of each thread, for tests that check memory bounds.
#![allow(unsafe_code, reason = "An allocator that counts is unsafe in itself")]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The size in bytes of the largest single allocation of this thread since this value was last reset.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    /// The bytes that this thread has allocated minus the bytes that it has freed. The number is negative if the thread
    /// frees memory that other threads have allocated.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The maximum of [`HELD`] since this value was last reset, in bytes.
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: usize) {
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
    hold(bytes as isize);
}

fn hold(bytes: isize) {
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
    let _ = MOST.try_with(|most| most.set(most.get().max(HELD.get())));
}

// SAFETY: all methods call the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller guarantees what the system allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller guarantees what the system allocator requires.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new block exist together while one is copied to the other.
        count(size);
        // SAFETY: the caller guarantees what the system allocator requires.
        let moved = unsafe { System.realloc(block, layout, size) };
        hold(-(layout.size() as isize));
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what the system allocator requires.
        unsafe { System.dealloc(block, layout) };
        hold(-(layout.size() as isize));
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work` and returns its largest single allocation in bytes, with its result.
pub(crate) fn largest<T>(work: impl FnOnce() -> T) -> (usize, T) {
    LARGEST.set(0);
    let done = work();
    (LARGEST.get(), done)
}

/// Runs `work`, and returns the maximum number of bytes that `work` had allocated at one time, with its result.
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    ((MOST.get() - before).unsigned_abs(), done)
}
