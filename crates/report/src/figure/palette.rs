//! Assigns one colour to each system and one line style to each variant, for a whole report.
//!
//! The colour of a system does not depend on the figure. Well-known systems have the same colours in every report.
//! Other systems get colours in the order in which the report names them. All colours have a contrast of 3:1 to white
//! and to the background of the dark page (a test checks this).

/// A colour. Paper, ink and grid also have a class, by which a dark page changes their colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour {
    rgb: u32,
    class: &'static str,
}

pub(super) const PAPER: Colour = Colour { rgb: 0x00ff_ffff, class: "p" };
pub(super) const INK: Colour = Colour { rgb: 0x001a_1d21, class: "i" };
pub(super) const GRID: Colour = Colour { rgb: 0x00d9_dde2, class: "g" };
pub(super) const NOTE: Colour = Colour { rgb: 0x009a_4b00, class: "n" };

impl Colour {
    pub(super) const fn rgb(rgb: u32) -> Self {
        Self { rgb, class: "" }
    }

    pub(super) fn hex(self) -> String {
        format!("#{:06x}", self.rgb)
    }

    pub(super) fn class(self) -> String {
        if self.class.is_empty() { String::new() } else { format!(" class=\"{}\"", self.class) }
    }

    #[cfg(any(test, feature = "png"))]
    pub(super) fn channels(self) -> [u8; 3] {
        let [_, red, green, blue] = self.rgb.to_be_bytes();
        [red, green, blue]
    }
}

/// The lengths of dashes and gaps, in user units. An empty list means a solid line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Dash(Vec<u16>);

impl Dash {
    pub(super) fn is_solid(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn text(&self) -> String {
        self.0.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
    }

    #[cfg(feature = "png")]
    pub(super) fn lengths(&self) -> Vec<f32> {
        self.0.iter().map(|&length| f32::from(length)).collect()
    }

    fn of(index: usize) -> Self {
        let known: &[&[u16]] = &[
            &[],
            &[7, 4],
            &[2, 3],
            &[10, 3, 2, 3],
            &[14, 4],
            &[4, 2],
            &[10, 3, 2, 3, 2, 3],
            &[1, 5],
        ];
        match known.get(index) {
            Some(pattern) => Self(pattern.to_vec()),
            None => Self(vec![u16::try_from(index).unwrap_or(u16::MAX), 3]),
        }
    }
}

/// The systems with the same colour in every report: the switch alone, and Weir in its two modes.
const KNOWN: [(&str, u32); 4] = [
    ("switch-only", 0x7f_868e),
    ("direct", 0x7f_868e),
    ("weir", 0x2f_7fd6),
    ("weir-networks", 0x8a_5cd0),
];
/// The colours of other systems, in this order.
const COLOURS: [u32; 9] = [
    0xd9_541e, 0x17_9468, 0xb8_7a00, 0xcc_4b9b, 0x17_8ea3, 0x7a_8a1d, 0xa0_664a, 0xc2_4450,
    0x4d_7f9e,
];

/// The colour of each system, and the line style of each variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Palette {
    systems: Vec<String>,
    variants: Vec<String>,
}

