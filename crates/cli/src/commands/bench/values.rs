//! The values of `weir bench`'s options, and the functions that read the values.

use bench::{DataPort, Identity, Kind, Shape, System, Tenancy, Version, Watched};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The default port at which a system that runs already dials the first tenant's controller.
const CONTROLLER_BASE: u16 = 6701;

/// A version of OpenFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OpenFlow {
    /// OpenFlow 1.0
    #[value(name = "1.0")]
    V1_0,
    /// OpenFlow 1.3
    #[value(name = "1.3")]
    V1_3,
}

impl OpenFlow {
    pub fn version(self) -> Version {
        match self {
            OpenFlow::V1_0 => Version::V1_0,
            OpenFlow::V1_3 => Version::V1_3,
        }
    }
}

/// Reads seconds, and returns milliseconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|it| (0.0..=86_400.0).contains(it));
    seconds
        .map(|seconds| (seconds * 1e3).round() as u64)
        .ok_or_else(|| "not a number of seconds within 0 to 86400".to_owned())
}

/// Reads messages per second in total. `max` is as many messages as the system reads.
pub fn rate(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(0.0);
    }
    let rate: Option<f64> = text.parse().ok().filter(|it| (0.001..=10_000_000.0).contains(it));
    rate.ok_or_else(|| "not `max` or a number of messages/s within 0.001 to 10000000".to_owned())
}

/// Reads one message, or several messages with weights: `packet-in`, `echo:3+barrier:1`.
pub fn mix(text: &str) -> Result<Vec<(Kind, u32)>, String> {
    let part = |part: &str| {
        let (kind, weight) = part.split_once(':').unwrap_or((part, "1"));
        let weight = weight.parse().ok().filter(|it| (1..=1_000_000).contains(it));
        let weight = weight.ok_or_else(|| format!("{part}: the weight is not 1 to 1000000"))?;
        Ok((kind.parse()?, weight))
    };
    text.split('+').map(part).collect()
}

/// A requested system under test. The program of Weir is known only when the command runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    Weir { tenancy: Tenancy },
    Known(System),
}

impl Wanted {
    /// The system. `serve` is the command that runs `weir serve`.
    pub fn system(self, serve: &[String]) -> System {
        match self {
            Wanted::Weir { tenancy } => {
                System::Weir { command: serve.to_vec(), extra: String::new(), tenancy }
            }
            Wanted::Known(system) => system,
        }
    }
}

/// Reads `direct`, `haproxy`, `weir`, `weir-networks`, or `NAME=IP:PORT[+CONTROLLERBASE][/PID or /cgroup:FOLDER]` for a
/// system that runs already.
pub fn system(text: &str) -> Result<Wanted, String> {
    let known = match text {
        "weir" => return Ok(Wanted::Weir { tenancy: Tenancy::Slices }),
        "weir-networks" => return Ok(Wanted::Weir { tenancy: Tenancy::Networks }),
        "direct" => System::Direct,
        "haproxy" => System::Haproxy { program: PathBuf::from("haproxy") },
        other => external(other).ok_or_else(|| {
            "not `direct`, `weir`, `weir-networks`, `haproxy` or, for a system that runs already, NAME=IP:PORT[+CONTROLLERBASE][/PID or /cgroup:FOLDER]"
                .to_owned()
        })?,
    };
    Ok(Wanted::Known(known))
}

/// Reads `NAME=IP:PORT[+CONTROLLERBASE][/PID or /cgroup:FOLDER]`: a system that runs already.
pub fn running(text: &str) -> Result<System, String> {
    external(text)
        .ok_or_else(|| "not NAME=IP:PORT[+CONTROLLERBASE][/PID or /cgroup:FOLDER]".to_owned())
}

/// Reads `INTERFACE[@NAMESPACE]=PORT`.
pub fn data_port(text: &str) -> Result<DataPort, String> {
    let port = crate::commands::data_port::data_port(text)?;
    let evaluate::DataPort { interface, namespace, switch_port } = port;
    let switch_port =
        u16::try_from(switch_port).map_err(|_| "a port is at most 65535".to_owned())?;
    Ok(DataPort { interface, namespace, switch_port })
}

fn external(text: &str) -> Option<System> {
    let (name, place) = text.split_once('=')?;
    let (address, watched) = match place.split_once('/') {
        Some((address, watched)) => (address, Some(Watched::read(watched).ok()?)),
        None => (place, None),
    };
    let (address, base) = match address.split_once('+') {
        Some((address, base)) => (address, base.parse().ok().filter(|base| *base > 0)?),
        None => (address, CONTROLLER_BASE),
    };
    let switch_address: SocketAddr = address.parse().ok()?;
    external_system(name, switch_address, base, watched)
}

fn external_system(
    name: &str,
    switch_address: SocketAddr,
    base: u16,
    watched: Option<Watched>,
) -> Option<System> {
    let controllers = SocketAddr::from((Ipv4Addr::LOCALHOST, base));
    let name = name.to_owned();
    (!name.is_empty()).then_some(System::External { name, switch_address, controllers, watched })
}

