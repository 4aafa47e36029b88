//! The case files under `tests/cases`: messages as hex and as text.
//!
//! A case begins with `# NAME`; then come `hex:` (whose continuation lines are indented), `read:` (what our reader
//! says, or the error and the OpenFlow code that it maps to) and, one line each, `ovs:` (what `ovs-ofctl ofp-print`
//! says).

use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    pub frame: Vec<u8>,
    pub read: String,
    pub ovs: String,
}

/// The path of a case file.
pub fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(file)
}

/// Reads a case file.
pub fn load(file: &str) -> Vec<Case> {
    let text =
        std::fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            cases.push(Case { name: name.to_owned(), ..Case::default() });
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if let Some(hex) = line.strip_prefix("hex:").or_else(|| line.strip_prefix("    ")) {
            case.frame.extend(from_hex(hex));
        } else if let Some(read) = line.strip_prefix("read: ") {
            case.read = read.to_owned();
        } else if let Some(ovs) = line.strip_prefix("ovs: ").or_else(|| line.strip_prefix("ovs:")) {
            case.ovs.push_str(ovs);
            case.ovs.push('\n');
        } else {
            assert!(line.is_empty(), "{file}: what is {line:?}?");
        }
    }
    assert!(!cases.is_empty(), "{file} has no case");
    cases
}

/// The text of a case file.
pub fn render(introduction: &str, cases: &[Case]) -> String {
    let mut text = introduction.to_owned();
    for case in cases {
        write!(text, "\n# {}\nhex:", case.name).unwrap();
        for (line, bytes) in case.frame.chunks(32).enumerate() {
            text.push_str(if line == 0 { "" } else { "\n   " });
            bytes.iter().for_each(|byte| write!(text, " {byte:02x}").unwrap());
        }
        write!(text, "\nread: {}\n", case.read).unwrap();
        for line in case.ovs.lines() {
            text.push_str(format!("ovs: {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

/// What our reader says about a frame, in one line.
pub fn read(frame: &[u8]) -> String {
    let version = openflow::frame::version(frame);
    let read = if version == Some(openflow::Version::V1_3) {
        openflow::v13::Message::parse(frame)
            .map(|(header, message)| (header.xid, format!("{message:?}")))
    } else {
        openflow::v10::Message::parse(frame)
            .map(|(header, message)| (header.xid, format!("{message:?}")))
    };
    match read {
        Ok((xid, message)) => format!("xid={xid:#x} {message}"),
        Err(error) => {
            let version = version.unwrap_or(openflow::Version::V1_0);
            format!(
                "error: {error}; the peer is sent {}",
                error.openflow_error(version).display(version)
            )
        }
    }
}

pub fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    assert!(digits.len().is_multiple_of(2), "an odd number of hex digits: {text}");
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).expect("hex digits"))
        .collect()
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
