//! What refusals of Weir mean, in words: by the error and by the type of the request.

use alloc::format;
use alloc::string::{String, ToString};
use flowspace::Match;
use openflow::{ErrorCode, Header, Version, v10, v13};

/// Any type of request.
const ANY: &str = "";

/// Why Weir refuses: the name of the error, the type of the request, the reason. The first row that fits counts. An error that
/// several checks give says all of them.
#[rustfmt::skip]
const WHY: &[(&str, &str, &str)] = &[
    ("OFPBRC_BAD_VERSION", ANY, "the message has another OpenFlow version than the connection"),
    ("OFPBRC_BAD_TYPE", ANY, "controllers send no messages of this type, or Weir does not know the type"),
    ("OFPBRC_BAD_STAT", ANY, "Weir does not know statistics of this type"),
    ("OFPBRC_BAD_MULTIPART", ANY, "Weir does not know multipart requests of this type"),
    ("OFPBRC_BAD_VENDOR", ANY, "the tenant's `experimenters` do not name this vendor"),
    ("OFPBRC_BAD_EXPERIMENTER", ANY, "the tenant's `experimenters` do not name this experimenter"),
    ("OFPBRC_EPERM", "SET_CONFIG", "a switch treats fragments one way for all tenants, so no tenant may set the fragment flags"),
    ("OFPBRC_EPERM", "PACKET_OUT", "the packet, or the port that it is said to come from, is not in the tenant's flowspace or network; \
        or it is a link probe of Weir's own; or the tenant may only read"),
    ("OFPBRC_EPERM", "PORT_MOD", "other tenants use the port too, or Weir cannot enforce the configuration for one tenant; or the \
        tenant may only read"),
    ("OFPBRC_EPERM", "STATS_REQUEST", "the port is not the tenant's, or too many requests wait for the switch"),
    ("OFPBRC_EPERM", "MULTIPART_REQUEST", "too many requests wait for the switch"),
    ("OFPBRC_EPERM", "BARRIER_REQUEST", "too many requests wait for the switch"),
    ("OFPBRC_EPERM", ANY, "the tenant may only read here: none of its flowspace entries has write permission; or too many requests \
        wait for the switch"),
    ("OFPBRC_BAD_LEN", "STATS_REQUEST", "a length in the message is wrong, or the answer has no room in OpenFlow messages"),
    ("OFPBRC_BAD_LEN", ANY, "a length in the message is wrong"),
    ("OFPBRC_BUFFER_EMPTY", ANY, "the packet of this buffer has been used already"),
    ("OFPBRC_BUFFER_UNKNOWN", ANY, "the tenant was given no packet with this buffer id, or the switch keeps that packet no longer"),
    ("OFPBRC_BAD_TABLE_ID", ANY, "the tenant does not have this table"),
    ("OFPBRC_IS_SLAVE", ANY, "the controller has the role slave"),
    ("OFPBRC_BAD_PORT", "PACKET_OUT", "the ingress port is not the tenant's"),
    ("OFPBRC_BAD_PORT", ANY, "the port is not the tenant's"),
    ("OFPBRC_BAD_PACKET", ANY, "the packet is shorter than an Ethernet header"),
    ("OFPBRC_MULTIPART_BUFFER_OVERFLOW", ANY, "the request has too many parts, or the answer is too large"),

    ("OFPBAC_BAD_TYPE", ANY, "Weir does not know this action, or cannot carry it out in a network"),
    ("OFPBAC_BAD_LEN", ANY, "the length of an action is wrong"),
    ("OFPBAC_BAD_VENDOR", ANY, "the tenant's `experimenters` do not name the vendor of an action"),
    ("OFPBAC_BAD_EXPERIMENTER", ANY, "the tenant's `experimenters` do not name the experimenter of an action"),
    ("OFPBAC_BAD_OUT_PORT", ANY, "an action sends to a port that is not the tenant's, or that the switch cannot use here; NORMAL is \
        no tenant's, since the switch's own forwarding does not separate tenants"),
    ("OFPBAC_BAD_ARGUMENT", ANY, "an action has a value that is not allowed, or would put a second VLAN tag on a packet where the \
        switch or the other end of a link knows one"),
    ("OFPBAC_EPERM", ANY, "an action changes packets so that they leave the tenant's flowspace, or sends for a host that is not the \
        tenant's"),
    ("OFPBAC_TOO_MANY", ANY, "the entry is too long for a message, becomes too many rules on the switch, or names a group twice"),
    ("OFPBAC_BAD_QUEUE", ANY, "the tenant's `queues` do not name this queue, or it is a port of a network, which has no queues"),
    ("OFPBAC_BAD_OUT_GROUP", ANY, "the tenant has no such group"),
    ("OFPBAC_BAD_SET_TYPE", ANY, "this field cannot be set"),
    ("OFPBAC_BAD_SET_ARGUMENT", ANY, "the value of a set-field has a mask"),

    ("OFPBIC_BAD_TABLE_ID", ANY, "the entry sends to a table that is not behind its own, or that the tenant does not have"),
    ("OFPBIC_UNSUP_METADATA_MASK", ANY, "the entry writes bits of the metadata that are Weir's"),
    ("OFPBIC_BAD_EXPERIMENTER", ANY, "Weir does not know instructions of experimenters"),
    ("OFPBIC_UNKNOWN_INST", ANY, "Weir does not know this instruction"),
    ("OFPBIC_UNSUP_INST", ANY, "an entry of a later table applies POP_MPLS or a group of type SELECT, or a group that leads to either; \
        or, in a network, an action set that goes to another table sends by a port"),

    ("OFPBMC_BAD_MASK", ANY, "the match is on bits of the metadata that are Weir's"),
    ("OFPBMC_BAD_WILDCARDS", ANY, "the match cannot be written in OpenFlow"),
    ("OFPBMC_BAD_PREREQ", ANY, "the match is on a field without what the field needs, such as tcp_dst without ip_proto"),
    ("OFPBMC_DUP_FIELD", ANY, "the match has a field twice"),
    ("OFPBMC_BAD_FIELD", ANY, "Weir does not know a field of the match"),
    ("OFPBMC_BAD_VALUE", ANY, "a value in the match is not allowed"),

    ("OFPFMFC_EPERM", ANY, "the match has nothing in common with the tenant's flowspace entries that have write permission"),
    ("OFPFMFC_BAD_EMERG_TIMEOUT", ANY, "an emergency entry has a time-out"),
    ("OFPFMFC_UNSUPPORTED", ANY, "Weir has no emergency entries"),
    ("OFPFMFC_BAD_COMMAND", ANY, "Weir does not know this command"),
    ("OFPFMFC_OVERLAP", ANY, "CHECK_OVERLAP is set and an entry of the same priority overlaps; or the entry would be the same rule on \
        the switch as another entry of the tenant"),
    ("OFPFMFC_ALL_TABLES_FULL", ANY, "the tenant has as many entries or rules as its limits or its share of the switch allow, or its \
        part of the store is full: see `weir ctl limits`"),
    ("OFPFMFC_TABLE_FULL", ANY, "the tenant has as many entries or rules as its limits or its share of the table allow, or its part of \
        the store is full: see `weir ctl limits`"),
    ("OFPFMFC_BAD_TABLE_ID", ANY, "the tenant does not have this table"),

    ("OFPGMFC_GROUP_EXISTS", ANY, "the tenant has a group of this number already"),
    ("OFPGMFC_INVALID_GROUP", ANY, "no group may have this number"),
    ("OFPGMFC_OUT_OF_GROUPS", ANY, "the tenant has as many groups as it may have, or its part of the store is full"),
    ("OFPGMFC_OUT_OF_BUCKETS", ANY, "statistics have no room for so many buckets, or a packet would pass more than 4,096 of them in a chain \
        of groups"),
    ("OFPGMFC_LOOP", ANY, "the group would send to itself, directly or by others"),
    ("OFPGMFC_UNKNOWN_GROUP", ANY, "the tenant has no group of this number"),
    ("OFPGMFC_CHAINED_GROUP", ANY, "another group sends to this one"),
    ("OFPGMFC_BAD_COMMAND", ANY, "Weir does not know this command"),
    ("OFPGMFC_BAD_WATCH", ANY, "a bucket watches a port or a group that the tenant does not have"),
    ("OFPGMFC_EPERM", ANY, "entries that use the group could not stand any more"),

    ("OFPPMFC_BAD_PORT", ANY, "the tenant has no such port"),
    ("OFPPMFC_BAD_HW_ADDR", ANY, "the address is not the port's"),
    ("OFPPMFC_BAD_CONFIG", ANY, "Weir cannot enforce this configuration"),
    ("OFPPMFC_BAD_ADVERTISE", ANY, "ports of networks have no features to advertise"),
    ("OFPPMFC_EPERM", ANY, "other tenants use the port too"),

    ("OFPTMFC_BAD_TABLE", ANY, "the tenant does not have this table"),
    ("OFPTMFC_EPERM", ANY, "tables are shared by all tenants, so no tenant may configure them"),
    ("OFPTFFC_EPERM", ANY, "tables are shared by all tenants, so no tenant may configure them"),

    ("OFPQOFC_BAD_PORT", ANY, "the port is not the tenant's"),
    ("OFPQOFC_BAD_QUEUE", ANY, "the tenant's `queues` do not name this queue"),

    ("OFPSCFC_EPERM", ANY, "a switch treats fragments one way for all tenants, so no tenant may set the fragment flags"),

    ("OFPRRFC_STALE", ANY, "the generation id is older than the last one that was accepted"),
    ("OFPRRFC_BAD_ROLE", ANY, "there is no such role"),

    ("OFPMMFC_METER_EXISTS", ANY, "the tenant has a meter of this number already"),
    ("OFPMMFC_INVALID_METER", ANY, "no meter of a tenant may have this number"),
    ("OFPMMFC_UNKNOWN_METER", ANY, "the tenant has no meter of this number"),
    ("OFPMMFC_BAD_COMMAND", ANY, "Weir does not know this command"),
    ("OFPMMFC_BAD_BAND", ANY, "Weir does not know a kind of band"),
    ("OFPMMFC_OUT_OF_METERS", ANY, "the tenant has as many meters as it may have, or its part of the store is full"),
    ("OFPMMFC_OUT_OF_BANDS", ANY, "statistics have no room for so many bands"),
];

