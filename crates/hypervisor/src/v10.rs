//! Messages of OpenFlow 1.0: what Weir asks a switch, and what Weir reads in them. What a [`Switch`](crate::Switch) does with them is in
//! `switch::v10`.

pub(crate) mod flow_mod;
pub(crate) mod statistics;

use crate::south::pending::{Awaits, Purpose};
use alloc::vec;
use alloc::vec::Vec;
use flowspace::Match;
use openflow::v10::{
    ConfigFlags, FlowStatsRequest, Message, StatsRequest, StatsRequestBody, SwitchConfig,
};
use openflow::{ErrorCode, Version};

/// What a new switch is told and asked.
pub(crate) fn questions(miss_send_len: u16) -> Vec<(Awaits, Vec<u8>)> {
    let mut config = Vec::new();
    let mut flows = Vec::new();
    let all = StatsRequest::from(StatsRequestBody::Flow(FlowStatsRequest::default()));
    let written =
        Message::SetConfig(SwitchConfig { flags: ConfigFlags::FRAG_NORMAL, miss_send_len })
            .write(0, &mut config)
            .and_then(|()| all.write_message(0, &mut flows));
    debug_assert!(written.is_ok());
    vec![(Awaits::Nothing, config), (Awaits::Own(Purpose::Flows), flows)]
}

/// A match from its wire form.
pub(crate) fn read_match(wire: &[u8]) -> Option<Match> {
    openflow::v10::Match::parse(wire).ok().map(|m| Match::from_v10(&m))
}

/// The switch's own bytes make no sense. Nobody asked, so nobody is told; it is counted.
pub(crate) fn unreadable(error: openflow::DecodeError) -> ErrorCode {
    error.openflow_error(Version::V1_0)
}
