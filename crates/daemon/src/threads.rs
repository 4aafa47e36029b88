//! Threads that run as long as Weir runs.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

use rustix::process::{getpriority_process, setpriority_process};

/// The niceness of [`Priority::Low`], added to the niceness of the process. A thread with 10 more gets a tenth of the
/// time of an event loop if both always want to run.
const LOWER: i32 = 10;
const LOWEST: i32 = 19;

/// The priority of a thread when more threads want to run than there are cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Switches and controllers wait for the thread.
    Normal,
    /// The thread's work can wait until the event loops have a pause.
    Low,
}

/// Such a thread.
pub(crate) struct Thread(JoinHandle<()>);

impl Thread {
    /// Starts a thread. A panic in the thread ends the process: otherwise the process would look healthy without doing
    /// the thread's work. The state is safe at any moment, and a supervisor starts the process again.
    pub(crate) fn start(
        name: &str,
        priority: Priority,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<Thread> {
        let thread = name.to_owned();
        let run = move || {
            if priority == Priority::Low {
                lower();
            }
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                // The log may panic for the same reason as the thread; the process ends in any case.
                let log = || tracing::error!(thread, "a thread ended by a panic; Weir ends");
                let _ = catch_unwind(AssertUnwindSafe(log));
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

/// Lowers the priority of this thread, and of the threads that it starts.
fn lower() {
    // On Linux both calls are about a thread. A process may always lower a priority.
    let niceness = getpriority_process(None).unwrap_or(0);
    let _ = setpriority_process(None, (niceness + LOWER).min(LOWEST));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// The environment variable that is set in the process that panics.
    const PANICS: &str = "WEIR_TEST_PANICS";
    const SIGABRT: i32 = 6;

    #[test]
    #[allow(clippy::panic)]
    fn a_panic_of_a_thread_ends_the_process() {
        if env::var_os(PANICS).is_some() {
            return Thread::start("panics", Priority::Normal, || panic!("as it has to"))
                .unwrap()
                .join();
        }
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "threads::tests::a_panic_of_a_thread_ends_the_process"]);
        let output = again.env(PANICS, "1").output().unwrap();
        assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
    }

    #[test]
    fn low_priority_applies_only_to_the_thread_and_to_child_threads() {
        let before = getpriority_process(None).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let start = |priority| {
            let sender = sender.clone();
            let ask = move || {
                let child = std::thread::spawn(|| getpriority_process(None).unwrap());
                let own = getpriority_process(None).unwrap();
                sender.send((own, child.join().unwrap())).unwrap();
            };
            Thread::start("asks", priority, ask).unwrap().join();
            receiver.recv().unwrap()
        };
        let low = (before + LOWER).min(LOWEST);
        assert_eq!(start(Priority::Low), (low, low));
        assert_eq!(start(Priority::Normal), (before, before));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
