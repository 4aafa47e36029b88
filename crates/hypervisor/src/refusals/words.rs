//! The reasons for refusals by Weir, in words: by the check that refused, else by the error and the type of the
//! request.

use crate::flows::Head;
use crate::messages;
use alloc::format;
use alloc::string::{String, ToString};
use compile::{Reason, Refused, Wire};
use flowspace::Match;
use openflow::{Header, Version, v13};

/// Any type of request.
const ANY: &str = "";
/// A type of request that Weir does not know.
const UNKNOWN: &str = "unknown type";

/// The words for a check that has its own [`Reason`]. `{port}`, `{number}` and `{type}` stand for the number in the
/// refusal.
fn of_reason(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::ByCode => return None,

        Reason::ReadOnly => {
            "the tenant may only read here: none of its flowspace entries has write permission"
        }
        Reason::Backlog => "too many requests of the tenant wait for the switch",
        Reason::AnswerTooLarge => "the answer is too large for Weir to pass on",
        Reason::NoMember => "no member of the big switch is connected that could do this",
        Reason::StoreFull => "the tenant's part of the store is full: see `weir ctl limits`",

        Reason::OutPort => "an action sends to port {port}, which is not the tenant's",
        Reason::Normal => {
            "an action sends to NORMAL, but the switch's own forwarding does not separate tenants"
        }
        Reason::TableInEntry => "an action sends to TABLE, which only a PACKET_OUT may do",
        Reason::FloodInSet => {
            "an action floods where only one output can stand (an action set, a bucket), and the tenant does not have all ports \
            of the switch"
        }
        Reason::NoInPort => "an action sends to IN_PORT, but the packet has come by no port",
        Reason::SharedEdge => {
            "an action sends to a port behind which other tenants have hosts too, and the destination address of the \
            packets is not known"
        }
        Reason::SourceToController => {
            "the packets come by a port behind which other tenants have hosts too, and an action changes the \
            source address before another sends them to the controller"
        }
        Reason::InPort => "the packets are to come by port {port}, which is not the tenant's",

        Reason::BufferReused => {
            "while the request waited, the switch gave the buffer of the packet to another packet"
        }
        Reason::ForeignPacket => "the packet is not in the tenant's flowspace",
        Reason::WeirsProbe => "the packet is a link probe of Weir's own",
        Reason::NoProbe => {
            "LLDP is not in the tenant's flowspace, and the packet is no whole LLDP frame that Weir could mark as a \
            link probe of the tenant"
        }
        Reason::ProbeChanged => {
            "LLDP is not in the tenant's flowspace, so a link probe may only be sent by ports, and the request has \
            another action"
        }
        Reason::ShortPacket => "the packet is shorter than an Ethernet header",
        Reason::PacketTooLong => {
            "with the actions that it needs on the switch, the request is longer than an OpenFlow message"
        }
        Reason::LongTable => {
            "the packet is sent to TABLE without an ingress port, and the tenant's table is too long for Weir to look \
            the packet up"
        }
        Reason::ForeignInTables => {
            "the packet is sent to TABLE, where it would not be the tenant's"
        }
        Reason::ChangedFromNowhere => {
            "the packet is sent to TABLE without an ingress port after an action has changed it"
        }
        Reason::ForeignSource => {
            "the packet is sent to TABLE with a source address that no host behind its ingress port has"
        }
        Reason::NoEntrance => {
            "the packet is sent to TABLE as if it came by port {port}, by which no packets come in at this switch now"
        }
        Reason::NoControllerLabel => {
            "the packet is sent to TABLE without an ingress port, and `[topology] tags` has too few VLAN ids \
            to mark such packets of this tenant"
        }
        Reason::TableNotAlone => {
            "the packet is sent to TABLE, which has to be the only action here"
        }
        Reason::UnlikeItsPort => {
            "the packet is sent to TABLE, and does not look like a packet that comes by its ingress port"
        }

        Reason::PushType => {
            "an action pushes a header with the Ethernet type {type}, which headers of this kind do not have"
        }
        Reason::VlanUnderMpls => {
            "an action takes an MPLS header off a VLAN tag, which Weir cannot follow in a network"
        }
        Reason::TagOnLink => {
            "an action sends a frame with a VLAN tag by a link on which frames carry Weir's label and no further tag"
        }
        Reason::TagToController => {
            "an action sends a frame that came by a link to the controller after another has set a VLAN tag"
        }
        Reason::PbbInNetwork => "Weir cannot follow PBB headers in a network",
        Reason::EnqueueInNetwork => "an action is ENQUEUE, but ports of networks have no queues",
        Reason::TooManyRules => "the entry becomes too many rules on the switch",

        Reason::GroupTwice => "the entry names group {number} twice",
        Reason::Recirculates => {
            "an entry of a table behind the first makes the switch recirculate packets (by POP_MPLS, a group of type SELECT, a group that \
            leads to such a group)"
        }
        Reason::GotoBack => "the entry goes to table {number}, which is not behind its own",
        Reason::GotoNowhere => "the entry goes to table {number}, which the tenant does not have",
        Reason::SetToGroupByTag => {
            "an action set that other tables may add to sends to group {number}, which treats frames with and \
            without a VLAN tag differently"
        }

        Reason::WeirsMetadata => "the match is on bits of the metadata that are Weir's",
        Reason::Contested => {
            "some packets of the match are another tenant's, whose flowspace entry has a higher priority"
        }
        Reason::SameRule => {
            "the entry would be the same rule on the switch as another entry of the tenant"
        }
        Reason::EntryLimit => "the tenant has as many entries as its limit `flows` allows",
        Reason::RuleLimit => "the tenant has as many rules as its limit `entries` allows",
        Reason::RuleShare => {
            "the tenant has as many rules as its share of the switch's table allows: see `weir ctl limits`"
        }
        Reason::RulesAtOnce => "the request comes to more rules than Weir changes at once",

        Reason::GroupShare => {
            "the tenant has as many groups of this type as its share of the switch allows: see `weir ctl limits`"
        }
        Reason::GroupPasses => "in a chain of groups a packet would pass more than 4,096 buckets",
        Reason::GroupInstances => "the tenant's groups become too many groups on the switch",
        Reason::NoEgressGroup => {
            "the switch has refused a group of Weir's own that the tenant's group needs"
        }
        Reason::WatchedPort => "a bucket watches port {port}, which is not the tenant's",
        Reason::MeterShare => {
            "the tenant has as many meters as its share of the switch allows: see `weir ctl limits`"
        }

        Reason::PortShared => "other tenants use the port too",
        Reason::PortConfig => "Weir cannot enforce this configuration for one tenant",
        Reason::PortAdvertises => "ports of networks have no features to advertise",
        Reason::PortInUse => {
            "with the port configured so, something that the tenant has installed could not stand"
        }
    })
}