/// Why Weir refuses a request of this type with this error; `None` for an error of a message that cannot be read.
pub(super) fn weirs_own(code: ErrorCode, type_: u8, version: Version) -> Option<&'static str> {
    let (name, type_) = (code.name(version)?, type_name(type_, version));
    let fits = |row: &&(&str, &str, &str)| row.0 == name && (row.1 == ANY || row.1 == type_);
    WHY.iter().find(fits).map(|(.., why)| *why)
}

fn type_name(type_: u8, version: Version) -> &'static str {
    let name = match version {
        Version::V1_0 => v10::MessageType(type_).name(),
        _ => v13::MessageType(type_).name(),
    };
    name.unwrap_or("unknown type")
}

/// The request's type and, of a FLOW_MOD, command, priority and match, as far as the first bytes have them.
pub(super) fn request(excerpt: &[u8], version: Version) -> String {
    let Ok(header) = Header::parse(excerpt) else { return "unknown".to_string() };
    let name = type_name(header.type_, version);
    let body = excerpt.get(Header::LEN..).unwrap_or_default();
    let entry = match version {
        _ if name != "FLOW_MOD" || header.version != version => None,
        Version::V1_0 => entry_v10(body),
        _ => entry_v13(body),
    };
    match entry {
        Some(entry) => format!("{name} {entry}"),
        None => name.to_string(),
    }
}

