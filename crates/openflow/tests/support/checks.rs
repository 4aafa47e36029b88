//! What must be true of any bytes. Property tests feed these from proptest, the corpus test from files, and the fuzz
//! targets from libFuzzer. Each panics when something is not as it must be.

use super::generate::{Arena, Generate, Source};
use openflow::{DecodeError, Header, Hello, Version, VersionSet, error, frame, v10, v13};

/// Any message of any version, made from the bytes, is read back as it was written.
pub fn round_trip(data: &[u8]) {
    let arena = Arena::default();
    let source = &mut Source::new(data, &arena);
    let xid = source.any();
    let mut bytes = vec![0xee; 3];
    match source.below(2) {
        0 => {
            let message: v10::Message<'_> = source.any();
            message.write(xid, &mut bytes).expect("it is small");
            let (header, read) =
                v10::Message::parse(&bytes[3..]).expect("what was written is well-formed");
            assert_eq!((header.version, header.type_), (Version::V1_0, message.type_().0));
            assert_eq!(header.xid, xid);
            assert_eq!(read, message);
            edits(&bytes[3..], EditedFields::of_v10(&message), source);
        }
        _ => {
            let message: v13::Message<'_> = source.any();
            message.write(xid, &mut bytes).expect("it is small");
            let (header, read) =
                v13::Message::parse(&bytes[3..]).expect("what was written is well-formed");
            assert_eq!((header.version, header.type_), (Version::V1_3, message.type_().0));
            assert_eq!(header.xid, xid);
            assert_eq!(read, message);
            edits(&bytes[3..], EditedFields::of_v13(&message), source);
        }
    }
    assert_eq!(bytes[..3], [0xee; 3], "what was there stays");
    assert_eq!(frame::next(&bytes[3..]), Ok(Some(bytes.len() - 3)));
    any_bytes(&bytes[3..]);
}

/// Bytes as they come: cut into frames, and each frame read. Then the same with the header made right, so that the
/// bodies are reached.
pub fn any_bytes(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(length)) = frame::next(rest) {
        let (frame, behind) = rest.split_at(length);
        any_frame(frame);
        rest = behind;
    }
    if data.len() >= Header::LEN && data.len() <= usize::from(u16::MAX) {
        let mut frame = data.to_vec();
        frame[2..4].copy_from_slice(&(data.len() as u16).to_be_bytes());
        for version in [Version::V1_0, Version::V1_3] {
            frame[0] = version.0;
            any_frame(&frame);
        }
    }
}

/// One frame of a right length: read as either version it is an error with an OpenFlow code, or a message that is
/// written with the same length and read again as itself.
pub fn any_frame(frame: &[u8]) {
    match v10::Message::parse(frame) {
        Ok((header, message)) => {
            let mut written = Vec::new();
            message.write(header.xid, &mut written).expect("it came from a frame");
            assert_eq!(written.len(), frame.len(), "{message:?}");
            assert_eq!(v10::Message::parse(&written), Ok((header, message)));
        }
        Err(error) => check_error(error, Version::V1_0, error::v10::NAMES, frame),
    }
    match v13::Message::parse(frame) {
        Ok((header, message)) => {
            let mut written = Vec::new();
            message.write(header.xid, &mut written).expect("it came from a frame");
            assert_eq!(written.len(), frame.len(), "{message:?}");
            assert_eq!(v13::Message::parse(&written), Ok((header, message)));
        }
        Err(error) => check_error(error, Version::V1_3, error::v13::NAMES, frame),
    }
    if let Ok((header, hello)) = Hello::parse_frame(frame) {
        let _ = hello.elements().count();
        let version =
            openflow::hello::negotiate(VersionSet::SUPPORTED, header.version.0, hello.versions());
        assert!(version.is_none_or(|version| VersionSet::SUPPORTED.contains(version)));
    }
    let mut copy = frame.to_vec();
    let _ = frame::set_buffer_id(&mut copy, 1)
        | frame::set_cookie(&mut copy, 1)
        | frame::set_in_port(&mut copy, 1);
    assert_eq!(copy.len(), frame.len());
}

fn check_error(
    error: DecodeError,
    version: Version,
    names: &[(openflow::ErrorCode, &str)],
    frame: &[u8],
) {
    let code = error.openflow_error(version);
    assert!(names.iter().any(|(named, _)| *named == code), "{error:?} maps to {code:?}");
    let offset = match error {
        DecodeError::Truncated { offset, needed, available, .. } => {
            assert!(needed > available, "{error:?}");
            offset
        }
        DecodeError::BadLength { offset, .. } | DecodeError::Trailing { offset, .. } => offset,
        DecodeError::Version { version: other } => {
            assert_ne!(other, version.0);
            0
        }
        _ => 0,
    };
    assert!(offset <= frame.len(), "{error:?} in {} bytes", frame.len());
}

