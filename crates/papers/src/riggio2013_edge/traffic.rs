//! Sends TCP and UDP between a lab's hosts from this process: the sockets are in the hosts' namespaces.

use anyhow::Context;
use lab::Lab;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The sizes that links and VNICs count: a frame is the payload and the headers of Ethernet, IP and UDP.
const PAYLOAD: usize = 1472;
const FRAME: usize = PAYLOAD + 42;
const PORT: u16 = 5001;
/// The interval at which waiting threads check for the end.
const LOOK: Duration = Duration::from_millis(50);

/// UDP from one host to another host.
pub(super) struct Udp {
    sender: UdpSocket,
    to: SocketAddr,
    /// The receiver's socket prevents ICMP replies.
    _receiver: UdpSocket,
}

impl Udp {
    pub(super) fn new(lab: &Lab, from: &str, to: &str) -> anyhow::Result<Udp> {
        let ip = |host: &str| lab.topology().host(host).map(|host| host.ip);
        let own = SocketAddr::from((ip(from).context("no such host")?, 0));
        let address = SocketAddr::from((ip(to).context("no such host")?, PORT));
        let sender = packet::in_namespace(&lab.namespace(from)?, || UdpSocket::bind(own))??;
        let receiver = packet::in_namespace(&lab.namespace(to)?, || UdpSocket::bind(address))??;
        sender.set_nonblocking(true)?;
        Ok(Udp { sender, to: address, _receiver: receiver })
    }

    /// Sends frames at a rate, one burst per interval, while `on` is true.
    pub(super) fn send(&self, bits_per_second: u64, every: Duration, on: &AtomicBool) {
        let start = Instant::now();
        let mut sent = 0.0;
        while on.load(Ordering::SeqCst) {
            let due = start.elapsed().as_secs_f64() * bits_per_second as f64 / 8.0;
            while sent < due {
                // A frame without room in the buffer is lost, as in a virtual machine.
                let _ = self.sender.send_to(&[0; PAYLOAD], self.to);
                sent += FRAME as f64;
            }
            std::thread::sleep(every);
        }
    }
}

/// Connects two hosts. Returns the sender's stream and the receiver's stream.
pub(super) fn connect(lab: &Lab, from: &str, to: &str) -> anyhow::Result<(TcpStream, TcpStream)> {
    let ip = lab.topology().host(to).context("no such host")?.ip;
    let address = SocketAddr::from((ip, PORT));
    let listener = packet::in_namespace(&lab.namespace(to)?, || TcpListener::bind(address))??;
    let dial = || TcpStream::connect_timeout(&address, Duration::from_secs(5));
    let sender = packet::in_namespace(&lab.namespace(from)?, dial)??;
    let (receiver, _) = listener.accept()?;
    sender.set_write_timeout(Some(LOOK))?;
    receiver.set_read_timeout(Some(LOOK))?;
    Ok((sender, receiver))
}

/// Writes as much as possible until `stop`.
pub(super) fn write(mut stream: TcpStream, stop: &AtomicBool) {
    let buffer = vec![0; 1 << 14];
    while !stop.load(Ordering::SeqCst) {
        if let Err(error) = stream.write(&buffer)
            && error.kind() != ErrorKind::WouldBlock
        {
            return;
        }
    }
}

/// Counts the bytes that arrive.
pub(super) fn read(mut stream: TcpStream, stop: &AtomicBool, arrived: &AtomicU64) {
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::SeqCst) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => drop(arrived.fetch_add(count as u64, Ordering::SeqCst)),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return,
            Err(_) => {}
        }
    }
}
