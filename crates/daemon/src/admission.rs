//! Decides which switches may connect: the switches in `[[switches]]`, from their addresses, and a limited number of
//! others.
//!
//! The decision is made when a switch has sent its datapath id, and again after a reload. The module deliberately has
//! no sockets. Start reading at [`Admission::judge`].

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use channel::{CertificateName, PeerCertificate};
use hypervisor::Pool;

use crate::config::{Certificate, Config, Listed};
use crate::dpid::Dpid;
use crate::metrics::Rejection;

/// Bytes for what all unlisted switches together report of themselves. One switch alone gets half of these bytes:
/// enough for some 28,000 rules of this installation. Rules that Weir did not install take nothing.
const MEMORY: usize = 64 << 20;

/// The admission rules of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    listed: HashMap<u64, Listed>,
    /// The maximum number of connected switches that are not listed.
    unlisted: usize,
}

/// The kind of an admitted switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The switch is listed.
    Listed,
    /// It is listed, and its certificate has to be the pinned one.
    Pinned,
    /// It is one of those that are not.
    Unlisted,
}

/// The reason why a switch may not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The switch is not listed, and only listed switches may connect.
    Unlisted,
    /// The switch is not listed, and the maximum number of unlisted switches is connected.
    TooMany(usize),
    /// The switch is listed with another address.
    Address(IpAddr),
    /// The switch has shown a certificate that is not its own, or none.
    Certificate(String),
    /// It has no pin, and there is no room for another one.
    TooManyPins(usize),
}

impl Admission {
    /// The rules of this configuration.
    pub fn new(config: &Config) -> Admission {
        let listed = config.switches.iter().map(|switch| (switch.dpid, switch.clone()));
        Admission { listed: listed.collect(), unlisted: config.listen.unlisted }
    }

    /// Whether the switch is listed.
    pub fn lists(&self, dpid: u64) -> bool {
        self.listed.contains_key(&dpid)
    }

    /// Whether a switch with this datapath id may connect from this address, with the certificate that the switch has
    /// shown over TLS.
    pub fn judge(
        &self,
        dpid: u64,
        source: Option<IpAddr>,
        shown: Option<&PeerCertificate>,
    ) -> Result<Standing, Refused> {
        let listed = self.listed.get(&dpid);
        if listed.is_none() && self.unlisted == 0 {
            return Err(Refused::Unlisted);
        }
        if let Some(address) = listed.and_then(|listed| listed.address)
            && source.map(|it| it.to_canonical()) != Some(address.to_canonical())
        {
            return Err(Refused::Address(address));
        }
        let certificate = listed.and_then(|listed| listed.certificate.as_ref());
        match (certificate, shown) {
            (Some(certificate), None) => {
                let certificate = match certificate {
                    Certificate::Is(certificate) => format!("the certificate {certificate}"),
                    Certificate::Pin => "its pinned certificate".to_owned(),
                };
                return Err(Refused::Certificate(format!(
                    "[[switches]] says that it shows {certificate}, and it comes without TLS"
                )));
            }
            (Some(Certificate::Pin), Some(_)) => return Ok(Standing::Pinned),
            (Some(Certificate::Is(certificate)), Some(shown)) if !shown.is(certificate) => {
                let words =
                    format!("[[switches]] says that it shows the certificate {certificate}");
                return Err(Refused::Certificate(format!("{words}, and not {}", named(shown))));
            }
            (None, Some(shown)) if !is_for(dpid, listed, shown) => {
                return Err(Refused::Certificate(format!(
                    "its certificate is that of {}, and not of this datapath id",
                    named(shown)
                )));
            }
            _ => {}
        }
        Ok(if listed.is_some() { Standing::Listed } else { Standing::Unlisted })
    }
}

/// Whether a certificate names the switch: by the datapath id, or by the switch's name.
fn is_for(dpid: u64, listed: Option<&Listed>, shown: &PeerCertificate) -> bool {
    let own = listed.and_then(|listed| listed.name.clone());
    let names = [Some(Dpid(dpid).to_string()), Some(format!("{dpid:016x}")), own];
    names.into_iter().flatten().any(|name| shown.is(&CertificateName::Name(name)))
}

fn named(shown: &PeerCertificate) -> String {
    format!("{shown} ({})", shown.fingerprint())
}

impl Refused {
    /// The reason in the metrics.
    pub fn rejection(&self) -> Rejection {
        match self {
            Refused::Unlisted | Refused::TooMany(_) | Refused::TooManyPins(_) => {
                Rejection::Unlisted
            }
            Refused::Address(_) | Refused::Certificate(_) => Rejection::Impostor,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Unlisted => f.write_str("its datapath id is not among [[switches]]"),
            Refused::TooMany(most) => write!(
                f,
                "its datapath id is not among [[switches]], and {most} such switches are here already"
            ),
            Refused::Address(address) => {
                write!(f, "[[switches]] says that it comes from {address}")
            }
            Refused::Certificate(words) => f.write_str(words),
            Refused::TooManyPins(most) => write!(
                f,
                "its certificate is to be pinned, and there are {most} pins already: `weir ctl pin remove` removes those of former switches"
            ),
        }
    }
}