/// The reasons where the error code says enough: the name of the error, the type of the request, the reason. The first
/// row that fits is used.
#[rustfmt::skip]
const WHY: &[(&str, &str, &str)] = &[
    ("OFPBRC_BAD_VERSION", ANY, "the message has another OpenFlow version than the connection"),
    ("OFPBRC_BAD_TYPE", UNKNOWN, "Weir does not know messages of this type"),
    ("OFPBRC_BAD_TYPE", ANY, "controllers send no messages of this type"),
    ("OFPBRC_BAD_STAT", ANY, "Weir does not know statistics of this type"),
    ("OFPBRC_BAD_MULTIPART", ANY, "Weir does not know multipart requests of this type"),
    ("OFPBRC_BAD_VENDOR", ANY, "the tenant's `experimenters` do not name this vendor"),
    ("OFPBRC_BAD_EXPERIMENTER", ANY, "the tenant's `experimenters` do not name this experimenter"),
    ("OFPBRC_EPERM", "SET_CONFIG", "a switch treats fragments one way for all tenants, so no tenant may set the fragment flags"),
    ("OFPBRC_EPERM", "STATS_REQUEST", "the port is not the tenant's"),
    ("OFPBRC_BAD_LEN", ANY, "a length in the message is wrong"),
    ("OFPBRC_BUFFER_UNKNOWN", ANY, "Weir keeps no packet for the tenant under this buffer id"),
    ("OFPBRC_BAD_TABLE_ID", ANY, "the tenant does not have this table"),
    ("OFPBRC_IS_SLAVE", ANY, "the controller has the role slave"),
    ("OFPBRC_BAD_PORT", ANY, "the port is not the tenant's"),
    ("OFPBRC_BAD_PACKET", ANY, "the packet is shorter than an Ethernet header"),
    ("OFPBRC_MULTIPART_BUFFER_OVERFLOW", ANY, "the request comes in several parts, which Weir does not put together"),

    ("OFPBAC_BAD_TYPE", ANY, "Weir does not know this action"),
    ("OFPBAC_BAD_LEN", ANY, "the length of an action is wrong"),
    ("OFPBAC_BAD_SET_LEN", ANY, "the length of a set-field action is wrong"),
    ("OFPBAC_BAD_VENDOR", ANY, "the tenant's `experimenters` do not name the vendor of an action"),
    ("OFPBAC_BAD_EXPERIMENTER", ANY, "the tenant's `experimenters` do not name the experimenter of an action"),
    ("OFPBAC_BAD_ARGUMENT", ANY, "an action writes a value that its field cannot have"),
    ("OFPBAC_EPERM", ANY, "an action changes packets so that they leave the tenant's flowspace"),
    ("OFPBAC_TOO_MANY", ANY, "as it has to be on the switch, the list of actions is longer than an OpenFlow message"),
    ("OFPBAC_BAD_QUEUE", ANY, "the tenant's `queues` do not name this queue"),
    ("OFPBAC_BAD_OUT_GROUP", ANY, "the tenant has no such group"),
    ("OFPBAC_BAD_SET_TYPE", ANY, "this field cannot be set"),
    ("OFPBAC_BAD_SET_ARGUMENT", ANY, "the value of a set-field has a mask"),

    ("OFPBIC_UNSUP_INST", ANY, "an action set that other tables may add to sends to a port, which Weir cannot carry out in a network"),
    ("OFPBIC_UNSUP_METADATA_MASK", ANY, "the entry writes bits of the metadata that are Weir's"),
    ("OFPBIC_BAD_EXPERIMENTER", ANY, "the tenant's `experimenters` do not name the experimenter of an instruction"),
    ("OFPBIC_BAD_LEN", ANY, "the length of an instruction is wrong"),
    ("OFPBIC_UNKNOWN_INST", ANY, "Weir does not know this instruction"),

    ("OFPBMC_BAD_TYPE", ANY, "Weir does not know this type of match"),
    ("OFPBMC_BAD_LEN", ANY, "the length of the match is wrong"),
    ("OFPBMC_BAD_MASK", ANY, "a field of the match has a mask, which this field cannot have"),
    ("OFPBMC_BAD_WILDCARDS", ANY, "a value in the match has bits that its mask leaves open"),
    ("OFPBMC_BAD_PREREQ", ANY, "the match is on a field without what the field needs, such as tcp_dst without ip_proto"),
    ("OFPBMC_DUP_FIELD", ANY, "the match has a field twice"),
    ("OFPBMC_BAD_FIELD", ANY, "Weir does not know a field of the match"),
    ("OFPBMC_BAD_VALUE", ANY, "a value in the match is not allowed"),

    ("OFPFMFC_EPERM", ANY, "the match has nothing in common with the tenant's flowspace entries that have write permission"),
    ("OFPFMFC_BAD_EMERG_TIMEOUT", ANY, "an emergency entry has a time-out"),
    ("OFPFMFC_UNSUPPORTED", ANY, "Weir has no emergency entries"),
    ("OFPFMFC_BAD_COMMAND", ANY, "Weir does not know this command"),
    ("OFPFMFC_OVERLAP", ANY, "CHECK_OVERLAP is set, and an entry of the same priority overlaps"),
    ("OFPFMFC_BAD_TABLE_ID", ANY, "the tenant does not have this table"),

    ("OFPGMFC_GROUP_EXISTS", ANY, "the tenant has a group of this number already"),
    ("OFPGMFC_INVALID_GROUP", ANY, "no group may have this number"),
    ("OFPGMFC_OUT_OF_GROUPS", ANY, "the tenant has as many groups as its limit `groups` allows"),
    ("OFPGMFC_OUT_OF_BUCKETS", ANY, "statistics have no room for so many buckets"),
    ("OFPGMFC_BAD_BUCKET", ANY, "the length of a bucket is wrong"),
    ("OFPGMFC_LOOP", ANY, "the group would send to itself"),
    ("OFPGMFC_UNKNOWN_GROUP", ANY, "the tenant has no group of this number"),
    ("OFPGMFC_CHAINED_GROUP", ANY, "another group sends to this one"),
    ("OFPGMFC_BAD_COMMAND", ANY, "Weir does not know this command"),
    ("OFPGMFC_BAD_WATCH", ANY, "a bucket watches a group that the tenant does not have"),
    ("OFPGMFC_EPERM", ANY, "entries that use the group could not stand any more"),

    ("OFPPMFC_BAD_PORT", ANY, "the tenant has no such port"),
    ("OFPPMFC_BAD_HW_ADDR", ANY, "the address is not the port's"),

    ("OFPTMFC_BAD_TABLE", ANY, "the tenant does not have this table"),
    ("OFPTMFC_EPERM", ANY, "tables are shared by all tenants, so no tenant may configure them"),
    ("OFPTFFC_EPERM", ANY, "tables are shared by all tenants, so no tenant may configure them"),
    ("OFPTFFC_BAD_TYPE", ANY, "Weir does not know a property of a table"),
    ("OFPTFFC_BAD_LEN", ANY, "the length of a property of a table is wrong"),

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
    ("OFPMMFC_OUT_OF_METERS", ANY, "the tenant has as many meters as its limit `meters` allows"),
    ("OFPMMFC_OUT_OF_BANDS", ANY, "statistics have no room for so many bands"),
];

