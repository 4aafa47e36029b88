//! The differences between OpenFlow 1.0 and OpenFlow 1.3, as a record of facts for each version. The sections are those
//! of the specifications 1.0.0 and 1.3.5.
//!
//! Not here: the bytes of messages, which the modules `v10` and `v13` read and write, by way of [`crate::messages`].
//! How the compiler uses a physical switch of a version, such as table 0 and its metadata, is in [`compile::Target`].

use crate::policy::LabelForm;
use compile::Wire;
use openflow::error::{v10 as code_v10, v13 as code_v13};
use openflow::v10::PortConfig;
use openflow::{ErrorCode, Version, v10, v13};

/// The facts of one version.
pub(crate) struct Semantics {
    /// The version, as headers have it.
    pub version: Version,
    /// Whether a MODIFY that finds no entry adds one (1.0, section 4.6; 1.3, section 6.4).
    pub modify_adds: bool,
    /// Further facts about FLOW_MODs.
    pub flow_mod: FlowMods,
    /// Whether a DELETE can name entries by their cookie (1.3, section 6.4).
    pub deletes_by_cookie: bool,
    /// Whether the type of a request alone decides that a slave or a reader may not make the request, before Weir reads
    /// the request (1.3, section 6.3.4).
    pub rights_by_type: bool,
    /// Whether there are groups and meters (1.3, sections 5.6 and 5.7).
    pub has_groups: bool,
    /// Whether a controller can ask a switch for the asynchronous messages that it wants (1.3, section 7.3.10).
    pub has_set_async: bool,
    /// The configuration bits of a network's port (1.0, section 5.2.1; 1.3, section 7.2.1). Ports of networks do not
    /// distinguish spanning-tree frames, so `OFPPC_NO_RECV_STP` is not included.
    pub port_config: PortConfig,
    /// The form of labels in port descriptions.
    pub label_form: LabelForm,
    /// The first byte of a stored entry with match and actions of this version.
    pub stored_as: u8,
    /// Numbers of message types.
    pub types: Types,
    /// Places in messages.
    pub layout: Layout,
    /// Error codes.
    pub codes: Codes,
}

/// What FLOW_MODs do.
pub(crate) struct FlowMods {
    /// Whether a MODIFY gives entries its cookie (1.0, section 4.6; 1.3, section 6.4).
    pub modify_sets_cookie: bool,
    /// Whether an ADD that replaces an entry always sets the counts to 0 (1.0, section 4.6).
    pub add_resets_counts: bool,
    /// The flag that sets the counts to 0 (1.3, section 6.4), or 0.
    pub reset_counts_flag: u16,
    /// The flag of an emergency entry (1.0, section 5.3.3), or 0.
    pub emergency_flag: u16,
}

/// Numbers of message types that differ between the versions, or that only one version has.
pub(crate) struct Types {
    /// BARRIER_REQUEST. The number of BARRIER_REPLY is the next.
    pub barrier_request: u8,
    /// PORT_MOD.
    pub port_mod: u8,
    /// The request by which a controller asks for a role: ROLE_REQUEST, or before 1.3 a VENDOR message.
    pub role_request: u8,
    /// STATS_REPLY or MULTIPART_REPLY.
    pub statistics_reply: u8,
    /// The requests that change tables: FLOW_MOD, GROUP_MOD, METER_MOD.
    pub changes_tables: &'static [u8],
}

/// Offsets of fields in messages, in bytes from the beginning of the message.
pub(crate) struct Layout {
    /// `actions_len` of a PACKET_OUT (1.0, section 5.3.6; 1.3, section 7.3.7).
    pub packet_out_length: usize,
    /// The actions of a PACKET_OUT.
    pub packet_out_actions: usize,
    /// The padding between the flags and the statistics of a reply (1.0, section 5.3.5; 1.3, section 7.3.5).
    pub statistics_padding: &'static [u8],
    /// The name of a port, in the description of the port (1.0, section 5.2.1; 1.3, section 7.2.1). The fields before
    /// the name are also the first fields of a PORT_MOD.
    pub port_name: usize,
    /// The cookie of a rule in flow statistics (1.0, section 5.3.5; 1.3, section 7.3.5.2).
    pub flow_stats_cookie: usize,
}

