//! The error codes of OpenFlow 1.0 (specification 1.0.0, section 5.4.4).

use super::code::{ErrorCode, codes};

codes! {
    HELLO_FAILED_INCOMPATIBLE = 0, 0, "OFPHFC_INCOMPATIBLE": "no compatible version.";
    HELLO_FAILED_EPERM = 0, 1, "OFPHFC_EPERM": "permissions error.";

    BAD_REQUEST_BAD_VERSION = 1, 0, "OFPBRC_BAD_VERSION": "the header's version is not supported.";
    BAD_REQUEST_BAD_TYPE = 1, 1, "OFPBRC_BAD_TYPE": "the header's type is not supported.";
    BAD_REQUEST_BAD_STAT = 1, 2, "OFPBRC_BAD_STAT": "the statistics type is not supported.";
    BAD_REQUEST_BAD_VENDOR = 1, 3, "OFPBRC_BAD_VENDOR": "the vendor is not supported.";
    BAD_REQUEST_BAD_SUBTYPE = 1, 4, "OFPBRC_BAD_SUBTYPE": "the vendor's subtype is not supported.";
    BAD_REQUEST_EPERM = 1, 5, "OFPBRC_EPERM": "permissions error.";
    BAD_REQUEST_BAD_LEN = 1, 6, "OFPBRC_BAD_LEN": "wrong request length for the type.";
    BAD_REQUEST_BUFFER_EMPTY = 1, 7, "OFPBRC_BUFFER_EMPTY": "the buffer was already used.";
    BAD_REQUEST_BUFFER_UNKNOWN = 1, 8, "OFPBRC_BUFFER_UNKNOWN": "the buffer does not exist.";

    BAD_ACTION_BAD_TYPE = 2, 0, "OFPBAC_BAD_TYPE": "unknown action type.";
    BAD_ACTION_BAD_LEN = 2, 1, "OFPBAC_BAD_LEN": "length problem in the actions.";
    BAD_ACTION_BAD_VENDOR = 2, 2, "OFPBAC_BAD_VENDOR": "unknown vendor id.";
    BAD_ACTION_BAD_VENDOR_TYPE = 2, 3, "OFPBAC_BAD_VENDOR_TYPE": "unknown action for the vendor id.";
    BAD_ACTION_BAD_OUT_PORT = 2, 4, "OFPBAC_BAD_OUT_PORT": "problem validating the output port.";
    BAD_ACTION_BAD_ARGUMENT = 2, 5, "OFPBAC_BAD_ARGUMENT": "bad action argument.";
    BAD_ACTION_EPERM = 2, 6, "OFPBAC_EPERM": "permissions error.";
    BAD_ACTION_TOO_MANY = 2, 7, "OFPBAC_TOO_MANY": "more actions than the switch can handle.";
    BAD_ACTION_BAD_QUEUE = 2, 8, "OFPBAC_BAD_QUEUE": "problem validating the output queue.";

    FLOW_MOD_FAILED_ALL_TABLES_FULL = 3, 0, "OFPFMFC_ALL_TABLES_FULL": "the tables are full.";
    FLOW_MOD_FAILED_OVERLAP = 3, 1, "OFPFMFC_OVERLAP": "an overlapping entry exists and CHECK_OVERLAP is set.";
    FLOW_MOD_FAILED_EPERM = 3, 2, "OFPFMFC_EPERM": "permissions error.";
    FLOW_MOD_FAILED_BAD_EMERG_TIMEOUT = 3, 3, "OFPFMFC_BAD_EMERG_TIMEOUT": "an emergency entry with a time-out.";
    FLOW_MOD_FAILED_BAD_COMMAND = 3, 4, "OFPFMFC_BAD_COMMAND": "unknown command.";
    FLOW_MOD_FAILED_UNSUPPORTED = 3, 5, "OFPFMFC_UNSUPPORTED": "the action list cannot be processed in this order.";

    PORT_MOD_FAILED_BAD_PORT = 4, 0, "OFPPMFC_BAD_PORT": "the port does not exist.";
    PORT_MOD_FAILED_BAD_HW_ADDR = 4, 1, "OFPPMFC_BAD_HW_ADDR": "the hardware address is wrong.";

    QUEUE_OP_FAILED_BAD_PORT = 5, 0, "OFPQOFC_BAD_PORT": "the port is invalid or does not exist.";
    QUEUE_OP_FAILED_BAD_QUEUE = 5, 1, "OFPQOFC_BAD_QUEUE": "the queue does not exist.";
    QUEUE_OP_FAILED_EPERM = 5, 2, "OFPQOFC_EPERM": "permissions error.";
}
