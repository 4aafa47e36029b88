//! Receives the measurements of agents at the network's edge, on a thread of its own.
//!
//! ```text
//!   agents ══ UDP ══▶ ┌──────────── thread "agents" ─────────────┐
//!          ◀═ hello ═ │ Receiver: Sessions ─▶ bounds ─▶ Measured      │ ──▶ Inbox ──▶ topology's thread: flows, labels
//!                     └──────────────────────────────────────────┘ ──▶ metrics
//! ```
//!
//! The thread is not on the forwarding path, and the work that agents can cause is bounded: datagrams of 1,232 bytes,
//! and a limited number per second for each agent and in total (`receiver`). The thread passes on the newest rates of
//! each interface. Times are from this process's own monotonic clock.
//!
//! Start reading at [`Agents::start`]; `receiver` decides everything and knows no sockets.

mod receiver;
mod setup;

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fabric::edge::LONGEST_DATAGRAM;

use crate::lock::lock;
use crate::metrics::Registry;
use crate::system::random;
use crate::threads::{Priority, Thread};
use crate::topology::Inbox;
use receiver::{Receiver, Rest};

pub use setup::{Setup, load_key};

/// The longest time until the thread notices its end or a new configuration.
const LOOK: Duration = Duration::from_millis(100);

/// The running thread.
pub struct Agents {
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

#[derive(Default)]
struct Shared {
    next: Mutex<Option<Setup>>,
    stop: AtomicBool,
}

impl Agents {
    /// Listens, and starts the thread; does nothing without a setup. `inbox` gets the rates of interfaces.
    ///
    /// # Errors
    /// Fails if Weir cannot listen on the address.
    pub fn start(
        setup: Option<Setup>,
        inbox: Arc<Inbox>,
        metrics: Arc<Registry>,
    ) -> io::Result<Agents> {
        let shared = Arc::new(Shared::default());
        let Some(setup) = setup else { return Ok(Agents { shared, thread: None }) };
        let listen = setup.agents.listen;
        let socket = UdpSocket::bind(listen).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen for agents on {listen}: {error}"))
        })?;
        // A number that no earlier process has used.
        let life = u64::from_ne_bytes(random()?);
        let worker = Worker {
            socket,
            receiver: Receiver::new(&setup, life, Arc::clone(&metrics)),
            life,
            setup,
            origin: Instant::now(),
            shared: Arc::clone(&shared),
            inbox,
            metrics,
        };
        tracing::info!(address = %listen, "agents are listened to");
        let thread = Thread::start("agents", Priority::Low, move || worker.run())?;
        Ok(Agents { shared, thread: Some(thread) })
    }

    /// Sets another configuration. The address does not change.
    pub fn configure(&self, setup: Option<Setup>) {
        match setup {
            Some(_) if self.thread.is_none() => {
                tracing::warn!("agents are listened to from the next start on");
            }
            Some(setup) => *lock(&self.shared.next) = Some(setup),
            None if self.thread.is_some() => {
                tracing::warn!("agents are listened to until Weir ends");
            }
            None => {}
        }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(Thread::join);
    }
}

struct Worker {
    socket: UdpSocket,
    receiver: Receiver,
    life: u64,
    setup: Setup,
    origin: Instant,
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    metrics: Arc<Registry>,
}

impl Worker {
    fn run(mut self) {
        // One byte more than the maximum, so that longer datagrams are recognized.
        let mut buffer = [0; LONGEST_DATAGRAM + 1];
        while !self.shared.stop.load(Ordering::Relaxed) {
            let next = lock(&self.shared.next).take();
            if let Some(setup) = next {
                self.configure(setup);
            }
            match self.receiver.rest(self.now()) {
                // Datagrams that arrive meanwhile wait in the socket's buffer, and are lost if the buffer is full.
                Rest::For(rest) => std::thread::sleep(rest.min(LOOK)),
                Rest::Until(due) => {
                    let due = self.origin + Duration::from_nanos(due.0);
                    self.listen(&mut buffer, due.saturating_duration_since(Instant::now()));
                }
                Rest::None => self.listen(&mut buffer, LOOK),
            }
            self.receiver.handle_timeout(self.now());
            self.forward_changes();
        }
    }

