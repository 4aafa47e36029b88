//! The error codes of OpenFlow 1.3 (specification 1.3.5, section 7.4.4).

use super::code::{ErrorCode, codes};

codes! {
    HELLO_FAILED_INCOMPATIBLE = 0, 0, "OFPHFC_INCOMPATIBLE": "no compatible version.";
    HELLO_FAILED_EPERM = 0, 1, "OFPHFC_EPERM": "permissions error.";

    BAD_REQUEST_BAD_VERSION = 1, 0, "OFPBRC_BAD_VERSION": "the header's version is not supported.";
    BAD_REQUEST_BAD_TYPE = 1, 1, "OFPBRC_BAD_TYPE": "the header's type is not supported.";
    BAD_REQUEST_BAD_MULTIPART = 1, 2, "OFPBRC_BAD_MULTIPART": "the multipart type is not supported.";
    BAD_REQUEST_BAD_EXPERIMENTER = 1, 3, "OFPBRC_BAD_EXPERIMENTER": "the experimenter id is not supported.";
    BAD_REQUEST_BAD_EXP_TYPE = 1, 4, "OFPBRC_BAD_EXP_TYPE": "the experimenter type is not supported.";
    BAD_REQUEST_EPERM = 1, 5, "OFPBRC_EPERM": "permissions error.";
    BAD_REQUEST_BAD_LEN = 1, 6, "OFPBRC_BAD_LEN": "wrong request length for the type.";
    BAD_REQUEST_BUFFER_EMPTY = 1, 7, "OFPBRC_BUFFER_EMPTY": "the buffer was already used.";
    BAD_REQUEST_BUFFER_UNKNOWN = 1, 8, "OFPBRC_BUFFER_UNKNOWN": "the buffer does not exist.";
    BAD_REQUEST_BAD_TABLE_ID = 1, 9, "OFPBRC_BAD_TABLE_ID": "the table id is invalid or does not exist.";
    BAD_REQUEST_IS_SLAVE = 1, 10, "OFPBRC_IS_SLAVE": "denied because the controller is a slave.";
    BAD_REQUEST_BAD_PORT = 1, 11, "OFPBRC_BAD_PORT": "invalid port.";
    BAD_REQUEST_BAD_PACKET = 1, 12, "OFPBRC_BAD_PACKET": "invalid packet in a PACKET_OUT.";
    BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW = 1, 13, "OFPBRC_MULTIPART_BUFFER_OVERFLOW":
        "the multipart request overflowed the buffer.";

    BAD_ACTION_BAD_TYPE = 2, 0, "OFPBAC_BAD_TYPE": "unknown or unsupported action type.";
    BAD_ACTION_BAD_LEN = 2, 1, "OFPBAC_BAD_LEN": "length problem in the actions.";
    BAD_ACTION_BAD_EXPERIMENTER = 2, 2, "OFPBAC_BAD_EXPERIMENTER": "unknown experimenter id.";
    BAD_ACTION_BAD_EXP_TYPE = 2, 3, "OFPBAC_BAD_EXP_TYPE": "unknown action for the experimenter id.";
    BAD_ACTION_BAD_OUT_PORT = 2, 4, "OFPBAC_BAD_OUT_PORT": "problem validating the output port.";
    BAD_ACTION_BAD_ARGUMENT = 2, 5, "OFPBAC_BAD_ARGUMENT": "bad action argument.";
    BAD_ACTION_EPERM = 2, 6, "OFPBAC_EPERM": "permissions error.";
    BAD_ACTION_TOO_MANY = 2, 7, "OFPBAC_TOO_MANY": "more actions than the switch can handle.";
    BAD_ACTION_BAD_QUEUE = 2, 8, "OFPBAC_BAD_QUEUE": "problem validating the output queue.";
    BAD_ACTION_BAD_OUT_GROUP = 2, 9, "OFPBAC_BAD_OUT_GROUP": "invalid group id in a group action.";
    BAD_ACTION_MATCH_INCONSISTENT = 2, 10, "OFPBAC_MATCH_INCONSISTENT":
        "the action cannot apply for this match, or a set-field lacks its prerequisite.";
    BAD_ACTION_UNSUPPORTED_ORDER = 2, 11, "OFPBAC_UNSUPPORTED_ORDER":
        "the action order is unsupported in an apply-actions instruction.";
    BAD_ACTION_BAD_TAG = 2, 12, "OFPBAC_BAD_TAG": "an action uses an unsupported tag or encapsulation.";
    BAD_ACTION_BAD_SET_TYPE = 2, 13, "OFPBAC_BAD_SET_TYPE": "unsupported type in a set-field action.";
    BAD_ACTION_BAD_SET_LEN = 2, 14, "OFPBAC_BAD_SET_LEN": "length problem in a set-field action.";
    BAD_ACTION_BAD_SET_ARGUMENT = 2, 15, "OFPBAC_BAD_SET_ARGUMENT": "bad argument in a set-field action.";

    BAD_INSTRUCTION_UNKNOWN_INST = 3, 0, "OFPBIC_UNKNOWN_INST": "unknown instruction.";
    BAD_INSTRUCTION_UNSUP_INST = 3, 1, "OFPBIC_UNSUP_INST": "the switch or table does not support the instruction.";
    BAD_INSTRUCTION_BAD_TABLE_ID = 3, 2, "OFPBIC_BAD_TABLE_ID": "invalid table id.";
    BAD_INSTRUCTION_UNSUP_METADATA = 3, 3, "OFPBIC_UNSUP_METADATA": "the metadata mask is not supported.";
    BAD_INSTRUCTION_UNSUP_METADATA_MASK = 3, 4, "OFPBIC_UNSUP_METADATA_MASK":
        "the metadata mask value is not supported.";
    BAD_INSTRUCTION_BAD_EXPERIMENTER = 3, 5, "OFPBIC_BAD_EXPERIMENTER": "unknown experimenter id.";
    BAD_INSTRUCTION_BAD_EXP_TYPE = 3, 6, "OFPBIC_BAD_EXP_TYPE": "unknown instruction for the experimenter id.";
    BAD_INSTRUCTION_BAD_LEN = 3, 7, "OFPBIC_BAD_LEN": "length problem in the instructions.";
    BAD_INSTRUCTION_EPERM = 3, 8, "OFPBIC_EPERM": "permissions error.";

    BAD_MATCH_BAD_TYPE = 4, 0, "OFPBMC_BAD_TYPE": "unsupported match type.";
    BAD_MATCH_BAD_LEN = 4, 1, "OFPBMC_BAD_LEN": "length problem in the match.";
    BAD_MATCH_BAD_TAG = 4, 2, "OFPBMC_BAD_TAG": "the match uses an unsupported tag or encapsulation.";
    BAD_MATCH_BAD_DL_ADDR_MASK = 4, 3, "OFPBMC_BAD_DL_ADDR_MASK": "unsupported data-link address mask.";
    BAD_MATCH_BAD_NW_ADDR_MASK = 4, 4, "OFPBMC_BAD_NW_ADDR_MASK": "unsupported network address mask.";
    BAD_MATCH_BAD_WILDCARDS = 4, 5, "OFPBMC_BAD_WILDCARDS": "unsupported combination of masked or omitted fields.";
    BAD_MATCH_BAD_FIELD = 4, 6, "OFPBMC_BAD_FIELD": "unsupported field type in the match.";
    BAD_MATCH_BAD_VALUE = 4, 7, "OFPBMC_BAD_VALUE": "unsupported value in a match field.";
    BAD_MATCH_BAD_MASK = 4, 8, "OFPBMC_BAD_MASK": "unsupported mask in the match.";
    BAD_MATCH_BAD_PREREQ = 4, 9, "OFPBMC_BAD_PREREQ": "a prerequisite was not met.";
    BAD_MATCH_DUP_FIELD = 4, 10, "OFPBMC_DUP_FIELD": "a field type was duplicated.";
    BAD_MATCH_EPERM = 4, 11, "OFPBMC_EPERM": "permissions error.";

    FLOW_MOD_FAILED_UNKNOWN = 5, 0, "OFPFMFC_UNKNOWN": "unspecified error.";
    FLOW_MOD_FAILED_TABLE_FULL = 5, 1, "OFPFMFC_TABLE_FULL": "the table is full.";
    FLOW_MOD_FAILED_BAD_TABLE_ID = 5, 2, "OFPFMFC_BAD_TABLE_ID": "the table does not exist.";
    FLOW_MOD_FAILED_OVERLAP = 5, 3, "OFPFMFC_OVERLAP": "an overlapping entry exists and CHECK_OVERLAP is set.";
    FLOW_MOD_FAILED_EPERM = 5, 4, "OFPFMFC_EPERM": "permissions error.";
    FLOW_MOD_FAILED_BAD_TIMEOUT = 5, 5, "OFPFMFC_BAD_TIMEOUT": "unsupported idle or hard time-out.";
    FLOW_MOD_FAILED_BAD_COMMAND = 5, 6, "OFPFMFC_BAD_COMMAND": "unsupported or unknown command.";
    FLOW_MOD_FAILED_BAD_FLAGS = 5, 7, "OFPFMFC_BAD_FLAGS": "unsupported or unknown flags.";

    GROUP_MOD_FAILED_GROUP_EXISTS = 6, 0, "OFPGMFC_GROUP_EXISTS": "ADD of a group that is already there.";
    GROUP_MOD_FAILED_INVALID_GROUP = 6, 1, "OFPGMFC_INVALID_GROUP": "the group specified is invalid.";
    GROUP_MOD_FAILED_WEIGHT_UNSUPPORTED = 6, 2, "OFPGMFC_WEIGHT_UNSUPPORTED":
        "unequal load sharing with select groups is not supported.";
    GROUP_MOD_FAILED_OUT_OF_GROUPS = 6, 3, "OFPGMFC_OUT_OF_GROUPS": "the group table is full.";
    GROUP_MOD_FAILED_OUT_OF_BUCKETS = 6, 4, "OFPGMFC_OUT_OF_BUCKETS": "the maximum number of buckets is exceeded.";
    GROUP_MOD_FAILED_CHAINING_UNSUPPORTED = 6, 5, "OFPGMFC_CHAINING_UNSUPPORTED":
        "groups that forward to groups are not supported.";
    GROUP_MOD_FAILED_WATCH_UNSUPPORTED = 6, 6, "OFPGMFC_WATCH_UNSUPPORTED":
        "the watch port or group cannot be watched.";
    GROUP_MOD_FAILED_LOOP = 6, 7, "OFPGMFC_LOOP": "the group would cause a loop.";
    GROUP_MOD_FAILED_UNKNOWN_GROUP = 6, 8, "OFPGMFC_UNKNOWN_GROUP": "MODIFY of a group that does not exist.";
    GROUP_MOD_FAILED_CHAINED_GROUP = 6, 9, "OFPGMFC_CHAINED_GROUP":
        "the group is not deleted because another group forwards to it.";
    GROUP_MOD_FAILED_BAD_TYPE = 6, 10, "OFPGMFC_BAD_TYPE": "unsupported or unknown group type.";
    GROUP_MOD_FAILED_BAD_COMMAND = 6, 11, "OFPGMFC_BAD_COMMAND": "unsupported or unknown command.";
    GROUP_MOD_FAILED_BAD_BUCKET = 6, 12, "OFPGMFC_BAD_BUCKET": "error in a bucket.";
    GROUP_MOD_FAILED_BAD_WATCH = 6, 13, "OFPGMFC_BAD_WATCH": "error in a watch port or group.";
    GROUP_MOD_FAILED_EPERM = 6, 14, "OFPGMFC_EPERM": "permissions error.";

    PORT_MOD_FAILED_BAD_PORT = 7, 0, "OFPPMFC_BAD_PORT": "the port does not exist.";
    PORT_MOD_FAILED_BAD_HW_ADDR = 7, 1, "OFPPMFC_BAD_HW_ADDR": "the hardware address does not match the port.";
    PORT_MOD_FAILED_BAD_CONFIG = 7, 2, "OFPPMFC_BAD_CONFIG": "the configuration is invalid.";
    PORT_MOD_FAILED_BAD_ADVERTISE = 7, 3, "OFPPMFC_BAD_ADVERTISE": "the advertised features are invalid.";
    PORT_MOD_FAILED_EPERM = 7, 4, "OFPPMFC_EPERM": "permissions error.";

    TABLE_MOD_FAILED_BAD_TABLE = 8, 0, "OFPTMFC_BAD_TABLE": "the table does not exist.";
    TABLE_MOD_FAILED_BAD_CONFIG = 8, 1, "OFPTMFC_BAD_CONFIG": "the configuration is invalid.";
    TABLE_MOD_FAILED_EPERM = 8, 2, "OFPTMFC_EPERM": "permissions error.";

    QUEUE_OP_FAILED_BAD_PORT = 9, 0, "OFPQOFC_BAD_PORT": "the port is invalid or does not exist.";
    QUEUE_OP_FAILED_BAD_QUEUE = 9, 1, "OFPQOFC_BAD_QUEUE": "the queue does not exist.";
    QUEUE_OP_FAILED_EPERM = 9, 2, "OFPQOFC_EPERM": "permissions error.";

    SWITCH_CONFIG_FAILED_BAD_FLAGS = 10, 0, "OFPSCFC_BAD_FLAGS": "the flags are invalid.";
    SWITCH_CONFIG_FAILED_BAD_LEN = 10, 1, "OFPSCFC_BAD_LEN": "the length is invalid.";
    SWITCH_CONFIG_FAILED_EPERM = 10, 2, "OFPSCFC_EPERM": "permissions error.";

    ROLE_REQUEST_FAILED_STALE = 11, 0, "OFPRRFC_STALE": "the generation id is stale.";
    ROLE_REQUEST_FAILED_UNSUP = 11, 1, "OFPRRFC_UNSUP": "changing the role is not supported.";
    ROLE_REQUEST_FAILED_BAD_ROLE = 11, 2, "OFPRRFC_BAD_ROLE": "invalid role.";

    METER_MOD_FAILED_UNKNOWN = 12, 0, "OFPMMFC_UNKNOWN": "unspecified error.";
    METER_MOD_FAILED_METER_EXISTS = 12, 1, "OFPMMFC_METER_EXISTS": "ADD of a meter that is already there.";
    METER_MOD_FAILED_INVALID_METER = 12, 2, "OFPMMFC_INVALID_METER": "the meter specified is invalid.";
    METER_MOD_FAILED_UNKNOWN_METER = 12, 3, "OFPMMFC_UNKNOWN_METER": "MODIFY of a meter that does not exist.";
    METER_MOD_FAILED_BAD_COMMAND = 12, 4, "OFPMMFC_BAD_COMMAND": "unsupported or unknown command.";
    METER_MOD_FAILED_BAD_FLAGS = 12, 5, "OFPMMFC_BAD_FLAGS": "unsupported flags.";
    METER_MOD_FAILED_BAD_RATE = 12, 6, "OFPMMFC_BAD_RATE": "unsupported rate.";
    METER_MOD_FAILED_BAD_BURST = 12, 7, "OFPMMFC_BAD_BURST": "unsupported burst size.";
    METER_MOD_FAILED_BAD_BAND = 12, 8, "OFPMMFC_BAD_BAND": "unsupported band.";
    METER_MOD_FAILED_BAD_BAND_VALUE = 12, 9, "OFPMMFC_BAD_BAND_VALUE": "unsupported value in a band.";
    METER_MOD_FAILED_OUT_OF_METERS = 12, 10, "OFPMMFC_OUT_OF_METERS": "no more meters are available.";
    METER_MOD_FAILED_OUT_OF_BANDS = 12, 11, "OFPMMFC_OUT_OF_BANDS": "the maximum number of bands is exceeded.";

    TABLE_FEATURES_FAILED_BAD_TABLE = 13, 0, "OFPTFFC_BAD_TABLE": "the table does not exist.";
    TABLE_FEATURES_FAILED_BAD_METADATA = 13, 1, "OFPTFFC_BAD_METADATA": "invalid metadata mask.";
    TABLE_FEATURES_FAILED_BAD_TYPE = 13, 2, "OFPTFFC_BAD_TYPE": "unknown property type.";
    TABLE_FEATURES_FAILED_BAD_LEN = 13, 3, "OFPTFFC_BAD_LEN": "length problem in the properties.";
    TABLE_FEATURES_FAILED_BAD_ARGUMENT = 13, 4, "OFPTFFC_BAD_ARGUMENT": "unsupported property value.";
    TABLE_FEATURES_FAILED_EPERM = 13, 5, "OFPTFFC_EPERM": "permissions error.";
}
