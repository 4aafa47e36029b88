//! Messages of the core on their way to a connection.

use channel::{CloseReason, Connection, Flushed};
use hypervisor::Outbox;

/// The most bytes in a connection's send buffer; further messages stay in the core, which bounds them.
const IN_CONNECTION: usize = 64 << 10;

/// How many bytes may be added to a connection's send buffer.
pub(crate) fn room(connection: &Connection) -> usize {
    IN_CONNECTION.saturating_sub(connection.unsent_bytes())
}

/// Moves waiting messages from the core to the connection and writes.
pub(crate) fn carry(outbox: &mut Outbox, connection: &mut Connection) -> Result<(), CloseReason> {
    while !outbox.is_empty() || connection.wants_write() {
        let n = outbox.len().min(room(connection));
        let taken = outbox.as_slice().get(..n).unwrap_or_default();
        if connection.push(taken).is_ok() {
            outbox.consume(n);
        }
        if connection.flush()? == Flushed::Blocked {
            break;
        }
    }
    Ok(())
}
