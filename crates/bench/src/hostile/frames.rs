//! Reads whole frames from a connection.

use crate::conn::Conn;
use crate::wire::{HEADER_LEN, be16};

/// Reads the arrived bytes, and passes each whole frame to the handler with the buffer for answers.
/// Returns false at the end of the connection.
pub(super) fn frames(
    conn: &mut Conn,
    scratch: &mut [u8],
    mut each: impl FnMut(&[u8], &mut Vec<u8>),
) -> bool {
    // A peer that sends without pause must not make other peers wait.
    for _ in 0..8 {
        if !conn.may_read() {
            return true;
        }
        let Some(filled) = conn.read(scratch, 1 << 16) else { return false };
        if filled == 0 {
            return true;
        }
        let mut rest = scratch.get(..filled).unwrap_or_default();
        while let Some(length) = be16(rest, 2).map(usize::from) {
            if length < HEADER_LEN {
                return false;
            }
            let Some((frame, behind)) = rest.split_at_checked(length) else { break };
            each(frame, &mut conn.out);
            rest = behind;
        }
        conn.keep(rest);
    }
    true
}
