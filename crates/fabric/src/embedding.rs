//! Virtual networks on a physical one: which of its ports, paths and tags each of them gets.

mod map;

pub use map::{Exit, Hop, Member, PortKind, SwitchMap, Tag, Transit, VirtualPort};
