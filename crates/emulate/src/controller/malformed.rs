//! Malformed messages, each with one error. A receiver can find the end of every message in the
//! stream.

use openflow::Version;

/// Returns a description of the error and the frame, for each message. The lengths in headers are
/// correct, so the receiver finds the next message.
pub fn malformed_messages(version: Version) -> Vec<(&'static str, Vec<u8>)> {
    let v = version.0;
    let is_v10 = version == Version::V1_0;
    let (flow_mod, packet_out, statistics, barrier) =
        if is_v10 { (14, 13, 16, 18) } else { (14, 13, 18, 20) };
    vec![
        ("an unknown message type", frame(v, 99, &[0; 8])),
        ("an unknown version", frame(0x77, 2, &[])),
        ("a message that only switches send", frame(v, 10, &[0; 32])),
        ("a FLOW_MOD that ends in its match", frame(v, flow_mod, &[0; 20])),
        ("a FLOW_MOD whose action is longer than the message", long_action(version)),
        ("a PACKET_OUT whose actions are longer than the message", {
            let mut body = vec![0xff; 4];
            body.extend_from_slice(&[0xff; 20]);
            frame(v, packet_out, &body)
        }),
        ("statistics of an unknown type", frame(v, statistics, &[0xee, 0xee, 0, 0, 0, 0, 0, 0])),
        ("statistics without a type", frame(v, statistics, &[0])),
        ("a barrier with a body", frame(v, barrier, &[1, 2, 3])),
        ("a HELLO in mid-session", frame(v, 0, &[0, 1, 0, 3])),
        ("an ERROR without a code", frame(v, 1, &[0])),
    ]
}

fn frame(version: u8, type_: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = ((8 + body.len()) as u16).to_be_bytes();
    let mut frame = vec![version, type_, high, low, 0xba, 0xad, 0xf0, 0x0d];
    frame.extend_from_slice(body);
    frame
}

/// A FLOW_MOD that is correct except for the length field of its action.
fn long_action(version: Version) -> Vec<u8> {
    const OUTPUT_OF_LENGTH_800: [u8; 8] = [0, 0, 0x03, 0x20, 0, 1, 0, 0];
    if version == Version::V1_0 {
        let mut body = vec![0; 64];
        body.extend_from_slice(&OUTPUT_OF_LENGTH_800);
        frame(version.0, 14, &body)
    } else {
        let mut body = vec![0; 40];
        // An empty OXM match, then APPLY_ACTIONS.
        body.extend_from_slice(&[0, 1, 0, 4, 0, 0, 0, 0]);
        body.extend_from_slice(&[0, 4, 0, 16, 0, 0, 0, 0]);
        body.extend_from_slice(&OUTPUT_OF_LENGTH_800);
        frame(version.0, 14, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::{v10, v13};

    #[test]
    fn malformed_messages_are_whole_frames_and_at_least_six_do_not_parse() {
        for version in [Version::V1_0, Version::V1_3] {
            let messages = malformed_messages(version);
            let mut unreadable = 0;
            for (what, message) in &messages {
                let length = openflow::frame::next(message).unwrap();
                assert_eq!(length, Some(message.len()), "{what}");
                let is_wrong = match version {
                    Version::V1_0 => v10::Message::parse(message).is_err(),
                    _ => v13::Message::parse(message).is_err(),
                };
                unreadable += usize::from(is_wrong);
            }
            assert!(unreadable >= 6, "{unreadable} of {} in {version:?}", messages.len());
        }
    }
}
