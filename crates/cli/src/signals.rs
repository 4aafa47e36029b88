//! Handles SIGINT and SIGTERM in three ways. `serve` ends in order, and at once after the second signal. A command with
//! steps stops between two steps ([`interrupt`]). A command with child processes ends the children and waits for the
//! children ([`stop_with_children`]).

use crate::exit::Exit;
use anyhow::Context;
use lab::{Interrupt, Interrupted};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// After this call, the first SIGINT or SIGTERM sets the returned flag, and the second signal ends the process at once.
pub fn end_at_once_on_second() -> anyhow::Result<Arc<AtomicBool>> {
    let ending = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A shell reports this exit status for a process that a signal ended. This action comes before the action that
        // sets the flag, so that the first signal does not end the process.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ending))
            .and_then(|_| flag::register(signal, Arc::clone(&ending)))
            .context("cannot handle signals")?;
    }
    Ok(ending)
}

/// After this call, SIGINT and SIGTERM only set the returned flag. The work has to check the flag, and to clean up.
pub fn interrupt() -> anyhow::Result<Interrupt> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&asked)).context("cannot handle signals")?;
    }
    Ok(Interrupt::by(asked))
}

/// Returns a flag that SIGTERM sets after this call. SIGINT has no effect: a terminal also sends SIGINT to the parent
/// process, and the parent process ends this process.
pub fn only_term() -> anyhow::Result<Arc<AtomicBool>> {
    let ending = Arc::new(AtomicBool::new(false));
    flag::register(SIGTERM, Arc::clone(&ending))
        .and(flag::register(SIGINT, Arc::new(AtomicBool::new(false))))
        .context("cannot handle signals")?;
    Ok(ending)
}

/// Set when a signal ends the process. An error after this moment is caused by the signal.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Waits for the end if a signal is about to end the process. Otherwise the caller would end first, and its end would
/// look like a failure.
pub fn let_end() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// After this call, the first SIGINT or SIGTERM ends this process's children and calls `stop`, so that a measurement
/// returns the figures measured so far. The next signal ends the children again, runs `clean_up`, and ends the process.
/// The second signal is for work that does not stop soon.
pub fn stop_with_children(
    stop: impl Fn() + Send + 'static,
    clean_up: impl FnOnce() + Send + 'static,
) -> anyhow::Result<()> {
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    let wait = move || {
        let mut signals = signals.forever();
        if signals.next().is_none() {
            return;
        }
        // The request to stop comes before any error that the end of the children causes.
        stop();
        end_children();
        // If stderr is closed, the message has no receiver.
        let _ = writeln!(
            std::io::stderr(),
            "\nending; what was measured is the result (once more: end at once)"
        );
        if signals.next().is_none() {
            return;
        }
        ENDING.store(true, Ordering::SeqCst);
        end_children();
        clean_up();
        std::process::exit(Exit::of(&Interrupted.into()) as i32);
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .context("cannot start a thread")?;
    Ok(())
}

fn end_children() {
    for child in children() {
        // The child may have ended already, and few children have their own process group.
        let _ = nix::sys::signal::killpg(child, nix::sys::signal::Signal::SIGTERM);
        let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGTERM);
    }
}

/// The child processes of this process.
fn children() -> Vec<nix::unistd::Pid> {
    let own = nix::unistd::Pid::this();
    let parent = |pid: i32| -> Option<i32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten();
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| parent(*pid) == Some(own.as_raw()))
        .map(nix::unistd::Pid::from_raw)
        .collect()
}
