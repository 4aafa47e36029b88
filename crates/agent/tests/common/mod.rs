//! A lab whose hosts send TCP and UDP to each other.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)] // Helpers; not every user needs all.

use agent::edge::{Edge, Settings, Site};
use fabric::{Bandwidth, MacAddress};
use lab::{Lab, LabGuard, Options, StateDirectory, Topology};
use packet::in_namespace;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A lab of the test's own.
pub struct Network {
    pub lab: LabGuard,
    _alone: MutexGuard<'static, ()>,
}

/// One at a time: rates are measured, and they share the machine's cores.
static ALONE: Mutex<()> = Mutex::new(());

impl Network {
    pub fn new(name: &str, topology: &Topology) -> Network {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = format!("e{}-{name}", std::process::id());
        let state = StateDirectory::at(std::env::temp_dir().join(format!("weir-{prefix}")));
        let options = Options {
            name: Some(prefix),
            state,
            static_arp: true,
            ephemeral: true,
            ..Options::default()
        };
        Network { lab: LabGuard::new(Lab::up(topology, &options).unwrap()), _alone: alone }
    }

    /// `single,N` with a rate.
    pub fn single(name: &str, hosts: usize, rate: &str) -> Network {
        let mut topology = Topology::builder();
        topology.switch("s1").unwrap();
        for number in 1..=hosts {
            let host = format!("h{number}");
            topology.host(&host).unwrap().link(&host, "s1", rate.parse().ok()).unwrap();
        }
        Network::new(name, &topology.build().unwrap())
    }

    pub fn at<T: Send>(&self, node: &str, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.lab.namespace(node).unwrap(), work).unwrap()
    }

    pub fn run(&self, node: &str, line: &str) -> String {
        let output = self.lab.exec(node, &["sh", "-c", line]).unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn site(&self, host: &str, bandwidth: &str, agent: &str) -> Site {
        let found = self.lab.topology().host(host).unwrap();
        let rate: lab::Rate = bandwidth.parse().unwrap();
        Site {
            name: host.to_owned(),
            mac: MacAddress::new(found.mac.0).unwrap(),
            bandwidth: Bandwidth::from_bits_per_second(rate.bits_per_second()),
            tenant: "red".to_owned(),
            agent: agent.to_owned(),
            namespace: Some(self.lab.namespace(host).unwrap()),
            interface: "eth0".to_owned(),
        }
    }

    /// One agent for all.
    pub fn settings(&self, vnics: &[(&str, &str)]) -> Settings {
        Settings {
            own: "agent".to_owned(),
            vnics: vnics.iter().map(|(host, rate)| self.site(host, rate, "agent")).collect(),
            listen: None,
            peers: Vec::new(),
            hypervisor: None,
            key: None,
        }
    }

    fn address(&self, host: &str) -> IpAddr {
        self.lab.topology().host(host).unwrap().ip.into()
    }

    /// TCP as fast as it goes.
    pub fn tcp(&self, from: &str, to: &str, port: u16) -> Flow {
        let address = SocketAddr::new(self.address(to), port);
        let mut flow = Flow::default();
        let listener = self.at(to, || TcpListener::bind(address)).unwrap();
        let stream = self.at(from, || std::net::TcpStream::connect(address)).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        reader.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (stop, arrived) = (Arc::clone(&flow.stop), Arc::clone(&flow.arrived));
        let read = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !stop.load(SeqCst) {
                match reader.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => drop(arrived.fetch_add(count as u64, SeqCst)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        });
        let stop = Arc::clone(&flow.stop);
        stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        let write = std::thread::spawn(move || {
            let mut stream = stream;
            let buffer = vec![7; 1 << 14];
            while !stop.load(SeqCst) {
                match stream.write(&buffer) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        });
        flow.threads = vec![read, write];
        flow
    }

    /// UDP of that rate, in bursts of 5 ms, whether it gets through or not.
    pub fn udp(&self, from: &str, to: &str, port: u16, bits_per_second: u64) -> Flow {
        const LENGTH: usize = 1400;
        let address = SocketAddr::new(self.address(to), port);
        let mut flow = Flow::default();
        let receiver = self.at(to, || UdpSocket::bind(address)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let sender =
            self.at(from, || UdpSocket::bind(SocketAddr::new(self.address(from), 0))).unwrap();
        sender.set_nonblocking(true).unwrap();
        let (stop, arrived) = (Arc::clone(&flow.stop), Arc::clone(&flow.arrived));
        let read = std::thread::spawn(move || {
            let mut buffer = vec![0; 2048];
            while !stop.load(SeqCst) {
                if let Ok(count) = receiver.recv(&mut buffer) {
                    arrived.fetch_add(count as u64, SeqCst);
                }
            }
        });
        let stop = Arc::clone(&flow.stop);
        let send = std::thread::spawn(move || {
            let start = Instant::now();
            let mut sent = 0_u64;
            while !stop.load(SeqCst) {
                let due = start.elapsed().as_secs_f64() * bits_per_second as f64 / 8.0;
                while (sent as f64) < due {
                    // What the socket has no room for is lost, as it would be in a virtual machine.
                    let _ = sender.send_to(&[9; LENGTH], address);
                    sent += (LENGTH + 42) as u64;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        flow.threads = vec![read, send];
        flow
    }
}

/// Traffic that goes on until it is dropped.
#[derive(Default)]
pub struct Flow {
    stop: Arc<AtomicBool>,
    arrived: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Payload that arrived so far, in bytes.
    pub fn arrived(&self) -> u64 {
        self.arrived.load(SeqCst)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Goodput of each over that time, in Mbit/s.
pub fn rates(flows: &[&Flow], time: Duration) -> Vec<f64> {
    let before: Vec<u64> = flows.iter().map(|flow| flow.arrived()).collect();
    let start = Instant::now();
    std::thread::sleep(time);
    let elapsed = start.elapsed().as_secs_f64();
    let rate = |(flow, before): (&&Flow, u64)| (flow.arrived() - before) as f64 * 8e-6 / elapsed;
    flows.iter().zip(before).map(rate).collect()
}

/// An agent that works while `work` does.
pub fn with_agents<T>(settings: &[Settings], work: impl FnOnce() -> T) -> T {
    let mut edges: Vec<Edge> = settings.iter().map(|one| Edge::open(one).unwrap()).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for edge in &mut edges {
            let stop = &stop;
            scope.spawn(move || edge.run(stop, |_| Ok::<(), agent::Error>(())).unwrap());
        }
        let ending = Ending(&stop);
        let result = work();
        drop(ending);
        result
    })
}

/// Ends the agents when the work fails, too.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
