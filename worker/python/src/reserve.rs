//! Keeps some address space free, so that an error can still be reported after code has used up the memory limit of its
//! worker.
#![allow(unsafe_code, reason = "mmap has no safe wrapper")]

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// A memory mapping that uses only address space, because none of its pages is ever written. A Python object would not
/// do: it could lie in recycled memory, and Python would fill it with zeros and so write its pages.
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

/// Reserves `bytes` bytes of address space, unless a reserve exists already. Raises MemoryError if too little address
/// space is left.
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
