#![no_std]
#![forbid(unsafe_code)]
//! Header space: sets of packets, the algebra of these sets, and an indexed classifier.
//!
//! A packet at a port is a point, a [`Key`]: the values of its header [`Field`]s in a fixed array of words. A [`Match`]
//! is a set of such points, a ternary vector (each bit 0, 1 or "any"). The algebra is exact: [`Match::intersect`],
//! [`Match::overlaps`], [`Match::contains`], [`Match::subtract`]; rewrites ([`Match::rewrite`] and its companions) give
//! the image of a set under an action, or a larger set if a header becomes unknown, never a smaller set. [`Classifier`]
//! finds the best of many prioritised matches for a key; [`wins_everywhere`] decides whether one owner's entries win
//! all of a region. [`frame`](mod@frame) applies actions to the bytes of a packet.
//!
//! ```
//! use flowspace::{Classifier, Field, Key, Match};
//!
//! let red: Match = "ip,nw_src=10.1.0.0/16".parse().unwrap();
//! let web: Match = "tcp,tp_dst=80".parse().unwrap();
//! assert_eq!(red.intersect(&web).unwrap().to_string(), "tcp,nw_src=10.1.0.0/16,tp_dst=80");
//! assert!(!red.contains(&web.rewrite(Field::NwSrc, 0x0a02_0001)));
//!
//! let mut classifier = Classifier::new();
//! classifier.insert(red, 100, "red");
//! classifier.insert(web, 200, "web");
//! let key = Key::default()
//!     .with(Field::DlType, 0x0800)
//!     .with(Field::NwProto, 17)
//!     .with(Field::NwSrc, 0x0a01_0001);
//! assert_eq!(classifier.lookup(&key).map(|entry| *entry.value), Some("red"));
//! ```
//!
//! This crate deliberately lacks OpenFlow sessions, sockets, clocks and policy. Of the protocol the crate knows only
//! the two wire forms of a match (1.0 and 1.3) and of actions, and the text forms of `ovs-ofctl`.
//!
//! Start reading in [`field`] (the layout of all keys), then `algebra.rs`.

extern crate alloc;
#[cfg(test)]
extern crate std;

mod actions;
mod algebra;
mod classifier;
mod compose;
mod extract;
pub mod field;
pub mod frame;
mod index;
mod key;
mod mini;
mod needs;
mod port;
mod rewrite;
mod space;
mod text;
mod v10;
mod v13;

pub use algebra::{Match, Subtract};
pub use classifier::{Classifier, Entry, EntryId};
pub use compose::NoFrame;
pub use field::Field;
pub use index::{MatchIndex, Relation};
pub use key::Key;
pub use mini::{MiniMatch, MiniWords};
pub use port::{port_from_v10, port_to_v10};
pub use space::{covered_by, wins_everywhere};
pub use text::{FlowText, ParseError, Problem};
pub use v10::Inexpressible;
pub use v13::MatchError;
