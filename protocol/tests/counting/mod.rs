//! An allocator that counts what a thread asks for. A test binary that has this module measures with it.
#![allow(unsafe_code, reason = "An allocator that counts is unsafe in itself")]
#![allow(dead_code)] // Not each test measures both.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The largest piece that this thread asked for.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    /// What it holds now, more or less than at the start, and the most that it held.
    static HELD: Cell<isize> = const { Cell::new(0) };
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

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are held while one is copied to the other.
        count(size);
        // SAFETY: the caller's promise is passed on.
        let moved = unsafe { System.realloc(block, layout, size) };
        hold(-(layout.size() as isize));
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) };
        hold(-(layout.size() as isize));
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The largest allocation, in bytes, of what it runs; 0 when there is none.
pub(crate) fn largest<T>(work: impl FnOnce() -> T) -> (usize, T) {
    LARGEST.set(0);
    let done = work();
    (LARGEST.get(), done)
}

/// The most that it held at one time, in bytes, above what was held before; 0 when it allocates nothing.
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    ((MOST.get() - before).unsigned_abs(), done)
}
