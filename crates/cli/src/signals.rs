//! SIGINT and SIGTERM, in the three ways that commands end by them: `serve` in order, and at once on the second; what
//! can stop between its steps ([`interrupt`]); what has children that it waits for ([`stop_with_children`]).

use crate::exit::Exit;
use anyhow::Context;
use lab::{Interrupt, Interrupted};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// From here on the first SIGINT or SIGTERM sets the flag that this returns, and the second one ends the process at once.
pub fn end_at_once_on_second() -> anyhow::Result<Arc<AtomicBool>> {
    let ending = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The exit status is the one that a shell reports for a process that a signal ended. This action comes before the action
        // that sets the flag, so that the first signal does not end the process.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ending))
            .and_then(|_| flag::register(signal, Arc::clone(&ending)))
            .context("cannot handle signals")?;
    }
    Ok(ending)
}

/// From here on SIGINT and SIGTERM only set this: the work has to look at it, and to clean up.
pub fn interrupt() -> anyhow::Result<Interrupt> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&asked)).context("cannot handle signals")?;
    }
    Ok(Interrupt::by(asked))
}

/// The flag that SIGTERM sets from here on. SIGINT does nothing: a terminal sends it to who started this process as well, and
/// that one ends this process in its turn.
pub fn only_term() -> anyhow::Result<Arc<AtomicBool>> {
    let ending = Arc::new(AtomicBool::new(false));
    flag::register(SIGTERM, Arc::clone(&ending))
        .and(flag::register(SIGINT, Arc::new(AtomicBool::new(false))))
        .context("cannot handle signals")?;
    Ok(ending)
}

/// Set when a signal ends the process: then what fails meanwhile fails because of that.
static ENDING: AtomicBool = AtomicBool::new(false);

/// When a signal is about to end the process, lets it: the caller's own end would come first, and be taken for a failure.
pub fn let_end() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// From here on the first SIGINT or SIGTERM ends this process's children and calls `stop`, so that a measurement hands over
/// the figures measured so far. The next signal ends the children again, runs `clean_up`, and ends the process: for work that does not stop soon.
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
        // Before anything fails because of it.
        stop();
        end_children();
        // If stderr is gone there is nobody to tell.
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
        // It may just have ended by itself, and few have a process group of their own.
        let _ = nix::sys::signal::killpg(child, nix::sys::signal::Signal::SIGTERM);
        let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGTERM);
    }
}

/// The processes whose parent this one is.
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
