//! The holder of a certificate (its names and its fingerprint), and the time at which the certificate expires.
//!
//! rustls checks signatures and times, but does not return names, fingerprints and times. The DER reader here reads
//! only the fields of X.509 that have them (RFC 5280, section 4.1). If the reader cannot read a field, the certificate
//! counts as a certificate without this field, and proves no identity by this field.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// A peer's certificate, whose chain has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    names: Vec<String>,
    fingerprint: [u8; 32],
}

impl PeerCertificate {
    /// From DER.
    pub fn new(der: &[u8]) -> Self {
        PeerCertificate { names: names(der).unwrap_or_default(), fingerprint: sha256(der) }
    }

    /// The first certificate of a PEM file.
    pub fn of_file(path: &Path) -> Option<Self> {
        CertificateDer::from_pem_file(path).ok().map(|der| PeerCertificate::new(&der))
    }

    /// Its DNS names and its common name. `ovs-pki` puts ` id:` and a number behind a name, which are left out.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its SHA-256 fingerprint.
    pub fn fingerprint(&self) -> CertificateName {
        CertificateName::Sha256(self.fingerprint)
    }

    /// Whether it is the one that is meant.
    pub fn is(&self, name: &CertificateName) -> bool {
        match name {
            CertificateName::Name(name) => {
                self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
            }
            CertificateName::Sha256(fingerprint) => self.fingerprint == *fingerprint,
        }
    }
}

impl fmt::Display for PeerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.first() {
            Some(name) => write!(f, "{name:?}"),
            None => self.fingerprint().fmt(f),
        }
    }
}

/// What distinguishes a certificate from others of the same authority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CertificateName {
    /// By one of its names; upper and lower case are the same.
    Name(String),
    /// By the SHA-256 fingerprint of the whole certificate.
    Sha256([u8; 32]),
}

impl FromStr for CertificateName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if let Some(name) = text.strip_prefix("name:") {
            return match name.is_empty() {
                true => Err("the name is missing"),
                false => Ok(CertificateName::Name(name.to_owned())),
            };
        }
        const EXPECTED: &str = "expected \"name:NAME\" or \"sha256:\" and 64 hexadecimal digits";
        let digits = text.strip_prefix("sha256:").ok_or(EXPECTED)?;
        let digits: Vec<u8> = digits.bytes().filter(|c| *c != b':').collect();
        let mut fingerprint = [0; 32];
        if digits.len() != 64 {
            return Err(EXPECTED);
        }
        for (byte, pair) in fingerprint.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| EXPECTED)?;
            if pair.starts_with('+') {
                return Err(EXPECTED);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| EXPECTED)?;
        }
        Ok(CertificateName::Sha256(fingerprint))
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateName::Name(name) => write!(f, "name:{name}"),
            CertificateName::Sha256(fingerprint) => {
                f.write_str("sha256:")?;
                fingerprint.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut fingerprint = [0; 32];
    if let Some(suite) = TLS13_AES_128_GCM_SHA256.tls13() {
        let hash = suite.common.hash_provider.hash(bytes);
        fingerprint.copy_from_slice(hash.as_ref());
    }
    fingerprint
}

/// Until when a certificate is valid, in seconds of Unix time.
pub(crate) fn not_after(der: &[u8]) -> Option<u64> {
    let mut validity = Fields::of(der)?.validity;
    let _not_before = validity.next()?;
    let (tag, text) = validity.next()?;
    seconds(tag, text)
}

fn names(der: &[u8]) -> Option<Vec<String>> {
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
    const DNS_NAME: u8 = 0x82;
    let Fields { mut subject, mut extensions, .. } = Fields::of(der)?;
    let mut found = Vec::new();
    while let Some((SEQUENCE, extension)) = extensions.next() {
        let mut extension = Der(extension);
        let (_, id) = extension.next()?;
        let (mut tag, mut value) = extension.next()?;
        if tag == BOOLEAN {
            (tag, value) = extension.next()?;
        }
        if id == ALTERNATIVE_NAMES && tag == OCTET_STRING {
            let mut all = Der(Der(value).expect(SEQUENCE)?);
            while let Some((tag, name)) = all.next() {
                if tag == DNS_NAME {
                    found.push(name);
                }
            }
        }
    }
    while let Some((SET, part)) = subject.next() {
        let mut part = Der(Der(part).expect(SEQUENCE)?);
        let (_, id) = part.next()?;
        let (_, value) = part.next()?;
        if id == COMMON_NAME {
            found.push(value);
        }
    }
    let names = found.into_iter().filter_map(|name| std::str::from_utf8(name).ok());
    let bare = |name: &str| name.split(" id:").next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = names.map(bare).filter(|name| !name.is_empty()).collect();
    names.dedup();
    Some(names)
}

