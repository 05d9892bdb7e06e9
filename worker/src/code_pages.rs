//! Gives back the memory of program code that only the preparation of a zygote needed.
#![allow(unsafe_code, reason = "the segments of the process, and madvise")]

use std::ffi::{c_int, c_void};

/// Releases the code of the program and its libraries: the kernel maps what is still needed again when it runs. Workers
/// map code for themselves in any case, because a fork does not copy these mappings.
pub(crate) fn release() {
    // SAFETY: the callback needs no data, and is called only during this call.
    unsafe { libc::dl_iterate_phdr(Some(release_object), std::ptr::null_mut()) };
}

/// Releases the code of one loaded object, which is the program or a library.
///
/// # Safety
/// `object` is what `dl_iterate_phdr` passes.
unsafe extern "C" fn release_object(object: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    let page = page_bytes();
    // SAFETY: the pointer and the number of headers are valid during the callback.
    let (base, headers) = unsafe {
        let object = &*object;
        (object.dlpi_addr as usize, std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()))
    };
    let is_code = |flags: u32| flags & libc::PF_X != 0 && flags & libc::PF_W == 0;
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && is_code(header.p_flags)) {
        let start = base + header.p_vaddr as usize;
        let (first, end) = (start & !(page - 1), start + header.p_filesz as usize);
        // SAFETY: the pages are of a file and were never writable, so the kernel can read them again.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(first), end - first, libc::MADV_DONTNEED) };
    }
    0
}

fn page_bytes() -> usize {
    // SAFETY: only reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
