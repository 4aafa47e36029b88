//! Pins: the first certificate of each switch that `[[switches]]` lists with `certificate = "pin"`. One document of the
//! store holds all of them.
//!
//! A pin is in force from the moment at which the switch is let in, and Weir stores the pin behind that: an event loop
//! does not wait for the disk. Where the store fails, Weir tries again when the next pinned switch connects.
//!
//! Start reading at [`Pins::check`] and [`Pins::pin`].

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use channel::{CertificateName, PeerCertificate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::tokens::{Seconds, now};
use crate::admission::Refused;
use crate::dpid::Dpid;
use crate::lock::lock;
use crate::store::{Documents, StoreError};

/// Where they are stored.
const PLACE: &str = "tls/pins";
const FORMAT: u32 = 1;
/// Pins, as many as `[[switches]]` may list; pins of switches that are not listed any more count too.
pub const MOST: usize = 65_536;

/// The certificate of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"dpid": "00:00:00:00:00:00:00:01", "certificate": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "pinned_s": 1_795_657_299_u64})))]
pub struct Pin {
    /// The datapath id.
    pub dpid: String,
    /// The SHA-256 fingerprint of the certificate.
    pub certificate: String,
    /// When the switch came with the certificate first, in seconds of Unix time.
    pub pinned_s: Seconds,
}

/// All pins. Cheap to clone.
#[derive(Clone)]
pub struct Pins {
    documents: Documents,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    pins: BTreeMap<u64, Pin>,
    /// The answer of the store to the last pins.
    storing: Option<Receiver<Result<(), StoreError>>>,
}

/// The document.
#[derive(Serialize, Deserialize)]
struct Written<P> {
    format: u32,
    pins: P,
}

impl Pins {
    /// Those that are stored.
    pub fn load(documents: Documents) -> Result<Pins, StoreError> {
        let pins = match documents.get(PLACE)? {
            None => BTreeMap::new(),
            Some(bytes) => read(&bytes).ok_or_else(|| {
                StoreError::Database(format!("{PLACE} cannot be read: no pin is known"))
            })?,
        };
        Ok(Pins { documents, kept: Arc::new(Mutex::new(Kept { pins, storing: None })) })
    }

    /// Refuses a switch that has a pin of another certificate.
    pub fn check(&self, dpid: u64, shown: &PeerCertificate) -> Result<(), Refused> {
        is_pinned(&lock(&self.kept), dpid, shown).map(|_| ())
    }

    /// Like [`Pins::check`]; a switch without a pin gets one.
    pub fn pin(&self, dpid: u64, shown: &PeerCertificate) -> Result<(), Refused> {
        let mut kept = lock(&self.kept);
        let has_failed = match kept.storing.as_ref().map(Receiver::try_recv) {
            Some(Ok(result)) => {
                kept.storing = None;
                result.is_err()
            }
            _ => false,
        };
        if is_pinned(&kept, dpid, shown)? {
            if has_failed {
                self.store(&mut kept);
            }
            return Ok(());
        }
        if kept.pins.len() >= MOST {
            return Err(Refused::TooManyPins(MOST));
        }
        let certificate = shown.fingerprint().to_string();
        tracing::info!(dpid = %Dpid(dpid), certificate, name = %shown, "the first certificate of the switch is pinned");
        let pin = Pin { dpid: Dpid(dpid).to_string(), certificate, pinned_s: now() };
        kept.pins.insert(dpid, pin);
        self.store(&mut kept);
        Ok(())
    }

    /// All pins, by datapath id.
    pub fn list(&self) -> Vec<Pin> {
        lock(&self.kept).pins.values().cloned().collect()
    }

    /// Removes a pin, if there is one. Where that cannot be stored the pin stays. `before` is called before anything
    /// changes; one caller at a time.
    pub fn remove(
        &self,
        dpid: u64,
        before: impl FnOnce(&Pin) -> Result<(), StoreError>,
    ) -> Result<Option<Pin>, StoreError> {
        let Some(pin) = lock(&self.kept).pins.get(&dpid).cloned() else { return Ok(None) };
        before(&pin)?;
        let stored = {
            let mut kept = lock(&self.kept);
            kept.pins.remove(&dpid);
            self.store(&mut kept);
            kept.storing.take()
        };
        let stored = stored.and_then(|it| it.recv().ok()).unwrap_or(Err(StoreError::Closed));
        if stored.is_err() {
            lock(&self.kept).pins.entry(dpid).or_insert_with(|| pin.clone());
        }
        stored.map(|()| Some(pin))
    }

    /// The order of the documents is that in which the pins were locked.
    fn store(&self, kept: &mut Kept) {
        let written = Written { format: FORMAT, pins: kept.pins.values().collect::<Vec<_>>() };
        // Text and numbers can always be written.
        if let Ok(document) = serde_json::to_vec(&written) {
            kept.storing = Some(self.documents.put_later(PLACE, document));
        }
    }
}

/// Whether the switch has a pin; refuses another certificate than the pinned one.
fn is_pinned(kept: &Kept, dpid: u64, shown: &PeerCertificate) -> Result<bool, Refused> {
    let Some(pin) = kept.pins.get(&dpid) else { return Ok(false) };
    let fingerprint = shown.fingerprint().to_string();
    if pin.certificate == fingerprint {
        return Ok(true);
    }
    Err(Refused::Certificate(format!(
        "its certificate is pinned as {}, and it shows that of {shown} ({fingerprint}); if the switch has a new certificate, `weir ctl pin remove {}`",
        pin.certificate, pin.dpid
    )))
}

fn read(bytes: &[u8]) -> Option<BTreeMap<u64, Pin>> {
    let written: Written<Vec<Pin>> = serde_json::from_slice(bytes).ok()?;
    if written.format != FORMAT || written.pins.len() > MOST {
        return None;
    }
    let pin = |pin: Pin| {
        let certificate: CertificateName = pin.certificate.parse().ok()?;
        let is_fingerprint = matches!(certificate, CertificateName::Sha256(_));
        let dpid = pin.dpid.parse::<Dpid>().ok()?.0;
        is_fingerprint.then_some((dpid, pin))
    };
    written.pins.into_iter().map(pin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn certificate(text: &str) -> PeerCertificate {
        PeerCertificate::new(text.as_bytes())
    }

    #[test]
    fn the_first_certificate_is_pinned_until_the_pin_is_removed() {
        let store = Store::memory().unwrap();
        let pins = Pins::load(store.documents()).unwrap();
        let (first, other) = (certificate("first"), certificate("other"));
        assert_eq!(pins.check(1, &other), Ok(()), "to look pins nothing");
        assert_eq!(pins.pin(1, &first), Ok(()));
        assert_eq!(pins.pin(1, &first), Ok(()));
        assert_eq!(pins.pin(2, &other), Ok(()));
        let refused = pins.pin(1, &other).unwrap_err();
        assert_eq!(pins.check(1, &other), Err(refused.clone()));
        let words = refused.to_string();
        for part in [first.fingerprint(), other.fingerprint()] {
            assert!(words.contains(&part.to_string()), "{words}");
        }

        // The store has the pins, so a restarted process loads the same pins.
        let again = Pins::load(store.documents()).unwrap();
        assert_eq!((again.list(), again.list().len()), (pins.list(), 2));
        assert!(again.pin(1, &other).is_err());
        let full = || Err(StoreError::Database("no space left".to_owned()));
        again.remove(1, |_| full()).unwrap_err();
        assert!(
            again.pin(1, &other).is_err(),
            "what is refused before it is stored changes nothing"
        );
        let removed = again.remove(1, |_| Ok(())).unwrap().unwrap();
        assert_eq!(removed.certificate, first.fingerprint().to_string());
        assert_eq!(again.remove(1, |_| Ok(())).unwrap(), None);
        assert_eq!(Pins::load(store.documents()).unwrap().list().len(), 1);
        assert_eq!(again.pin(1, &other), Ok(()));
    }

    #[test]
    fn the_number_of_pins_is_bounded() {
        let store = Store::memory().unwrap();
        let pins = Pins::load(store.documents()).unwrap();
        let first = certificate("first");
        pins.pin(0, &first).unwrap();
        {
            let mut kept = lock(&pins.kept);
            let pin = kept.pins[&0].clone();
            kept.pins.extend((1..MOST as u64).map(|dpid| (dpid, pin.clone())));
        }
        assert_eq!(pins.pin(7, &first), Ok(()));
        assert_eq!(pins.pin(MOST as u64, &first), Err(Refused::TooManyPins(MOST)));
        assert_eq!(pins.list().len(), MOST);
    }

    #[test]
    fn after_a_failed_write_pins_are_stored_with_the_next_switch() {
        let store = Store::memory().unwrap();
        let pins = Pins::load(store.documents()).unwrap();
        let first = certificate("first");
        pins.pin(1, &first).unwrap();
        store.documents().put(PLACE, b"old".to_vec()).unwrap();
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        sender.send(Err(StoreError::Closed)).unwrap();
        lock(&pins.kept).storing = Some(receiver);
        pins.pin(1, &first).unwrap();
        assert_eq!(Pins::load(store.documents()).unwrap().list(), pins.list());
    }

    #[test]
    fn an_invalid_stored_pin_list_is_refused() {
        let one = |dpid: &str, certificate: &str| {
            format!(
                r#"{{"format": 1, "pins": [{{"dpid": "{dpid}", "certificate": "{certificate}", "pinned_s": 0}}]}}"#
            )
        };
        let fingerprint = certificate("first").fingerprint().to_string();
        for (text, may) in [
            (String::new(), false),
            ("[]".to_owned(), false),
            (r#"{"format": 2, "pins": []}"#.to_owned(), false),
            (one("1", "name:edge-1"), false),
            (one("1", "sha256:00"), false),
            (one("one", &fingerprint), false),
            (one("1", &fingerprint), true),
        ] {
            let store = Store::memory().unwrap();
            store.documents().put(PLACE, text.as_bytes().to_vec()).unwrap();
            assert_eq!(Pins::load(store.documents()).is_ok(), may, "{text}");
        }
    }
}
