//! OpenFlow 1.3 (wire version 0x04).
