//! Meters: METER_MOD, and their statistics, configuration and features (specification 1.3.5, sections 7.3.4.5 and
//! 7.3.5.9 to 7.3.5.11).

use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad, set_length};
use alloc::vec::Vec;

/// The highest meter number.
pub const METER_MAX: u32 = 0xffff_0000;
/// The meter of the slow path.
pub const METER_SLOWPATH: u32 = 0xffff_fffd;
/// The meter of the controller connection.
pub const METER_CONTROLLER: u32 = 0xffff_fffe;
/// All meters, in deletions and statistics requests.
pub const METER_ALL: u32 = 0xffff_ffff;

open_enum! {
    /// What to do to the meter table.
    pub struct MeterModCommand(u16) {
        /// Add a meter.
        ADD = 0,
        /// Replace a meter.
        MODIFY = 1,
        /// Delete a meter, and the flow entries that use it.
        DELETE = 2,
    }
}

flags! {
    /// `enum ofp_meter_flags`.
    pub struct MeterFlags(u16) {
        /// Rates in kb/s.
        KBPS = 1 << 0,
        /// Rates in packets/s.
        PKTPS = 1 << 1,
        /// The burst size counts.
        BURST = 1 << 2,
        /// Collect statistics.
        STATS = 1 << 3,
    }
}

/// `struct ofp_meter_mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeterMod<'a> {
    /// What to do.
    pub command: MeterModCommand,
    /// In which units.
    pub flags: MeterFlags,
    /// The meter.
    pub meter_id: u32,
    /// Its bands.
    pub bands: List<'a, MeterBand<'a>>,
}

layout!(MeterMod<'a>: Body { command, flags, meter_id, bands });

/// What happens above a rate, `struct ofp_meter_band_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterBand<'a> {
    /// Drop the packet.
    Drop {
        /// The rate, in the meter's unit.
        rate: u32,
        /// The burst size, in kilobits or packets.
        burst_size: u32,
    },
    /// Lower the drop precedence in the DSCP field.
    DscpRemark {
        /// The rate, in the meter's unit.
        rate: u32,
        /// The burst size, in kilobits or packets.
        burst_size: u32,
        /// By how many levels.
        prec_level: u8,
    },
    /// An experimenter's own band.
    Experimenter {
        /// The rate, in the meter's unit.
        rate: u32,
        /// The burst size, in kilobits or packets.
        burst_size: u32,
        /// The experimenter.
        experimenter: u32,
        /// What follows.
        body: &'a [u8],
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        type_: u16,
        /// The rate, in the meter's unit.
        rate: u32,
        /// The burst size, in kilobits or packets.
        burst_size: u32,
        /// What follows.
        body: &'a [u8],
    },
}

impl MeterBand<'_> {
    const DROP: u16 = 1;
    const DSCP_REMARK: u16 = 2;
    const EXPERIMENTER: u16 = 0xffff;

    /// The band's number in `enum ofp_meter_band_type`.
    pub const fn type_(&self) -> u16 {
        match self {
            Self::Drop { .. } => Self::DROP,
            Self::DscpRemark { .. } => Self::DSCP_REMARK,
            Self::Experimenter { .. } => Self::EXPERIMENTER,
            Self::Unknown { type_, .. } => *type_,
        }
    }

    /// The rate above which the band applies, in the meter's unit.
    pub const fn rate(&self) -> u32 {
        match self {
            Self::Drop { rate, .. }
            | Self::DscpRemark { rate, .. }
            | Self::Experimenter { rate, .. }
            | Self::Unknown { rate, .. } => *rate,
        }
    }

    /// The burst size, in kilobits or packets.
    pub const fn burst_size(&self) -> u32 {
        match self {
            Self::Drop { burst_size, .. }
            | Self::DscpRemark { burst_size, .. }
            | Self::Experimenter { burst_size, .. }
            | Self::Unknown { burst_size, .. } => *burst_size,
        }
    }
}

