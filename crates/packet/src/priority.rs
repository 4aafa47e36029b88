//! Threads that must not be late.

use crate::error::{Error, Result};
use crate::system;

/// From now on the calling thread runs before all others that ask for no such thing: it is real-time (`SCHED_FIFO`),
/// with the lowest of those priorities. It has to sleep most of the time, or the others starve. Threads that it starts
/// are ordinary ones.
///
/// # Errors
/// [`Error::Privilege`] without `CAP_SYS_NICE`.
pub fn run_first() -> Result<()> {
    system::set_real_time()
        .map_err(|error| Error::system("give a thread real-time priority", error))
}