const BOOLEAN: u8 = 0x01;
const OCTET_STRING: u8 = 0x04;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// The parts of a certificate that are looked at.
struct Fields<'a> {
    validity: Der<'a>,
    subject: Der<'a>,
    extensions: Der<'a>,
}

impl<'a> Fields<'a> {
    fn of(der: &'a [u8]) -> Option<Fields<'a>> {
        const VERSION: u8 = 0xa0;
        const EXTENSIONS: u8 = 0xa3;
        let mut certificate = Der(Der(der).expect(SEQUENCE)?);
        let mut fields = Der(certificate.expect(SEQUENCE)?);
        if fields.0.first() == Some(&VERSION) {
            fields.next()?;
        }
        let (_serial, _algorithm, _issuer) = (fields.next()?, fields.next()?, fields.next()?);
        let validity = Der(fields.expect(SEQUENCE)?);
        let subject = Der(fields.expect(SEQUENCE)?);
        let mut extensions = Der(&[]);
        while let Some((tag, value)) = fields.next() {
            if tag == EXTENSIONS {
                extensions = Der(Der(value).expect(SEQUENCE)?);
            }
        }
        Some(Fields { validity, subject, extensions })
    }
}

/// Values one after the other (ITU-T X.690).
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next value: its tag and what is in it.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let (bytes, behind) = rest.split_at_checked(usize::from(first & 0x7f))?;
            if bytes.is_empty() || bytes.len() > 4 {
                return None;
            }
            length = bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            rest = behind;
        }
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    /// What is in the next value, which must be of this kind.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, value)| value)
    }
}

/// A time of a certificate in seconds of Unix time (RFC 5280, section 4.1.2.5); 0 before 1970.
fn seconds(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| digits.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0'));
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let (year, rest) = digits.split_at(2);
            let year = number(year);
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, rest) = digits.split_at(4);
            (number(year), rest)
        }
        _ => return None,
    };
    let parts: Vec<i64> = rest.chunks(2).map(number).collect();
    let &[month @ 1..=12, day @ 1..=31, hour @ 0..=23, minute @ 0..=59, second @ 0..=60] =
        parts.as_slice()
    else {
        return None;
    };
    // Days since 1970 in the Gregorian calendar, by years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 153 + 2) / 5
        + day
        - 1
        - 719_468;
    u64::try_from(((days * 24 + hour) * 60 + minute) * 60 + second).ok().or(Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229000000Z", Some(951_782_400)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "691231235959Z", Some(0)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "701301000000Z", None),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "70010100000xZ", None),
            (UTC_TIME, "700101000000+0100", None),
            (GENERALIZED_TIME, "700101000000Z", None),
            (0x0c, "700101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn names_of_certificates_are_read_and_written() {
        let digits = "0123456789abcdef".repeat(4);
        let sha = format!("sha256:{digits}");
        for (text, expected) in [
            ("name:edge-1", Ok("name:edge-1")),
            (sha.as_str(), Ok(sha.as_str())),
            ("name:", Err("missing")),
            ("edge-1", Err("expected")),
            ("sha256:0123", Err("expected")),
            ("", Err("expected")),
        ] {
            let read = text.parse::<CertificateName>();
            match expected {
                Ok(printed) => assert_eq!(read.unwrap().to_string(), printed),
                Err(word) => assert!(read.unwrap_err().contains(word), "{text}"),
            }
        }
        let with_colons: Vec<&str> =
            digits.as_bytes().chunks(2).map(|c| std::str::from_utf8(c).unwrap()).collect();
        let upper = format!("sha256:{}", with_colons.join(":").to_uppercase());
        assert_eq!(
            upper.parse::<CertificateName>().unwrap().to_string(),
            sha,
            "as openssl prints it"
        );
        assert!(format!("sha256:+1{}", &digits[2..]).parse::<CertificateName>().is_err());
    }

    #[test]
    fn malformed_certificates_have_no_expiry_and_no_names() {
        // Sequences in sequences, with lengths that lie.
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x80],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x30, 0x02, 0x30, 0x00],
            &[0x30, 0x04, 0x30, 0x02, 0xa0, 0x00],
            &[0xff; 64],
        ] {
            assert_eq!((not_after(bytes), names(bytes)), (None, None), "{bytes:?}");
        }
    }
}