impl<'a> Decode<'a> for MeterBand<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::MeterBand, 2, 12, 4)?;
        let type_ = u16::read(&mut r)?;
        r.skip(2)?;
        let rate = Decode::read(&mut r)?;
        let burst_size = Decode::read(&mut r)?;
        let band = match type_ {
            Self::DROP => {
                r.skip(4)?;
                Self::Drop { rate, burst_size }
            }
            Self::DSCP_REMARK => {
                let prec_level = Decode::read(&mut r)?;
                r.skip(3)?;
                Self::DscpRemark { rate, burst_size, prec_level }
            }
            Self::EXPERIMENTER => Self::Experimenter {
                rate,
                burst_size,
                experimenter: Decode::read(&mut r)?,
                body: r.take_rest(),
            },
            type_ => Self::Unknown { type_, rate, burst_size, body: r.take_rest() },
        };
        r.finish()?;
        Ok(band)
    }
}

impl Encode for MeterBand<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_().write(out);
        0u16.write(out);
        self.rate().write(out);
        self.burst_size().write(out);
        match self {
            Self::Drop { .. } => pad(out, 4),
            Self::DscpRemark { prec_level, .. } => {
                prec_level.write(out);
                pad(out, 3);
            }
            Self::Experimenter { experimenter, body, .. } => {
                experimenter.write(out);
                body.write(out);
            }
            Self::Unknown { body, .. } => body.write(out),
        }
        // Bands are aligned to four bytes: the specification's have 16.
        pad(out, (out.len() - start).wrapping_neg() % 4);
        set_length(out, start, 2);
    }
}

standalone!(MeterBand<'a>: MeterBand);

/// `struct ofp_meter_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MeterStats<'a> {
    /// The meter.
    pub meter_id: u32,
    /// How many flow entries use it.
    pub flow_count: u32,
    /// Packets that it saw.
    pub packet_in_count: u64,
    /// Bytes in them.
    pub byte_in_count: u64,
    /// How long it has been there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
    /// What each band saw.
    pub band_stats: List<'a, MeterBandCounter>,
}

impl<'a> Decode<'a> for MeterStats<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Statistics, 4, 40, 8)?;
        let meter_id = Decode::read(&mut r)?;
        r.skip(8)?;
        Ok(Self {
            meter_id,
            flow_count: Decode::read(&mut r)?,
            packet_in_count: Decode::read(&mut r)?,
            byte_in_count: Decode::read(&mut r)?,
            duration_sec: Decode::read(&mut r)?,
            duration_nsec: Decode::read(&mut r)?,
            band_stats: Decode::read(&mut r)?,
        })
    }
}

impl Encode for MeterStats<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.meter_id.write(out);
        pad(out, 8);
        self.flow_count.write(out);
        self.packet_in_count.write(out);
        self.byte_in_count.write(out);
        self.duration_sec.write(out);
        self.duration_nsec.write(out);
        self.band_stats.write(out);
        set_length(out, start, 4);
    }
}

standalone!(MeterStats<'a>: Statistics);

/// `struct ofp_meter_band_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MeterBandCounter {
    /// Packets in the band.
    pub packet_band_count: u64,
    /// Bytes in them.
    pub byte_band_count: u64,
}

layout!(MeterBandCounter: Statistics { packet_band_count, byte_band_count });

/// `struct ofp_meter_config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeterConfig<'a> {
    /// In which units.
    pub flags: MeterFlags,
    /// The meter.
    pub meter_id: u32,
    /// Its bands.
    pub bands: List<'a, MeterBand<'a>>,
}

impl<'a> Decode<'a> for MeterConfig<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Statistics, 0, 8, 4)?;
        r.skip(2)?;
        Ok(Self {
            flags: Decode::read(&mut r)?,
            meter_id: Decode::read(&mut r)?,
            bands: Decode::read(&mut r)?,
        })
    }
}

impl Encode for MeterConfig<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 2);
        self.flags.write(out);
        self.meter_id.write(out);
        self.bands.write(out);
        set_length(out, start, 0);
    }
}

standalone!(MeterConfig<'a>: Statistics);

/// `struct ofp_meter_features`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MeterFeatures {
    /// How many meters there can be.
    pub max_meter: u32,
    /// The band types that are supported: bit *n* is type *n*.
    pub band_types: u32,
    /// The meter flags that are supported.
    pub capabilities: u32,
    /// How many bands a meter can have.
    pub max_bands: u8,
    /// How many colours there are.
    pub max_color: u8,
}

layout!(MeterFeatures: Statistics { max_meter, band_types, capabilities, max_bands, max_color, [2] });
