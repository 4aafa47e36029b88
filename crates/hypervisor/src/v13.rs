//! Messages of OpenFlow 1.3: what Weir asks a switch, and what Weir reads in them. What a [`Switch`](crate::Switch) does with them is in
//! `switch::v13`.

pub(crate) mod flow_mod;
pub(crate) mod ids;
pub(crate) mod numbers;
pub(crate) mod statistics;

use crate::south::pending::{Awaits, Purpose};
use alloc::vec;
use alloc::vec::Vec;
use flowspace::Match;
use openflow::v13::{
    ConfigFlags, FlowStatsRequest, Message, MultipartRequest, MultipartRequestBody, SwitchConfig,
};
use openflow::{ErrorCode, Version};

/// What a new switch is told and asked.
pub(crate) fn questions(miss_send_len: u16) -> Vec<(Awaits, Vec<u8>)> {
    let mut config = Vec::new();
    let told = Message::SetConfig(SwitchConfig { flags: ConfigFlags::FRAG_NORMAL, miss_send_len })
        .write(0, &mut config);
    debug_assert!(told.is_ok());
    let ask = |body: MultipartRequestBody<'_>| {
        let mut out = Vec::new();
        let asked = MultipartRequest::from(body).write_message(0, &mut out);
        debug_assert!(asked.is_ok());
        out
    };
    vec![
        (Awaits::Nothing, config),
        (Awaits::Own(Purpose::Ports), ask(MultipartRequestBody::PortDesc)),
        (Awaits::Own(Purpose::Groups), ask(MultipartRequestBody::GroupDesc)),
        (
            Awaits::Own(Purpose::Meters),
            ask(MultipartRequestBody::MeterConfig { meter_id: openflow::v13::METER_ALL }),
        ),
        (Awaits::Own(Purpose::Flows), ask(MultipartRequestBody::Flow(FlowStatsRequest::default()))),
    ]
}

/// A match from its wire form, with the padding.
pub(crate) fn read_match(wire: &[u8]) -> Option<Match> {
    let wire = openflow::v13::Match::parse(wire).ok()?;
    Match::from_v13(&wire).ok()
}

/// The bytes make no sense.
pub(crate) fn unreadable(error: openflow::DecodeError) -> ErrorCode {
    error.openflow_error(Version::V1_3)
}