/// Reads `NAME=SWITCHPORT,CONTROLLERBASE[/PID]`: a hypervisor that runs on this machine.
pub fn external_by_ports(text: &str) -> Result<System, String> {
    let parse = || {
        let (name, places) = text.split_once('=')?;
        let (ports, watched) = match places.split_once('/') {
            Some((ports, watched)) => (ports, Some(Watched::read(watched).ok()?)),
            None => (places, None),
        };
        let (switches, controllers) = ports.split_once(',')?;
        let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0);
        let switch_address = SocketAddr::from((Ipv4Addr::LOCALHOST, port(switches)?));
        external_system(name, switch_address, port(controllers)?, watched)
    };
    parse().ok_or_else(|| {
        "not NAME=SWITCHPORT,CONTROLLERBASE[/PID], ports from 1 to 65535, as in flowvisor=6633,6701".to_owned()
    })
}

/// Reads the names of three PEM files: `KEY,CERT,CA`.
pub fn identity(text: &str) -> Result<Identity, String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [key, certificate, ca] if ![key, certificate, ca].contains(&"") => {
            Ok(Identity { private_key: key.into(), certificate: certificate.into(), ca: ca.into() })
        }
        _ => Err("not three PEM files: KEY,CERT,CA".to_owned()),
    }
}

/// Reads `constant`, `poisson` or `burst:N`.
pub fn shape(text: &str) -> Result<Shape, String> {
    match text.split_once(':') {
        None if text == "constant" => Ok(Shape::Constant),
        None if text == "poisson" => Ok(Shape::Poisson),
        Some(("burst", count)) => match count.parse() {
            Ok(count) if (1..=1_000_000).contains(&count) => Ok(Shape::Burst(count)),
            _ => Err("a burst is 1 to 1000000 messages".to_owned()),
        },
        _ => Err("not `constant`, `poisson` or `burst:N`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_mixes_are_parsed_with_weights() {
        let cases = [
            ("packet-in", Some(vec![(Kind::PacketIn, 1)])),
            ("ECHO:3+barrier", Some(vec![(Kind::Echo, 3), (Kind::Barrier, 1)])),
            ("echo:0", None),
            ("echo+", None),
            ("ping", None),
        ];
        for (text, expected) in cases {
            assert_eq!(mix(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn systems_are_parsed_with_address_controller_base_and_process() {
        let place = "127.0.0.1:6633".parse().ok();
        let external = |base, pid: Option<u32>| {
            let watched = pid.map(Watched::Process);
            place.and_then(|at| external_system("fv", at, base, watched)).map(Wanted::Known)
        };
        let cases = [
            ("weir", Some(Wanted::Weir { tenancy: Tenancy::Slices })),
            ("weir-networks", Some(Wanted::Weir { tenancy: Tenancy::Networks })),
            ("direct", Some(Wanted::Known(System::Direct))),
            ("fv=127.0.0.1:6633", external(6701, None)),
            ("fv=127.0.0.1:6633/42", external(6701, Some(42))),
            ("fv=127.0.0.1:6633+10000/42", external(10_000, Some(42))),
            ("fv=127.0.0.1:6633+0", None),
            ("fv=127.0.0.1:6633/0", None),
            ("fv=127.0.0.1:6633/cgroup:no/such", None),
            ("fv=localhost", None),
            ("=127.0.0.1:6633", None),
            ("flowvisor", None),
        ];
        for (text, expected) in cases {
            assert_eq!(system(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn external_systems_are_parsed_from_switch_port_and_controller_base() {
        let place = SocketAddr::from((Ipv4Addr::LOCALHOST, 6633));
        for (text, expected) in [
            ("fv=6633,6701", external_system("fv", place, 6701, None)),
            ("fv=6633,6701/42", external_system("fv", place, 6701, Some(Watched::Process(42)))),
            ("fv=6633", None),
            ("fv=6633,0", None),
            ("fv=66330,6701", None),
            ("=6633,6701", None),
        ] {
            assert_eq!(external_by_ports(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn seconds_rates_and_arrival_shapes_are_parsed() {
        assert_eq!([seconds("0.5"), seconds("30")], [Ok(500), Ok(30_000)]);
        assert!(seconds("-1").is_err() && seconds("1e9").is_err() && seconds("NaN").is_err());
        assert_eq!([rate("max"), rate("40000")], [Ok(0.0), Ok(40_000.0)]);
        assert!(rate("0").is_err() && rate("-5").is_err() && rate("inf").is_err());
        assert_eq!(
            [shape("poisson"), shape("burst:10")],
            [Ok(Shape::Poisson), Ok(Shape::Burst(10))]
        );
        assert!(shape("burst").is_err() && shape("burst:0").is_err() && shape("saw").is_err());
    }
}
