//! Label values: the specifications' names in lower case.

use openflow::{ErrorCode, Version};

/// The name of a message type in an OpenFlow version; `None` if the version has no such type.
pub(super) fn message_type(version: u8, message_type: u8) -> Option<&'static str> {
    let names: &[&str] = if version == 0x01 { &V1_0 } else { &V1_3 };
    names.get(usize::from(message_type)).copied()
}

/// `enum ofp_type` of OpenFlow 1.0.1, section 5.1.
const V1_0: [&str; 22] = [
    "hello",
    "error",
    "echo_request",
    "echo_reply",
    "vendor",
    "features_request",
    "features_reply",
    "get_config_request",
    "get_config_reply",
    "set_config",
    "packet_in",
    "flow_removed",
    "port_status",
    "packet_out",
    "flow_mod",
    "port_mod",
    "stats_request",
    "stats_reply",
    "barrier_request",
    "barrier_reply",
    "queue_get_config_request",
    "queue_get_config_reply",
];

/// `enum ofp_type` of OpenFlow 1.3.5, section 7.1.
const V1_3: [&str; 30] = [
    "hello",
    "error",
    "echo_request",
    "echo_reply",
    "experimenter",
    "features_request",
    "features_reply",
    "get_config_request",
    "get_config_reply",
    "set_config",
    "packet_in",
    "flow_removed",
    "port_status",
    "packet_out",
    "flow_mod",
    "group_mod",
    "port_mod",
    "table_mod",
    "multipart_request",
    "multipart_reply",
    "barrier_request",
    "barrier_reply",
    "queue_get_config_request",
    "queue_get_config_reply",
    "role_request",
    "role_reply",
    "get_async_request",
    "get_async_reply",
    "set_async",
    "meter_mod",
];

/// An error by the specification's name, or as `type/code` without a name; errors without a counter of their own are
/// `other`.
pub(super) fn error(version: u8, error: Option<(u16, u16)>) -> String {
    let Some((type_, code)) = error else { return "other".to_owned() };
    match (ErrorCode { type_, code }).name(Version(version)) {
        Some(name) => name.to_owned(),
        None => format!("{type_}/{code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::{v10, v13};

    #[test]
    fn every_message_type_has_the_openflow_name_in_lower_case() {
        for type_ in 0..=u8::MAX {
            let names = [(1, v10::MessageType(type_).name()), (4, v13::MessageType(type_).name())];
            for (version, name) in names {
                let shown = message_type(version, type_).map(str::to_uppercase);
                assert_eq!(shown.as_deref(), name, "type {type_} of version {version}");
            }
        }
    }
}
