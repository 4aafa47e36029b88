//! How the process takes memory from the system.

/// Takes memory in small pages, also where the allocator asks for large ones (transparent huge pages).
///
/// The kernel clears a page before the process gets it. A large page has 2 MiB, and clearing it delays the message that needed
/// memory; with large pages a quiet Weir also has twice as much memory resident.
pub fn use_small_pages() {
    // A kernel without huge pages refuses, and needs nothing.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
