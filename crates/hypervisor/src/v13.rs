//! Slices on OpenFlow 1.3: not served yet; [`crate::Switch::new`] refuses the version.

use crate::flows::{Flow, Piece};
use crate::ids::TenantIndex;
use crate::pending::Awaits;
use crate::policy::TenantId;
use crate::store::Kind;
use crate::switch::{Held, Request, Switch, Waiter};
use crate::time::Instant;
use alloc::vec::Vec;
use flowspace::Match;
use openflow::{ErrorCode, Header};

pub(crate) mod numbers {
    #[derive(Default)]
    pub(crate) struct Numbers;
}
pub(crate) mod actions {
    pub(crate) fn same(a: &[u8], b: &[u8]) -> bool { a == b }
}
pub(crate) mod statistics {
    pub(crate) fn held(_: &[u8]) -> alloc::vec::Vec<crate::switch::Held> { alloc::vec::Vec::new() }
}
pub(crate) mod flow_mod {
    use super::*;
    pub(crate) fn write_piece(_: u64, _: &Flow, _: &Piece, _: crate::switch::Change, _: u32, _: &mut Vec<u8>) -> Result<(), openflow::TooLong> { Err(openflow::TooLong { length: 0 }) }
    pub(crate) fn write_removal(_: &Held, _: &mut Vec<u8>) -> Result<(), openflow::TooLong> { Err(openflow::TooLong { length: 0 }) }
}
pub(crate) fn read_match(_: &[u8]) -> Option<Match> { None }
pub(crate) fn questions(_: u16) -> Vec<(Awaits, Vec<u8>)> { Vec::new() }
impl Switch {
    pub(crate) fn answer_statistics_v13(&mut self, _: u16, _: &Waiter, _: &[u8]) {}
    pub(crate) fn reconcile_numbers(&mut self, _: &[u8], _: &[u8], _: Instant) {}
    pub(crate) fn reconcile_own(&mut self, _: &[&Held], _: Instant) -> (usize, usize, usize) { (0, 0, 0) }
    pub(crate) fn resync_own(&mut self, _: Instant) {}
    pub(crate) fn restore_number(&mut self, _: Kind, _: TenantId, _: u32, _: &[u8]) {}
    pub(crate) fn plan_v13(&self, _: TenantIndex, _: &Flow) -> Result<Vec<Piece>, ErrorCode> { Ok(Vec::new()) }
    pub(crate) fn switch_message_v13(&mut self, _: Header, _: &[u8], _: Instant) -> Result<(), ErrorCode> { Ok(()) }
    pub(crate) fn controller_message_v13(&mut self, _: Request<'_>) -> Result<(), ErrorCode> { Ok(()) }
}
