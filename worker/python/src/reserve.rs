//! Address space that is kept free for the report of an error, when code has used up the memory limit of its worker.
#![allow(unsafe_code, reason = "mmap has no safe wrapper")]

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Mapped memory of which no page is ever touched. An allocation by Python could be in recycled memory, which it would
/// fill with zeros.
struct Reserve {
    start: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Reserve {}

static RESERVE: Mutex<Option<Reserve>> = Mutex::new(None);

impl Reserve {
    fn new(bytes: usize) -> Option<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping, at an address that the kernel chooses, replaces nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED { None } else { NonNull::new(start).map(|start| Self { start, bytes }) }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing points into it.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

/// Reserves address space, unless it is reserved already. Raises MemoryError if there is too little.
#[pyfunction]
pub(crate) fn keep_reserve(bytes: usize) -> PyResult<()> {
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    if reserve.is_none() {
        *reserve = Some(Reserve::new(bytes).ok_or_else(|| PyMemoryError::new_err(()))?);
    }
    Ok(())
}

/// Frees the reserved address space for other uses.
#[pyfunction]
pub(crate) fn release_reserve() {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner).take();
}
