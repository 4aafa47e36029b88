//! Keys that an operator may expect and that Weir does not have, each with the reason: the configuration file and the
//! REST interface refuse them with this sentence.

/// The key and the reason.
const KEYS: &[(&str, &str)] = &[
    (
        "physical_addresses",
        "hosts keep their addresses on all links, and VLAN tags keep tenants apart",
    ),
    (
        "vlans",
        "a frame has one VLAN tag on OpenFlow 1.0, the link's; between switches of 1.3 all VLANs pass",
    ),
];

/// The reason why the key is not supported; `None` for any other key.
pub(crate) fn reason(key: &str) -> Option<&'static str> {
    KEYS.iter().find(|(known, _)| *known == key).map(|(_, reason)| *reason)
}

/// The reason for the first key that an error message quotes. In the REST interface the change of a key is named
/// `set-KEY`.
pub(crate) fn reason_in(message: &str) -> Option<&'static str> {
    let quoted = message.split('`').nth(1)?;
    reason(&quoted.strip_prefix("set-").unwrap_or(quoted).replace('-', "_"))
}
