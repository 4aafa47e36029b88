//! A small relay in the place of a system under test, with faults that a test chooses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToController,
    ToSwitch,
}

/// The behaviour of the relay for a frame: returns the bytes to write, and the tenant whose end
/// gets them.
pub(crate) type Behaviour =
    Arc<dyn Fn(Way, usize, u64, Vec<u8>) -> Option<Vec<(usize, Vec<u8>)>> + Send + Sync>;

/// Makes one listening socket per tenant, and returns their addresses. For each connection to such
/// a socket the relay dials the tenant's controller. `behaviour` sees (way, tenant, count of frames
/// that way, frame); `None` closes both connections. Threads end with their connections.
pub(crate) fn relay(controllers: &[SocketAddr], behaviour: Behaviour) -> Vec<SocketAddr> {
    let tenants = controllers.len();
    let ends: Arc<Mutex<Vec<Option<TcpStream>>>> =
        Arc::new(Mutex::new((0..tenants).map(|_| None).collect()));
    let mut addresses = Vec::new();
    for (tenant, &controller) in controllers.iter().enumerate() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        addresses.push(listener.local_addr().unwrap());
        let (ends, behaviour) = (Arc::clone(&ends), Arc::clone(&behaviour));
        std::thread::spawn(move || {
            let Ok((switch, _)) = listener.accept() else { return };
            let control = TcpStream::connect(controller).unwrap();
            let _ = (switch.set_nodelay(true), control.set_nodelay(true));
            ends.lock().unwrap()[tenant] = Some(control.try_clone().unwrap());
            let copy = |way, mut from: TcpStream, mut back: TcpStream| {
                let (ends, behaviour) = (Arc::clone(&ends), Arc::clone(&behaviour));
                std::thread::spawn(move || {
                    let mut count = 0;
                    while let Some(frame) = read_frame(&mut from) {
                        let Some(out) = behaviour(way, tenant, count, frame) else { break };
                        count += 1;
                        for (target, bytes) in out {
                            let written = match way {
                                Way::ToSwitch => back.write_all(&bytes),
                                Way::ToController => match &mut ends.lock().unwrap()[target] {
                                    Some(end) => end.write_all(&bytes),
                                    None => Ok(()),
                                },
                            };
                            if written.is_err() {
                                return;
                            }
                        }
                    }
                    let _ = from.shutdown(std::net::Shutdown::Both);
                    let _ = back.shutdown(std::net::Shutdown::Both);
                });
            };
            copy(Way::ToController, switch.try_clone().unwrap(), control.try_clone().unwrap());
            copy(Way::ToSwitch, control, switch);
        });
    }
    addresses
}

/// One frame, or `None` at the end.
pub(crate) fn read_frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; 8];
    from.read_exact(&mut frame).ok()?;
    let length = usize::from(u16::from_be_bytes([frame[2], frame[3]]));
    frame.resize(length.max(8), 0);
    from.read_exact(&mut frame[8..]).ok()?;
    Some(frame)
}
