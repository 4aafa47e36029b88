//! The paper's Table 1 of measurements, and the figures from its rows.

use bench::Kind;
use std::fmt;
use std::str::FromStr;

/// A row of Table 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The kind of message.
    pub message: Kind,
    /// The numbers of tenants; the table states `2 : 20` without the steps.
    pub tenants: &'static [usize],
    /// The numbers of tenants for a quick run.
    pub quick_tenants: &'static [usize],
    /// The messages per second of all tenants together.
    pub rates: &'static [f64],
    /// The values of TCP_NODELAY at the tenants' controllers: false is AGG, true is ND.
    pub nodelay: &'static [bool],
    /// The figures from the row.
    pub figures: &'static [Figure],
}

/// Table 1.
pub const TABLE_1: [Row; 4] = [
    Row {
        message: Kind::PacketIn,
        tenants: &[1],
        quick_tenants: &[1],
        rates: &[10_000.0, 20_000.0, 30_000.0, 40_000.0],
        nodelay: &[false],
        figures: &[Figure::OneRate, Figure::Rates],
    },
    Row {
        message: Kind::PortStats,
        tenants: &[1],
        quick_tenants: &[1],
        rates: &[5_000.0, 6_000.0, 7_000.0, 8_000.0],
        nodelay: &[false],
        figures: &[Figure::PortStats],
    },
    Row {
        message: Kind::PacketIn,
        tenants: &[2, 5, 10, 15, 20],
        quick_tenants: &[2, 20],
        rates: &[40_000.0],
        nodelay: &[false, true],
        figures: &[Figure::TenantsPacketIn],
    },
    Row {
        message: Kind::PacketOut,
        tenants: &[2, 5, 10, 15, 20],
        quick_tenants: &[2, 10, 20],
        rates: &[60_000.0],
        nodelay: &[false, true],
        figures: &[Figure::Tenants, Figure::Cpu, Figure::Fairness],
    },
];

/// A figure of the paper, or the table's row without a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Figure 3a: PACKET_IN at 40,000/s.
    OneRate,
    /// Figure 3b: PACKET_IN from 10,000 to 40,000/s.
    Rates,
    /// Figure 3c: PORT_STATS from 5,000 to 8,000/s.
    PortStats,
    /// Figure 4: PACKET_OUT at 60,000/s over 2 to 20 tenants.
    Tenants,
    /// Figure 5: the CPU time of the hypervisor in the runs of figure 4.
    Cpu,
    /// Figure 6: the latency of each tenant in the runs of figure 4 with 20 tenants.
    Fairness,
    /// Table 1's third row, PACKET_IN at 40,000/s over 2 to 20 tenants; the paper has no figure of this row.
    TenantsPacketIn,
}

impl Figure {
    /// All figures, in the paper's order.
    pub const ALL: [Self; 7] = [
        Self::OneRate,
        Self::Rates,
        Self::PortStats,
        Self::Tenants,
        Self::Cpu,
        Self::Fairness,
        Self::TenantsPacketIn,
    ];

    /// The name in the paper; the row without a figure is `table1`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneRate => "3a",
            Self::Rates => "3b",
            Self::PortStats => "3c",
            Self::Tenants => "4",
            Self::Cpu => "5",
            Self::Fairness => "6",
            Self::TenantsPacketIn => "table1",
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|figure| figure.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text} is no figure of this paper: must be one of {names}")
        })
    }
}