/// The number of connected switches that are not listed, and their memory; one counter and one pool for the process.
#[derive(Clone, Debug)]
pub struct Unlisted {
    number: Arc<AtomicUsize>,
    memory: Arc<Pool>,
}

impl Default for Unlisted {
    fn default() -> Self {
        Unlisted { number: Arc::default(), memory: Arc::new(Pool::new(MEMORY)) }
    }
}

impl Unlisted {
    /// The memory for what unlisted switches report of themselves.
    pub fn memory(&self) -> Arc<Pool> {
        Arc::clone(&self.memory)
    }

    /// A place for another unlisted switch.
    pub fn take(&self, admission: &Admission) -> Result<Place, Refused> {
        let place = Place(Arc::clone(&self.number));
        if self.number.fetch_add(1, Ordering::SeqCst) >= admission.unlisted {
            return Err(Refused::TooMany(admission.unlisted));
        }
        Ok(place)
    }
}

/// The place of an unlisted switch, released with its connection.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(text: &str) -> Admission {
        Admission::new(&Config::parse("weir.toml", text).unwrap_or_else(|e| panic!("{e}")))
    }

    const LISTED: &str =
        "[[switches]]\ndpid = \"1\"\n[[switches]]\ndpid = \"2\"\naddress = \"192.0.2.2\"\n";

    #[test]
    fn with_a_switch_list_unlisted_dpids_and_wrong_addresses_are_refused() {
        let here = Some(IpAddr::from([192, 0, 2, 2]));
        let there = Some(IpAddr::from([192, 0, 2, 3]));
        let mapped = Some(IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0202]));
        let admission = admission(LISTED);
        let address = IpAddr::from([192, 0, 2, 2]);
        for (dpid, source, expected) in [
            (1, there, Ok(Standing::Listed)),
            (2, here, Ok(Standing::Listed)),
            (2, mapped, Ok(Standing::Listed)),
            (2, there, Err(Refused::Address(address))),
            (2, None, Err(Refused::Address(address))),
            (3, here, Err(Refused::Unlisted)),
        ] {
            assert_eq!(admission.judge(dpid, source, None), expected, "{dpid} from {source:?}");
        }
    }

    #[test]
    fn a_pinned_switch_is_refused_without_tls() {
        let admission = admission("[[switches]]\ndpid = \"1\"\ncertificate = \"pin\"\n");
        let shown = PeerCertificate::new(b"any");
        assert_eq!(admission.judge(1, None, Some(&shown)), Ok(Standing::Pinned));
        let refused = admission.judge(1, None, None).unwrap_err();
        assert!(refused.to_string().contains("pinned certificate, and it comes without TLS"));
        assert_eq!(refused.rejection(), Rejection::Impostor);
    }

    #[test]
    fn a_switch_with_a_fingerprint_is_refused_with_another_certificate() {
        let (own, other) = (PeerCertificate::new(b"own"), PeerCertificate::new(b"other"));
        let text = format!("[[switches]]\ndpid = \"1\"\ncertificate = \"{}\"\n", own.fingerprint());
        let admission = admission(&text);
        assert_eq!(admission.judge(1, None, Some(&own)), Ok(Standing::Listed));
        for shown in [Some(&other), None] {
            let refused = admission.judge(1, None, shown).unwrap_err();
            assert_eq!(refused.rejection(), Rejection::Impostor);
            assert!(refused.to_string().contains(&own.fingerprint().to_string()), "{refused}");
        }
    }

    #[test]
    fn unlisted_switches_share_64_mib_of_memory() {
        let memory = Unlisted::default().memory();
        assert_eq!(format!("{memory:?}"), format!("{:?}", Pool::new(64 << 20)));
    }

    #[test]
    fn the_number_of_unlisted_switches_is_bounded() {
        let none = admission("");
        assert_eq!(none.judge(7, None, None), Ok(Standing::Unlisted));
        let few = admission(&format!("[listen]\nunlisted = 2\n{LISTED}"));
        assert_eq!(few.judge(7, None, None), Ok(Standing::Unlisted));
        let unlisted = Unlisted::default();
        let mut here: Vec<_> = (0..2).map(|_| unlisted.take(&few).unwrap()).collect();
        assert_eq!(unlisted.take(&few).unwrap_err(), Refused::TooMany(2));
        here.pop();
        here.push(unlisted.take(&few).unwrap());
        assert_eq!(unlisted.take(&few).unwrap_err(), Refused::TooMany(2));
        drop(here);
        let many: Vec<_> = (0..5000).map_while(|_| unlisted.take(&none).ok()).collect();
        assert_eq!(many.len(), 1024);
    }
}
