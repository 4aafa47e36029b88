//! Bounded buffers that cost nothing while they are empty.
//!
//! A daemon holds thousands of mostly idle connections, and a few that burst. So no buffer belongs
//! to a connection for longer than it holds bytes: empty, it goes back to the thread's `pool`,
//! where the next connection that wakes up finds it warm in the cache. A loop that serves its
//! connections one after another thus works in a handful of buffers, whatever their number, and
//! allocates nothing in the steady state.

mod pool;
mod receive;
mod send;

pub(crate) use receive::ReceiveBuffer;
pub use send::{Full, SendBuffer};
