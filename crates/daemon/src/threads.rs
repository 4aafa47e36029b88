//! Threads that run as long as Weir runs.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// Such a thread.
pub(crate) struct Thread(JoinHandle<()>);

impl Thread {
    /// Starts a thread. A panic in the thread ends the process: otherwise the process would look healthy without doing
    /// the thread's work. The state is safe at any moment, and a supervisor starts the process again.
    pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let thread = name.to_owned();
        let run = move || {
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                // The log may panic for the same reason as the thread; the process ends in any case.
                let tell = || tracing::error!(thread, "a thread ended by a panic; Weir ends");
                let _ = catch_unwind(AssertUnwindSafe(tell));
                std::process::abort();
            }
        };
        Builder::new().name(name.to_owned()).spawn(run).map(Thread)
    }

    /// Wakes the thread if it is parked.
    pub(crate) fn unpark(&self) {
        self.0.thread().unpark();
    }

    /// Waits for the end of the thread.
    pub(crate) fn join(self) {
        // A panic has ended the process already.
        let _ = self.0.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// The variable that is set in the process that has to panic.
    const PANICS: &str = "WEIR_TEST_PANICS";
    const SIGABRT: i32 = 6;

    #[test]
    #[allow(clippy::panic)]
    fn a_panic_of_one_ends_the_process() {
        if env::var_os(PANICS).is_some() {
            return Thread::start("panics", || panic!("as it has to")).unwrap().join();
        }
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "threads::tests::a_panic_of_one_ends_the_process"]);
        let output = again.env(PANICS, "1").output().unwrap();
        assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
    }
}