fn entry_v10(body: &[u8]) -> Option<String> {
    let match_ = v10::Match::parse(body.get(..40)?).ok()?;
    let command = v10::FlowModCommand(u16_at(body, 48)?).name()?;
    Some(entry(command, None, u16_at(body, 54)?, Some(Match::from_v10(&match_))))
}

fn entry_v13(body: &[u8]) -> Option<String> {
    const MATCH: usize = 40;
    let command = v13::FlowModCommand(*body.get(17)?).name()?;
    // The match is padded to 8 bytes. A long one is not whole.
    let length = usize::from(u16_at(body, MATCH + 2)?).next_multiple_of(8);
    let match_ = body.get(MATCH..MATCH + length).and_then(|wire| v13::Match::parse(wire).ok());
    let match_ = match_.and_then(|match_| Match::from_v13(&match_).ok());
    Some(entry(command, body.get(16).copied(), u16_at(body, 22)?, match_))
}

fn entry(command: &str, table: Option<u8>, priority: u16, match_: Option<Match>) -> String {
    let table = table.filter(|table| *table != 0).map(|table| format!("table={table},"));
    let match_ = match match_ {
        Some(Match::ANY) => String::new(),
        Some(match_) => format!(",{match_}"),
        None => ",...".to_string(),
    };
    format!("{command} {}priority={priority}{match_}", table.unwrap_or_default())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_names_an_error_and_a_type_that_there_are() {
        for (error, type_, why) in WHY {
            let mut names = openflow::error::v10::NAMES.iter().chain(openflow::error::v13::NAMES);
            assert!(names.any(|(_, name)| name == error), "{error}");
            let is_type = |version| (0..30).any(|number| type_name(number, version) == *type_);
            let known = [Version::V1_0, Version::V1_3].into_iter().any(is_type);
            assert!(*type_ == ANY || known, "{type_}");
            assert!(!why.contains("  "), "{why}");
        }
    }

    #[test]
    fn a_request_is_said_as_far_as_its_first_bytes_go() {
        let ip: Match = "ip,nw_src=10.1.0.0/16".parse().unwrap();
        let mut message = alloc::vec::Vec::new();
        let entry =
            v10::FlowMod { priority: 9, match_: ip.to_v10().unwrap(), ..Default::default() };
        entry.write_message(7, &mut message).unwrap();
        let words = "FLOW_MOD ADD priority=9,ip,nw_src=10.1.0.0/16";
        assert_eq!(request(&message[..64], Version::V1_0), words);
        assert_eq!(request(&message[..40], Version::V1_0), "FLOW_MOD");
        assert_eq!(request(&message[..3], Version::V1_0), "unknown");
        let mut wire = v13::MatchBuf::new();
        ip.to_v13(&mut wire).unwrap();
        message.clear();
        let entry = v13::FlowMod { table_id: 2, match_: wire.as_match(), ..Default::default() };
        entry.write_message(7, &mut message).unwrap();
        let words = "FLOW_MOD ADD table=2,priority=32768,...";
        assert_eq!(request(&message[..64], Version::V1_3), words);
        let words = "FLOW_MOD ADD table=2,priority=32768,ip,nw_src=10.1.0.0/16";
        assert_eq!(request(&message, Version::V1_3), words);
    }
}