/// Why Weir refuses a request of this type with this error.
pub(super) fn weirs_own(refused: Refused, type_: u8, version: Version) -> String {
    if let Some(words) = of_reason(refused.reason()) {
        return words
            .replace("{port}", &port(refused.value()))
            .replace("{number}", &refused.value().to_string())
            .replace("{type}", &format!("{:#06x}", refused.value()));
    }
    let (name, type_) = (refused.code().name(version), type_name(type_, version));
    let fits = |row: &&(&str, &str, &str)| Some(row.0) == name && (row.1 == ANY || row.1 == type_);
    match WHY.iter().find(fits) {
        Some((.., why)) => (*why).to_string(),
        None => format!("Weir refused: {}", refused.code().display(version)),
    }
}

/// A port by its number, or a reserved port by its name.
fn port(number: u32) -> String {
    match v13::PortNo(number) {
        it if it.is_physical() => number.to_string(),
        reserved => format!("{reserved:?}"),
    }
}

fn type_name(type_: u8, version: Version) -> &'static str {
    messages::type_name(Wire::of(version), type_).unwrap_or(UNKNOWN)
}

/// The request's type and, for a FLOW_MOD, command, priority and match, if the first bytes have them.
pub(super) fn request(excerpt: &[u8], version: Version) -> String {
    let Ok(header) = Header::parse(excerpt) else { return "unknown".to_string() };
    let name = type_name(header.type_, version);
    let body = excerpt.get(Header::LEN..).unwrap_or_default();
    let is_flow_mod = name == "FLOW_MOD" && header.version == version;
    match is_flow_mod.then(|| messages::head(Wire::of(version), body)).flatten() {
        Some(head) => format!("{name} {}", entry(&head)),
        None => name.to_string(),
    }
}