impl Palette {
    /// Makes the palette of (system, variant) pairs, in the order in which a report names them.
    /// Published variants come last, so that a solid line means measured values.
    #[must_use]
    pub fn of<'a>(series: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut palette = Self::default();
        let mut published = Vec::new();
        // The systems, each with whether the system occurs without a variant and with a variant.
        let mut both: Vec<(&str, bool, bool)> = Vec::new();
        for (system, variant) in series {
            let is_known = KNOWN.iter().any(|(name, _)| *name == system);
            if !is_known && !palette.systems.iter().any(|known| known == system) {
                palette.systems.push(system.to_owned());
            }
            let variants = if is_given(variant) { &mut published } else { &mut palette.variants };
            let (plain, named) = (variant.is_empty(), !variant.is_empty() && !is_given(variant));
            match both.iter_mut().find(|(known, ..)| *known == system) {
                Some(known) => (known.1, known.2) = (known.1 | plain, known.2 | named),
                None => both.push((system, plain, named)),
            }
            if !plain && !variants.iter().any(|known| known == variant) {
                variants.push(variant.to_owned());
            }
        }
        // A system without variants is drawn as the first variant of other systems, with a solid
        // line.
        if both.iter().any(|(_, plain, named)| *plain && *named) || palette.variants.is_empty() {
            palette.variants.insert(0, String::new());
        }
        palette.variants.extend(published);
        palette
    }

    pub(super) fn colour(&self, system: &str) -> Colour {
        if let Some((_, rgb)) = KNOWN.iter().find(|(name, _)| *name == system) {
            return Colour::rgb(*rgb);
        }
        let index = self.systems.iter().position(|known| known == system).unwrap_or(0);
        match COLOURS.get(index) {
            Some(rgb) => Colour::rgb(*rgb),
            None => Colour::rgb(further(index - COLOURS.len())),
        }
    }

    pub(super) fn dash(&self, variant: &str) -> Dash {
        Dash::of(self.variants.iter().position(|known| known == variant).unwrap_or(0))
    }
}

/// Whether a variant has values that were not measured here.
fn is_given(variant: &str) -> bool {
    variant.contains("published") || variant.ends_with(DASHED)
}

/// The end of the variant of a dashed line.
pub(super) const DASHED: &str = "dashed";

/// Computes colours after the end of the list. Hues are in steps of the golden angle with changing
/// lightness, so no colour repeats.
fn further(index: usize) -> u32 {
    let hue = (index as f64 * 137.508 + 20.0).rem_euclid(360.0);
    let value = 0.62 - 0.02 * (index % 7) as f64;
    let channel = |offset: f64| {
        let k = (offset + hue / 30.0).rem_euclid(12.0);
        let share = 0.45 - 0.38 * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0) * value;
        (share.clamp(0.0, 1.0) * 255.0) as u32
    };
    (channel(0.0) << 16) | (channel(8.0) << 8) | channel(4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: Colour) -> f64 {
        let linear = |channel: u8| {
            let share = f64::from(channel) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = colour.channels().map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn colours_have_enough_contrast_on_light_and_dark_backgrounds() {
        let contrast = |a: Colour, b: Colour| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        let all = KNOWN.iter().map(|(_, rgb)| *rgb).chain(COLOURS);
        for colour in all.map(Colour::rgb) {
            for paper in [PAPER, Colour::rgb(0x0015_181c)] {
                let found = contrast(colour, paper);
                assert!(found >= 3.0, "{} on {}: {found:.2}", colour.hex(), paper.hex());
            }
        }
    }

    #[test]
    fn sixty_systems_have_different_colours_and_line_styles() {
        let names: Vec<String> = (0..60).map(|index| format!("system {index}")).collect();
        let palette = Palette::of(names.iter().map(|name| (name.as_str(), name.as_str())));
        let mut colours: Vec<String> =
            names.iter().map(|name| palette.colour(name).hex()).collect();
        colours.sort();
        colours.dedup();
        assert_eq!(colours.len(), 60);
        let mut styles: Vec<String> = names.iter().map(|name| palette.dash(name).text()).collect();
        styles.sort();
        styles.dedup();
        assert_eq!(styles.len(), 60);
    }

    #[test]
    fn the_first_measured_variant_is_solid_and_known_systems_keep_colours() {
        let series = [("OVX", "published"), ("weir", "AGG"), ("weir", "ND")];
        let palette = Palette::of(series);
        assert!(palette.dash("AGG").is_solid() && !palette.dash("ND").is_solid());
        assert!(!palette.dash("published").is_solid());
        let with_plain = |system| Palette::of(series.into_iter().chain([(system, "")]));
        assert!(with_plain("direct").dash("AGG").is_solid(), "another system's");
        assert!(!with_plain("weir").dash("AGG").is_solid(), "its own beside it");
        assert_eq!(palette.colour("weir"), Palette::default().colour("weir"));
        assert_eq!(palette.colour("direct"), palette.colour("switch-only"));
        assert_ne!(palette.colour("weir"), palette.colour("OVX"));
    }
}