/// Error codes that mean the same in both versions, but have different numbers.
pub(crate) struct Codes {
    /// Two entries overlap, or have the same rule on the switch.
    pub overlap: ErrorCode,
    /// There is no room for a rule.
    pub table_full: ErrorCode,
    /// The tenant may not write FLOW_MODs.
    pub flow_mod_not_permitted: ErrorCode,
    /// A SET_CONFIG that would change the switch for all tenants.
    pub config_not_permitted: ErrorCode,
    /// A request for the counts of a port that the tenant does not have.
    pub bad_port: ErrorCode,
    /// The error code for queues of a port that the tenant does not have.
    pub queue_bad_port: ErrorCode,
    /// A request for the counts of a queue that the tenant may not use.
    pub queue_bad_queue: ErrorCode,
    /// The command of a FLOW_MOD is unknown.
    pub bad_command: ErrorCode,
    /// The answer is larger than Weir keeps.
    pub too_much: ErrorCode,
    /// The types of errors that depend on the present tables.
    pub of_tables: &'static [u16],
    /// Error codes of a refused PORT_MOD.
    pub port_mod: PortModCodes,
}

/// Error codes of a refused PORT_MOD. 1.0 has special codes only for the first two errors (section 5.4.4).
pub(crate) struct PortModCodes {
    pub bad_port: ErrorCode,
    pub bad_hw_addr: ErrorCode,
    pub bad_config: ErrorCode,
    pub bad_advertise: ErrorCode,
    pub not_permitted: ErrorCode,
}

/// The switch did not answer in time. OpenFlow 1.0 and 1.3 have no code for a time-out: "permissions error" comes
/// closest to "not now". This code has the same number in both versions.
pub(crate) const UNANSWERED: ErrorCode = code_v13::BAD_REQUEST_EPERM;

/// The configuration bits of a port that both versions have.
const PORT_CONFIG: PortConfig = PortConfig(
    PortConfig::PORT_DOWN.0
        | PortConfig::NO_RECV.0
        | PortConfig::NO_FWD.0
        | PortConfig::NO_PACKET_IN.0,
);

static V10: Semantics = Semantics {
    version: Version::V1_0,
    modify_adds: true,
    flow_mod: FlowMods {
        modify_sets_cookie: true,
        add_resets_counts: true,
        reset_counts_flag: 0,
        emergency_flag: v10::FlowModFlags::EMERG.0,
    },
    deletes_by_cookie: false,
    rights_by_type: false,
    has_groups: false,
    has_set_async: false,
    port_config: PortConfig(PORT_CONFIG.0 | PortConfig::NO_STP.0 | PortConfig::NO_FLOOD.0),
    label_form: LabelForm::OpenFlow10,
    stored_as: 2,
    types: Types {
        barrier_request: v10::MessageType::BARRIER_REQUEST.0,
        port_mod: v10::MessageType::PORT_MOD.0,
        role_request: v10::MessageType::VENDOR.0,
        statistics_reply: v10::MessageType::STATS_REPLY.0,
        changes_tables: &[v10::MessageType::FLOW_MOD.0],
    },
    layout: Layout {
        packet_out_length: 14,
        packet_out_actions: 16,
        statistics_padding: &[],
        port_name: 8,
        flow_stats_cookie: 64,
    },
    codes: Codes {
        overlap: code_v10::FLOW_MOD_FAILED_OVERLAP,
        table_full: code_v10::FLOW_MOD_FAILED_ALL_TABLES_FULL,
        flow_mod_not_permitted: code_v10::FLOW_MOD_FAILED_EPERM,
        config_not_permitted: code_v10::BAD_REQUEST_EPERM,
        bad_port: code_v10::BAD_REQUEST_EPERM,
        queue_bad_port: code_v10::QUEUE_OP_FAILED_BAD_PORT,
        queue_bad_queue: code_v10::QUEUE_OP_FAILED_BAD_QUEUE,
        bad_command: code_v10::FLOW_MOD_FAILED_BAD_COMMAND,
        too_much: code_v10::BAD_REQUEST_BAD_LEN,
        of_tables: &[code_v10::FLOW_MOD_FAILED_ALL_TABLES_FULL.type_],
        port_mod: PortModCodes {
            bad_port: code_v10::PORT_MOD_FAILED_BAD_PORT,
            bad_hw_addr: code_v10::PORT_MOD_FAILED_BAD_HW_ADDR,
            bad_config: code_v10::BAD_REQUEST_EPERM,
            bad_advertise: code_v10::BAD_REQUEST_EPERM,
            not_permitted: code_v10::BAD_REQUEST_EPERM,
        },
    },
};