/// The fields that can be edited in place, as a parsed message has them.
#[derive(Debug, PartialEq, Eq)]
struct EditedFields {
    buffer_id: Option<u32>,
    cookie: Option<u64>,
    in_port: Option<u32>,
    table_id: Option<u8>,
}

impl EditedFields {
    fn of_v10(message: &v10::Message<'_>) -> Self {
        use v10::Message::*;
        Self {
            buffer_id: match message {
                PacketIn(body) => Some(body.buffer_id),
                PacketOut(body) => Some(body.buffer_id),
                FlowMod(body) => Some(body.buffer_id),
                _ => None,
            },
            cookie: match message {
                FlowMod(body) => Some(body.cookie),
                FlowRemoved(body) => Some(body.cookie),
                _ => None,
            },
            in_port: match message {
                PacketIn(body) => Some(body.in_port.0.into()),
                PacketOut(body) => Some(body.in_port.0.into()),
                _ => None,
            },
            table_id: None,
        }
    }

    fn of_v13(message: &v13::Message<'_>) -> Self {
        use v13::Message::*;
        Self {
            buffer_id: match message {
                PacketIn(body) => Some(body.buffer_id),
                PacketOut(body) => Some(body.buffer_id),
                FlowMod(body) => Some(body.buffer_id),
                _ => None,
            },
            cookie: match message {
                PacketIn(body) => Some(body.cookie),
                FlowMod(body) => Some(body.cookie),
                FlowRemoved(body) => Some(body.cookie),
                _ => None,
            },
            in_port: match message {
                PacketIn(body) => body
                    .match_
                    .fields
                    .iter()
                    .find(is_exact_in_port)
                    .map(|oxm| oxm.number().unwrap() as u32),
                PacketOut(body) => Some(body.in_port.0),
                _ => None,
            },
            table_id: match message {
                PacketIn(body) => Some(body.table_id),
                FlowMod(body) => Some(body.table_id),
                FlowRemoved(body) => Some(body.table_id),
                TableMod(body) => Some(body.table_id),
                _ => None,
            },
        }
    }
}

fn is_exact_in_port(oxm: &v13::Oxm<'_>) -> bool {
    oxm.basic() == Some(v13::OxmField::IN_PORT) && !oxm.has_mask()
}

/// Looking at a field in place gives what parsing gives; editing it changes that field and nothing else.
fn edits(frame: &[u8], fields: EditedFields, source: &mut Source<'_>) {
    let look = |frame: &[u8]| EditedFields {
        buffer_id: frame::buffer_id(frame),
        cookie: frame::cookie(frame),
        in_port: frame::in_port(frame),
        table_id: frame::table_id(frame),
    };
    assert_eq!(look(frame), fields);

    let mut edited = frame.to_vec();
    let (xid, buffer_id, cookie) = (source.any(), source.any(), source.any());
    let (in_port, table_id) = (u32::from(source.any::<u16>()), source.any());
    assert!(frame::set_xid(&mut edited, xid));
    assert_eq!(frame::xid(&edited), Some(xid));
    assert_eq!(frame::set_buffer_id(&mut edited, buffer_id), fields.buffer_id.is_some());
    assert_eq!(frame::set_cookie(&mut edited, cookie), fields.cookie.is_some());
    assert_eq!(frame::set_in_port(&mut edited, in_port), fields.in_port.is_some());
    assert_eq!(frame::set_table_id(&mut edited, table_id), fields.table_id.is_some());
    let expected = EditedFields {
        buffer_id: fields.buffer_id.map(|_| buffer_id),
        cookie: fields.cookie.map(|_| cookie),
        in_port: fields.in_port.map(|_| in_port),
        table_id: fields.table_id.map(|_| table_id),
    };
    assert_eq!(look(&edited), expected);

    // Put back, the frame is as it was.
    let xid = frame::xid(frame).unwrap();
    frame::set_xid(&mut edited, xid);
    fields.buffer_id.map(|value| frame::set_buffer_id(&mut edited, value));
    fields.cookie.map(|value| frame::set_cookie(&mut edited, value));
    fields.in_port.map(|value| frame::set_in_port(&mut edited, value));
    fields.table_id.map(|value| frame::set_table_id(&mut edited, value));
    assert_eq!(edited, frame);
}

/// A well-formed message made from the bytes, as a frame.
pub fn frame_from(data: &[u8]) -> Vec<u8> {
    let arena = Arena::default();
    let source = &mut Source::new(data, &arena);
    let mut bytes = Vec::new();
    match source.below(2) {
        0 => v10::Message::generate(source).write(source.any(), &mut bytes),
        _ => v13::Message::generate(source).write(source.any(), &mut bytes),
    }
    .expect("it is small");
    bytes
}
