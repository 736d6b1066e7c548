//! One setting of glibc's allocator, for clients that open a QUIC connection per request.

/// Size in bytes from which on a block always comes fresh from the kernel, whose pages are zero and cost nothing until
/// they are used.
#[cfg(target_env = "gnu")]
const FRESH_FROM: i32 = 1 << 20;

/// Keeps large zeroed blocks cheap, however many there were before.
///
/// Each quinn endpoint has a receive buffer of some 3 MB and uses few pages of it. glibc takes such a block from the
/// kernel at first. When the first one is freed, it raises its threshold (mallopt(3), `M_MMAP_THRESHOLD`), reuses
/// memory from then on, and has to clear all of it: from about 150 ms after the start of a client, each new connection
/// was charged with that.
pub(crate) fn keep_large_blocks_fresh() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two numbers and changes a parameter of the allocator under the allocator's own lock.
    unsafe {
        // It returns 0 where the allocator does not know the parameter: connections are dearer then, and nothing else.
        libc::mallopt(libc::M_MMAP_THRESHOLD, FRESH_FROM);
    }
}
