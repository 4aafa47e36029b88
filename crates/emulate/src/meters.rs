//! The meters of OpenFlow 1.3 (section 5.7). Each band has a token bucket.

use std::collections::BTreeMap;

const SECOND: u128 = 1_000_000_000;

/// `OFPMF_PKTPS`: rates are in packets, not in kilobits.
const FLAG_PACKETS: u16 = 1 << 1;
/// `OFPMF_BURST`: the bands' burst sizes are valid.
const FLAG_BURST: u16 = 1 << 2;

/// All meters of a switch by id.
pub(crate) type Meters = BTreeMap<u32, Meter>;

/// One meter.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// The flags of the meter (`OFPMF_*`).
    pub flags: u16,
    /// The bands in the order of the METER_MOD.
    pub bands: Vec<Band>,
    /// The time when the meter was added, ns.
    pub created: u64,
    /// Packets that entered the meter.
    pub packets: u64,
    /// Bytes that entered the meter.
    pub bytes: u64,
}

/// One band of a meter.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    /// The treatment of packets beyond the rate.
    pub kind: BandKind,
    /// The rate, in kilobits (or packets) per second.
    pub rate: u32,
    /// The burst size, in kilobits (or packets). The value 0 means the amount of one second.
    pub burst: u32,
    /// Packets beyond the rate.
    pub packets: u64,
    /// Bytes beyond the rate.
    pub bytes: u64,
    /// The remaining tokens, in units of 10⁻⁹ bit (or packet). The unit makes the count exact for
    /// all intervals.
    tokens: u128,
    filled: u64,
}

/// The treatment of packets that exceed the rate of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BandKind {
    /// Drops the packet.
    Drop,
    /// Raises the drop precedence in the DSCP field by this number of levels.
    DscpRemark(u8),
}

/// The decision of a meter for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The packet is within the rate of every band.
    Pass,
    /// The packet exceeds a rate. The exceeded band with the highest rate decides.
    Exceeded(BandKind),
}

impl Band {
    /// Makes a band. [`Meter::new`] fills its token bucket.
    pub(crate) fn new(kind: BandKind, rate: u32, burst: u32) -> Band {
        Band { kind, rate, burst, packets: 0, bytes: 0, tokens: 0, filled: 0 }
    }
}

impl Meter {
    /// Makes a meter with full token buckets.
    pub(crate) fn new(now: u64, flags: u16, mut bands: Vec<Band>) -> Meter {
        for band in &mut bands {
            band.tokens = capacity(flags, band);
            band.filled = now;
        }
        Meter { flags, bands, created: now, packets: 0, bytes: 0 }
    }

    /// Counts a packet of `length` bytes at `now` (ns), and returns the decision for the packet.
    pub(crate) fn apply(&mut self, now: u64, length: usize) -> Verdict {
        self.packets += 1;
        self.bytes += length as u64;
        let flags = self.flags;
        let cost = if flags & FLAG_PACKETS != 0 { SECOND } else { length as u128 * 8 * SECOND };
        let mut exceeded: Option<&mut Band> = None;
        for band in &mut self.bands {
            let elapsed = u128::from(now.saturating_sub(band.filled));
            band.filled = band.filled.max(now);
            let rate = u128::from(band.rate) * unit(flags);
            band.tokens = capacity(flags, band).min(band.tokens + rate * elapsed);
            if band.tokens >= cost {
                band.tokens -= cost;
            } else if exceeded.as_ref().is_none_or(|other| band.rate > other.rate) {
                exceeded = Some(band);
            }
        }
        match exceeded {
            None => Verdict::Pass,
            Some(band) => {
                band.packets += 1;
                band.bytes += length as u64;
                Verdict::Exceeded(band.kind)
            }
        }
    }
}

/// Bits (or packets) per unit of the band's rate.
fn unit(flags: u16) -> u128 {
    if flags & FLAG_PACKETS != 0 { 1 } else { 1000 }
}

fn capacity(flags: u16, band: &Band) -> u128 {
    let burst = if flags & FLAG_BURST != 0 && band.burst != 0 { band.burst } else { band.rate };
    u128::from(burst) * unit(flags) * SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_packet_meter_passes_packets_up_to_rate_plus_burst() {
        let band = Band::new(BandKind::Drop, 100, 10);
        let mut meter = Meter::new(0, FLAG_PACKETS | FLAG_BURST, vec![band]);
        let passed = (0..1000).filter(|i| meter.apply(i * MS, 64) == Verdict::Pass).count();
        // In one second at 1,000 packets/s the meter passes the burst of 10, and 100 more minus the
        // last tick.
        assert_eq!(passed, 109);
        assert_eq!(meter.bands[0].packets, 1000 - 109);
        assert_eq!((meter.packets, meter.bytes), (1000, 64_000));
    }

    #[test]
    fn a_kilobit_meter_counts_bits() {
        let band = Band::new(BandKind::Drop, 8, 8);
        let mut meter = Meter::new(0, FLAG_BURST, vec![band]);
        assert_eq!(meter.apply(0, 1000), Verdict::Pass, "8,000 bits are the whole burst");
        assert_eq!(meter.apply(0, 1), Verdict::Exceeded(BandKind::Drop));
        assert_eq!(meter.apply(MS, 1), Verdict::Pass, "8 bits come back in a millisecond");
    }

    #[test]
    fn the_meter_band_with_the_highest_exceeded_rate_is_applied() {
        let low = Band::new(BandKind::DscpRemark(1), 1, 1);
        let high = Band::new(BandKind::Drop, 2, 2);
        let mut meter = Meter::new(0, FLAG_PACKETS | FLAG_BURST, vec![low, high]);
        let verdicts: Vec<_> = (0..3).map(|_| meter.apply(0, 64)).collect();
        let remark = Verdict::Exceeded(BandKind::DscpRemark(1));
        assert_eq!(verdicts, [Verdict::Pass, remark, Verdict::Exceeded(BandKind::Drop)]);
    }
}
