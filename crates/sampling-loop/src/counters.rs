//! The switch's counters, as `ovs-ofctl` prints them.

use crate::protocol::Observed;
use lab::OpenVSwitch;

/// Reads both kinds: port counters are current, flow counters are some hundred milliseconds old.
pub(crate) fn read(switch: &OpenVSwitch, bridge: &str, into: &mut Observed) -> lab::Result<()> {
    into.flows = flows(&switch.ofctl(["--names", "dump-flows", bridge])?);
    into.ports = ports(&switch.ofctl(["--names", "dump-ports", bridge])?);
    Ok(())
}

/// Lines such as `cookie=0x0, …, n_packets=5, …, in_port="vm0",dl_dst=00:… actions=…`.
fn flows(text: &str) -> Vec<(String, String, u64)> {
    let flow = |line: &str| {
        let (matches, _) = line.split_once(" actions=")?;
        let field = |name: &str| {
            let mut fields = matches.split([',', ' ']);
            fields.find_map(|field| field.strip_prefix(name)).map(|value| value.trim_matches('"'))
        };
        let packets = field("n_packets=")?.parse().ok()?;
        Some((field("in_port=")?.to_owned(), field("dl_dst=")?.to_owned(), packets))
    };
    text.lines().filter_map(flow).collect()
}

/// Lines such as `  port  "vm0": rx pkts=5, bytes=…`.
fn ports(text: &str) -> Vec<(String, u64)> {
    let port = |line: &str| {
        let (name, rest) = line.trim_start().strip_prefix("port")?.split_once(':')?;
        let packets = rest.trim_start().strip_prefix("rx pkts=")?.split(',').next()?;
        Some((name.trim().trim_matches('"').to_owned(), packets.parse().ok()?))
    };
    text.lines().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_and_port_counters_are_read_from_open_vswitch_output() {
        // The output of Open vSwitch 3.1.
        let printed = "NXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=14.508s, table=0, n_packets=172, n_bytes=237016, idle_age=0, in_port=\"eth0\",dl_dst=00:00:00:00:00:05 actions=output:eth3\n cookie=0x0, duration=1.2s, table=0, n_packets=1, n_bytes=60, priority=1 actions=drop\n";
        assert_eq!(flows(printed), [("eth0".into(), "00:00:00:00:00:05".into(), 172)]);
        let printed = "OFPST_PORT reply (xid=0x2): 2 ports\n  port LOCAL: rx pkts=0, bytes=0, drop=0, errs=0, frame=0, over=0, crc=0\n           tx pkts=0, bytes=0, drop=0, errs=0, coll=0\n  port  eth0: rx pkts=1032, bytes=9, drop=0, errs=0, frame=0, over=0, crc=0\n           tx pkts=5, bytes=1, drop=0, errs=0, coll=0\n  port  \"x-1\": rx pkts=?, bytes=0\n";
        assert_eq!(ports(printed), [("LOCAL".into(), 0), ("eth0".into(), 1032)]);
        assert!(flows("").is_empty() && ports("port x\nport y: rx").is_empty());
    }
}