static V13: Semantics = Semantics {
    version: Version::V1_3,
    modify_adds: false,
    flow_mod: FlowMods {
        modify_sets_cookie: false,
        add_resets_counts: false,
        reset_counts_flag: v13::FlowModFlags::RESET_COUNTS.0,
        emergency_flag: 0,
    },
    deletes_by_cookie: true,
    rights_by_type: true,
    has_groups: true,
    has_set_async: true,
    port_config: PORT_CONFIG,
    label_form: LabelForm::OpenFlow13,
    stored_as: 3,
    types: Types {
        barrier_request: v13::MessageType::BARRIER_REQUEST.0,
        port_mod: v13::MessageType::PORT_MOD.0,
        role_request: v13::MessageType::ROLE_REQUEST.0,
        statistics_reply: v13::MessageType::MULTIPART_REPLY.0,
        changes_tables: &[
            v13::MessageType::FLOW_MOD.0,
            v13::MessageType::GROUP_MOD.0,
            v13::MessageType::METER_MOD.0,
        ],
    },
    layout: Layout {
        packet_out_length: 16,
        packet_out_actions: 24,
        statistics_padding: &[0; 4],
        port_name: 16,
        flow_stats_cookie: 24,
    },
    codes: Codes {
        overlap: code_v13::FLOW_MOD_FAILED_OVERLAP,
        table_full: code_v13::FLOW_MOD_FAILED_TABLE_FULL,
        flow_mod_not_permitted: code_v13::FLOW_MOD_FAILED_EPERM,
        config_not_permitted: code_v13::SWITCH_CONFIG_FAILED_EPERM,
        bad_port: code_v13::BAD_REQUEST_BAD_PORT,
        queue_bad_port: code_v13::QUEUE_OP_FAILED_BAD_PORT,
        queue_bad_queue: code_v13::QUEUE_OP_FAILED_BAD_QUEUE,
        bad_command: code_v13::FLOW_MOD_FAILED_BAD_COMMAND,
        too_much: code_v13::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW,
        of_tables: &[
            code_v13::FLOW_MOD_FAILED_TABLE_FULL.type_,
            code_v13::GROUP_MOD_FAILED_OUT_OF_GROUPS.type_,
            code_v13::METER_MOD_FAILED_OUT_OF_METERS.type_,
        ],
        port_mod: PortModCodes {
            bad_port: code_v13::PORT_MOD_FAILED_BAD_PORT,
            bad_hw_addr: code_v13::PORT_MOD_FAILED_BAD_HW_ADDR,
            bad_config: code_v13::PORT_MOD_FAILED_BAD_CONFIG,
            bad_advertise: code_v13::PORT_MOD_FAILED_BAD_ADVERTISE,
            not_permitted: code_v13::PORT_MOD_FAILED_EPERM,
        },
    },
};

impl Layout {
    /// The statistics of a reply, from the beginning of its body.
    pub(crate) fn statistics_entries(&self) -> usize {
        4 + self.statistics_padding.len()
    }
}

impl Semantics {
    /// The facts of a version.
    #[inline]
    pub(crate) fn of(wire: Wire) -> &'static Semantics {
        match wire {
            Wire::V10 => &V10,
            Wire::V13 => &V13,
        }
    }

    /// The version, if Weir speaks this version, too.
    pub(crate) fn spoken(version: Version) -> Option<Wire> {
        let wire = Wire::of(version);
        (Semantics::of(wire).version == version).then_some(wire)
    }
}
