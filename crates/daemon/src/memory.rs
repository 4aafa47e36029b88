//! How the process takes memory from the system.

/// Makes the kernel use small pages, also if the allocator asks for large pages (transparent huge pages).
///
/// The kernel clears a page before the process gets it. A large page has 2 MiB, and clearing it delays the message that
/// needed memory; with large pages a quiet Weir also has twice as much memory resident.
pub(crate) fn use_small_pages() {
    // A kernel without huge pages refuses the call, which does no harm.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