fn entry(head: &Head) -> String {
    let &Head { command, table, priority, ref match_ } = head;
    let table = table.filter(|table| *table != 0).map(|table| format!("table={table},"));
    let match_ = match match_ {
        Some(match_) if *match_ == Match::ANY => String::new(),
        Some(match_) => format!(",{match_}"),
        None => ",...".to_string(),
    };
    format!("{command} {}priority={priority}{match_}", table.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::v10;

    #[test]
    fn each_row_names_an_existing_error_and_message_type() {
        for (error, type_, why) in WHY {
            let mut names = openflow::error::v10::NAMES.iter().chain(openflow::error::v13::NAMES);
            assert!(names.any(|(_, name)| name == error), "{error}");
            let is_type = |version| (0..30).any(|number| type_name(number, version) == *type_);
            let known = [Version::V1_0, Version::V1_3].into_iter().any(is_type);
            assert!(*type_ == ANY || known, "{type_}");
            says_one_thing(why);
        }
    }

    #[test]
    fn each_reason_has_a_text_without_alternatives() {
        for reason in Reason::ALL {
            assert_eq!(of_reason(*reason).is_none(), *reason == Reason::ByCode);
            of_reason(*reason).into_iter().for_each(says_one_thing);
        }
    }

    fn says_one_thing(why: &str) {
        assert!(!why.contains("  ") && !why.contains('\n'), "{why}");
        assert!(!why.contains(" or "), "{why}");
    }

    #[test]
    fn a_truncated_request_is_described_as_far_as_its_bytes_allow() {
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
