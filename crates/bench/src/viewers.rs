//! Emulates viewers of the page. Each viewer opens a stream of server-sent events, and reads all
//! events.

use crate::Error;
use crate::measure::Collector;
use crate::system::Target;
use report::Better;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The path of the page's events.
const EVENTS: &str = "/api/v1/events";
/// The time that a viewer waits for the header of the answer, and then for each event.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first summary is more work than the following summaries, so no run begins during the first
/// summary.
const SETTLING: Duration = Duration::from_secs(1);

/// All viewers of one run.
#[derive(Debug)]
pub(crate) struct Viewers {
    count: usize,
    viewers: Vec<Viewer>,
    since: Instant,
}

#[derive(Debug)]
struct Viewer {
    stream: TcpStream,
    /// The received bytes of the body.
    bytes: Arc<AtomicU64>,
    before: u64,
    thread: JoinHandle<()>,
}

impl Viewers {
    pub(crate) fn new(count: usize) -> Self {
        Self { count, viewers: Vec::new(), since: Instant::now() }
    }

    /// Opens all streams, and waits until the first events are read.
    pub(crate) fn begin(&mut self, target: &Target) -> Result<(), Error> {
        let Some(api) = target.api else {
            return Err(Error::System("viewers need a REST interface: there is none".to_owned()));
        };
        for _ in 0..self.count {
            let viewer = Viewer::open(api)
                .map_err(|error| Error::System(format!("a viewer gets no events: {error}")))?;
            self.viewers.push(viewer);
        }
        std::thread::sleep(SETTLING);
        self.since = Instant::now();
        for viewer in &mut self.viewers {
            viewer.before = viewer.bytes.load(Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn finish(self, collector: Option<&mut Collector>) {
        let seconds = self.since.elapsed().as_secs_f64().max(1e-3);
        let mut most = 0.0_f64;
        let mut served = 0;
        for viewer in self.viewers {
            let bytes = viewer.bytes.load(Ordering::Relaxed) - viewer.before;
            most = most.max(bytes as f64 / seconds);
            // If a viewer's stream has ended, the viewer's thread has ended.
            served += usize::from(bytes > 0 && !viewer.thread.is_finished());
            // The stream may have ended already.
            let _ = viewer.stream.shutdown(Shutdown::Both);
            // The thread reads and counts, and does not panic.
            let _ = viewer.thread.join();
        }
        let Some(collector) = collector else { return };
        collector.sample("viewers_served", "", Better::Higher, served as f64);
        collector.sample("bytes_per_viewer_per_s", "bytes/s", Better::Lower, most);
    }
}

impl Viewer {
    fn open(api: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&api, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let host = api.to_string();
        let answer = rest::ask(stream.try_clone()?, &rest::Request::new("GET", EVENTS, &host))?;
        if answer.status != 200 {
            return Err(io::Error::other(format!("{EVENTS} answers {}", answer.status)));
        }
        let bytes = Arc::new(AtomicU64::new(0));
        let (counted, mut body) = (Arc::clone(&bytes), answer.body);
        let read = move || {
            let mut part = vec![0; 64 << 10];
            while let Ok(count @ 1..) = body.read(&mut part) {
                counted.fetch_add(count as u64, Ordering::Relaxed);
            }
        };
        let thread = Builder::new().name("bench-viewer".to_owned()).spawn(read)?;
        Ok(Self { stream, bytes, before: 0, thread })
    }
}
