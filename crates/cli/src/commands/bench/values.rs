//! What `weir bench`'s options are made of, and how they are read.

use bench::{Kind, Shape, System, Version};
use std::net::SocketAddr;
use std::path::PathBuf;

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

/// Seconds, as milliseconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|it| (0.0..=86_400.0).contains(it));
    seconds
        .map(|seconds| (seconds * 1e3).round() as u64)
        .ok_or_else(|| "not a number of seconds within 0 to 86400".to_owned())
}

/// Messages per second in total; `max` is as many as the system takes.
pub fn rate(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(0.0);
    }
    let rate: Option<f64> = text.parse().ok().filter(|it| (0.001..=10_000_000.0).contains(it));
    rate.ok_or_else(|| "not `max` or a number of messages/s within 0.001 to 10000000".to_owned())
}

/// One message, or several with weights: `packet-in`, `echo:3+barrier:1`.
pub fn mix(text: &str) -> Result<Vec<(Kind, u32)>, String> {
    let part = |part: &str| {
        let (kind, weight) = part.split_once(':').unwrap_or((part, "1"));
        let weight = weight.parse().ok().filter(|it| (1..=1_000_000).contains(it));
        let weight = weight.ok_or_else(|| format!("{part}: the weight is not 1 to 1000000"))?;
        Ok((kind.parse()?, weight))
    };
    text.split('+').map(part).collect()
}

/// A system under test as it is asked for; the program itself is known only when it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    Weir,
    Known(System),
}

impl Wanted {
    /// `serve` is the command that serves.
    pub fn system(self, serve: &[String]) -> System {
        match self {
            Wanted::Weir => System::Weir { command: serve.to_vec(), extra: String::new() },
            Wanted::Known(system) => system,
        }
    }
}

/// `direct`, `haproxy`, `weir`, or `NAME=ADDRESS:PORT[,pid]` for one that runs already.
pub fn system(text: &str) -> Result<Wanted, String> {
    let known = match text {
        "weir" => return Ok(Wanted::Weir),
        "direct" => System::Direct,
        "haproxy" => System::Haproxy { program: PathBuf::from("haproxy") },
        other => external(other).ok_or_else(|| {
            "not `direct`, `weir`, `haproxy` or, for a system that runs already, NAME=IP:PORT or NAME=IP:PORT/PID"
                .to_owned()
        })?,
    };
    Ok(Wanted::Known(known))
}

fn external(text: &str) -> Option<System> {
    let (name, place) = text.split_once('=')?;
    let (address, pid) = match place.split_once('/') {
        Some((address, pid)) => (address, Some(pid.parse().ok()?)),
        None => (place, None),
    };
    let switch_address: SocketAddr = address.parse().ok()?;
    (!name.is_empty()).then(|| System::External { name: name.to_owned(), switch_address, pid })
}

/// `constant`, `poisson` or `burst:N`.
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
    fn mixes() {
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
    fn systems() {
        let place = "127.0.0.1:6633".parse().ok();
        let external = |pid| {
            place.map(|switch_address| {
                Wanted::Known(System::External { name: "fv".to_owned(), switch_address, pid })
            })
        };
        let cases = [
            ("weir", Some(Wanted::Weir)),
            ("direct", Some(Wanted::Known(System::Direct))),
            ("fv=127.0.0.1:6633", external(None)),
            ("fv=127.0.0.1:6633/42", external(Some(42))),
            ("fv=localhost", None),
            ("=127.0.0.1:6633", None),
            ("flowvisor", None),
        ];
        for (text, expected) in cases {
            assert_eq!(system(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_and_shapes() {
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