    /// Receives a datagram, if one arrives in this time.
    fn listen(&mut self, buffer: &mut [u8], within: Duration) {
        // A timeout of zero would mean no timeout.
        let within = within.clamp(Duration::from_millis(1), LOOK);
        let read = self.socket.set_read_timeout(Some(within));
        match read.and_then(|()| self.socket.recv_from(buffer)) {
            Ok((length, from)) => {
                let datagram = buffer.get(..length).unwrap_or_default();
                self.receiver.handle_datagram(self.now(), from, datagram);
            }
            // No datagram arrived, or the host of a stopped agent answered by ICMP.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock
                        | ErrorKind::TimedOut
                        | ErrorKind::Interrupted
                        | ErrorKind::ConnectionRefused
                ) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot hear agents");
                std::thread::sleep(LOOK);
            }
        }
        while let Some((to, hello)) = self.receiver.poll_hello(self.now()) {
            // If the hello is lost, the agent's next datagram causes another hello.
            let _ = self.socket.send_to(&hello, to);
        }
    }

    fn forward_changes(&mut self) {
        while let Some((tenant, vnic, sent)) = self.receiver.poll_change() {
            self.inbox.sent(tenant, vnic, sent);
        }
        self.receiver.count();
    }

    fn configure(&mut self, setup: Setup) {
        if setup == self.setup {
            return;
        }
        // Removed interfaces are not measured any more; the others are measured again a moment later.
        for (tenant, vnic) in self.receiver.measured() {
            self.inbox.sent(tenant, vnic, None);
        }
        self.life = self.life.wrapping_add(1);
        self.receiver = Receiver::new(&setup, self.life, Arc::clone(&self.metrics));
        self.setup = setup;
    }

    fn now(&self) -> fabric::Instant {
        fabric::Instant(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use fabric::edge::{AgentId, EdgeKey, Message, Rates, Report, Sessions, Vnic};
    use fabric::{Bandwidth, MacAddress, TenantId};
    use std::net::SocketAddr;
    use std::os::unix::fs::PermissionsExt;

    const KEY: EdgeKey = EdgeKey([9; 16]);

    /// Agent "one" measures two interfaces of the first tenant with 8 Mbit/s; agent "two" measures none.
    pub(super) fn setup() -> Setup {
        let agents = config::Agents {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            key: "edge.key".into(),
            name: "weir".to_owned(),
            servers: vec!["one".to_owned(), "two".to_owned()],
            lifetime: Duration::from_secs(1),
        };
        let vnics = [1, 2].map(|last| Vnic {
            mac: mac(last),
            tenant: TenantId(1),
            bandwidth: Bandwidth::from_megabits_per_second(8),
            agent: Some(AgentId::of("one")),
        });
        Setup { agents, key: KEY, vnics: vnics.into() }
    }

    /// The sessions of an agent, for datagrams to and from Weir.
    pub(super) fn agent(name: &str, life: u64) -> Sessions {
        Sessions::new(KEY, AgentId::of(name), life, [AgentId::of("weir")])
    }

    fn mac(last: u8) -> MacAddress {
        MacAddress::new([2, 0, 0, 0, 0, last]).unwrap()
    }

    #[test]
    fn an_agent_key_file_must_have_a_valid_key_and_be_private() {
        let path = std::env::temp_dir().join(format!("weir-agents-key-{}", std::process::id()));
        let check = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            load_key(&path)
        };
        assert_eq!(check(&format!("{}\n", "09".repeat(16)), 0o600), Ok(KEY));
        assert!(check(&"09".repeat(16), 0o640).unwrap_err().contains("chmod 600"));
        assert!(check(&"09".repeat(15), 0o600).unwrap_err().contains("32 hexadecimal digits"));
        std::fs::remove_file(&path).unwrap();
        assert!(load_key(&path).unwrap_err().contains("cannot read [agents] key"));
    }

    /// An agent sends reports over a UDP socket, gets a hello, and the reports reach the inbox. After a changed
    /// configuration, the interfaces of the agent are not measured until the agent reports again.
    #[test]
    fn agent_reports_over_udp_reach_the_inbox() {
        let listen = SocketAddr::from(([127, 0, 0, 1], packet::free_port().unwrap()));
        let mut setup = setup();
        setup.agents.listen = listen;
        let (inbox, metrics) = (Arc::new(Inbox::default()), Registry::new());
        let agents =
            Agents::start(Some(setup.clone()), Arc::clone(&inbox), metrics.clone()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut agent = agent("one", 1);
        let start = Instant::now();
        let news = loop {
            assert!(start.elapsed() < Duration::from_secs(60), "nothing came");
            // The agent reports 4 Mbit/s, measured with the agent's own clock.
            let bytes = start.elapsed().as_micros() as u64 / 2;
            let reports = [Report { from: mac(1), to: mac(2), bytes, wish: Bandwidth::ZERO }];
            let rates = [Rates { vnic: mac(2), received: Bandwidth::ZERO, sent: Bandwidth::ZERO }];
            for message in [Message::Reports(reports.into()), Message::Rates(rates.into())] {
                let datagram = agent.seal(AgentId::of("weir"), &message).unwrap();
                socket.send_to(&datagram, listen).unwrap();
            }
            let mut buffer = [0; 2048];
            if let Ok((length, _)) = socket.recv_from(&mut buffer) {
                assert_eq!(agent.open(&buffer[..length]), Ok(None));
            }
            let news = inbox.wait(Some(Instant::now()), None);
            if news.sent.contains_key(&(TenantId(1), mac(1))) {
                break news.sent;
            }
        };
        let sent = news[&(TenantId(1), mac(1))].as_ref().unwrap();
        assert!(sent[&mac(2)] > Bandwidth::ZERO, "{sent:?}");
        assert!(metrics.process.agents.taken.get() > 0);
        setup.agents.servers.pop();
        agents.configure(Some(setup));
        let news = inbox.wait(Some(start + Duration::from_secs(60)), None);
        assert_eq!(news.sent.get(&(TenantId(1), mac(1))), Some(&None));
        let second = Agents::start(Some(self::setup()), inbox, metrics);
        assert!(second.is_ok(), "port 0 is always free");
        let mut taken = self::setup();
        taken.agents.listen = listen;
        let refused = Agents::start(Some(taken), Arc::default(), Registry::new());
        assert!(refused.err().unwrap().to_string().contains("cannot listen for agents on"));
    }
}
