//! Observes the effect of an attack on the process of the system under test, from outside: descriptors, log lines,
//! memory, and whether `/healthz` answers.

use super::seen::Seen;
use crate::rest;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time between two observations.
const EVERY: Duration = Duration::from_millis(250);
/// The time that an answer about health may take.
const HEALTH: Duration = Duration::from_secs(1);

/// A thread that observes the process until the results are requested.
#[derive(Debug)]
pub(crate) struct Watcher {
    stop: Sender<()>,
    thread: JoinHandle<Seen>,
}

impl Watcher {
    /// Starts the thread. Returns `None` if no thread can be started.
    pub(crate) fn start(
        pids: Vec<u32>,
        api: Option<SocketAddr>,
        log: Option<PathBuf>,
    ) -> Option<Self> {
        let (stop, stopped) = channel();
        let work = move || {
            let since = Instant::now();
            let lines = || log.as_deref().and_then(lines);
            let before = lines();
            let mut seen = Seen::default();
            loop {
                look(&mut seen, &pids, api);
                if !matches!(stopped.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout)) {
                    break;
                }
            }
            let more = before.zip(lines()).map(|(before, after)| after.saturating_sub(before));
            seen.log_lines_per_s = more.map(|lines| lines as f64 / since.elapsed().as_secs_f64());
            seen
        };
        let thread = std::thread::Builder::new().name("bench-watch".to_owned()).spawn(work).ok()?;
        Some(Self { stop, thread })
    }

    pub(crate) fn finish(self) -> Seen {
        // The thread may have ended by a panic, which has already printed its message.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }
}

fn look(seen: &mut Seen, pids: &[u32], api: Option<SocketAddr>) {
    let open = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).ok().map(Iterator::count);
    let descriptors: Vec<usize> = pids.iter().filter_map(open).collect();
    if !descriptors.is_empty() {
        seen.descriptors = seen.descriptors.max(Some(descriptors.iter().sum()));
    }
    let Some(api) = api else { return };
    let asked = Instant::now();
    let is_answered = rest::text(api, "GET", "/healthz", "", HEALTH).is_ok_and(|it| it.0 == 200);
    let health = seen.health.get_or_insert_default();
    health.unanswered += u64::from(!is_answered);
    health.slowest = health.slowest.max(asked.elapsed());
}

/// The number of lines of a file. The file is read in parts, because a flooded log is large.
fn lines(file: &Path) -> Option<u64> {
    let mut file = fs::File::open(file).ok()?;
    let mut piece = vec![0; 1 << 16];
    let mut lines = 0;
    loop {
        let count = file.read(&mut piece).ok()?;
        if count == 0 {
            return Some(lines);
        }
        lines += piece.iter().take(count).filter(|byte| **byte == b'\n').count() as u64;
    }
}
