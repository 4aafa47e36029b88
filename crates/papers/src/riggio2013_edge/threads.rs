//! Waits during a measurement, and ends the threads of a measurement.

use lab::{Interrupt, Interrupted};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Ends the threads, also when the work fails.
pub(super) struct Ending<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) on: &'a AtomicBool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.on.store(false, Ordering::SeqCst);
    }
}

/// Waits for `time`, or until an interrupt.
pub(super) fn wait(time: Duration, interrupt: &Interrupt) -> Result<(), Interrupted> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        interrupt.check()?;
        std::thread::sleep(Duration::from_millis(20).min(end - Instant::now().min(end)));
    }
    Ok(())
}
