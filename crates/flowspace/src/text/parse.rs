//! Reading a match.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use super::suggest;
use super::vocabulary::{FOREIGN, Form, KEYWORDS, NAMES, Name, PORTS, vlan_bits_from_tci};
use crate::field::{VLAN_BITS, VLAN_PRESENT, VLAN_WORD};
use crate::{Field, Match, port_from_v10};

/// The reason why a text is not a match: the word, its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The column where the word begins, in characters from 1.
    pub column: usize,
    /// The wrong word.
    pub word: String,
    /// The problem of the word.
    pub problem: Problem,
}

/// The problem of a word; see [`ParseError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No field or keyword has that name.
    Unknown {
        /// A similar name.
        suggestion: Option<&'static str>,
    },
    /// `ovs-ofctl` knows the word, but it cannot be matched here.
    Foreign {
        /// The reason.
        reason: &'static str,
    },
    /// A field without `=value`.
    MissingValue,
    /// A keyword with `=value`.
    UnexpectedValue,
    /// The value cannot be read.
    Malformed {
        /// What is expected instead.
        expected: &'static str,
        /// A similar word.
        suggestion: Option<&'static str>,
    },
    /// The value has more bits than the field.
    TooLarge {
        /// Bits of the field.
        width: u32,
    },
    /// The field has a mask, but can only be matched exactly.
    NotMaskable,
    /// The field is given twice, or with another field that has the same meaning.
    Repeated,
    /// A keyword or type contradicts an earlier one.
    Contradiction {
        /// The contradicted word.
        with: &'static str,
    },
    /// The field exists only in certain packets, and the match is not limited to these packets.
    MissingPrerequisite {
        /// The words that limit the match to these packets.
        needs: &'static str,
    },
}

impl ParseError {
    /// The names of all fields, if the word is no field.
    pub fn known_fields(&self) -> Option<Vec<&'static str>> {
        let is_unknown = matches!(self.problem, Problem::Unknown { .. });
        is_unknown.then(|| NAMES.iter().map(|name| name.name).collect())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = &self.word;
        write!(f, "column {}: ", self.column)?;
        match &self.problem {
            Problem::Unknown { suggestion } => {
                write!(f, "unknown field `{word}`")?;
                write_suggestion(f, *suggestion)
            }
            Problem::Foreign { reason } => write!(f, "`{word}` cannot be used here: {reason}"),
            Problem::MissingValue => write!(f, "`{word}` needs a value: `{word}=…`"),
            Problem::UnexpectedValue => write!(f, "`{word}` takes no value"),
            Problem::Malformed { expected, suggestion } => {
                write!(f, "`{word}` is not {expected}")?;
                write_suggestion(f, *suggestion)
            }
            Problem::TooLarge { width } => {
                write!(f, "`{word}` is too large for a field of {width} bits")
            }
            Problem::NotMaskable => write!(f, "`{word}` can only be matched whole, without a mask"),
            Problem::Repeated => write!(f, "`{word}` is given twice"),
            Problem::Contradiction { with } => write!(f, "`{word}` contradicts {with}"),
            Problem::MissingPrerequisite { needs } => write!(f, "`{word}` needs {needs}"),
        }
    }
}

fn write_suggestion(f: &mut fmt::Formatter<'_>, suggestion: Option<&str>) -> fmt::Result {
    match suggestion {
        Some(suggestion) => write!(f, "; did you mean `{suggestion}`?"),
        None => Ok(()),
    }
}

impl core::error::Error for ParseError {}

impl FromStr for Match {
    type Err = ParseError;

    /// Reads `ovs-ofctl` syntax: fields and keywords separated by commas or blanks, in any order; the
    /// empty text is [`Match::ANY`], and `field=*` leaves a field wild.
    ///
    /// The parser is stricter than `ovs-ofctl` where `ovs-ofctl` would silently match other
    /// packets. Errors are: a field without its prerequisite, a field given twice, bits that do not
    /// fit, and numbers with a leading zero (octal in `ovs-ofctl`).
    fn from_str(text: &str) -> Result<Match, ParseError> {
        let mut settings = Vec::new();
        for word in words(text) {
            read(word, &mut settings)?;
        }
        // Prerequisites come first, independent of the order in the text.
        settings.sort_by_key(|setting| setting.name.field);
        let mut match_ = Match::ANY;
        for setting in &settings {
            setting.apply(&mut match_)?;
        }
        Ok(match_)
    }
}

/// A piece of the text and where it begins.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    column: usize,
}

impl<'a> Word<'a> {
    fn error(&self, problem: Problem) -> ParseError {
        ParseError { column: self.column, word: self.text.to_string(), problem }
    }

    fn malformed(&self, expected: &'static str) -> ParseError {
        self.error(Problem::Malformed { expected, suggestion: None })
    }

    fn split(&self, separator: char) -> (Word<'a>, Option<Word<'a>>) {
        match self.text.split_once(separator) {
            None => (*self, None),
            Some((left, right)) => {
                let column = self.column + left.chars().count() + 1;
                (Word { text: left, column: self.column }, Some(Word { text: right, column }))
            }
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let is_separator = |c: char| c == ',' || c.is_ascii_whitespace();
    let mut column = 1;
    text.split(is_separator).filter_map(move |word| {
        let start = column;
        column += word.chars().count() + 1;
        (!word.is_empty()).then_some(Word { text: word, column: start })
    })
}

/// One field and its value in the text.
struct Setting<'a> {
    word: Word<'a>,
    name: &'static Name,
    value: u128,
    mask: u128,
}

fn read<'a>(word: Word<'a>, settings: &mut Vec<Setting<'a>>) -> Result<(), ParseError> {
    let (key, value) = word.split('=');
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| keyword.word == key.text) {
        if value.is_some() {
            return Err(key.error(Problem::UnexpectedValue));
        }
        if let Some(ethertype) = keyword.ethertype {
            add(settings, key, find_name("dl_type"), u128::from(ethertype), 0xffff)?;
        }
        if let Some(protocol) = keyword.protocol {
            add(settings, key, find_name("nw_proto"), u128::from(protocol), 0xff)?;
        }
        return Ok(());
    }
    let Some(name) = find_name(key.text) else {
        return Err(key.error(unknown(key.text)));
    };
    match value {
        None => Err(key.error(Problem::MissingValue)),
        Some(Word { text: "*", .. }) => Ok(()),
        Some(value) => {
            let (value, mask) = read_value(name, value)?;
            add(settings, key, Some(name), value, mask)
        }
    }
}

fn find_name(text: &str) -> Option<&'static Name> {
    NAMES.iter().find(|name| name.name == text)
}

fn unknown(text: &str) -> Problem {
    if let Some(&(_, reason)) = FOREIGN.iter().find(|(word, _)| *word == text) {
        return Problem::Foreign { reason };
    }
    let names = NAMES.iter().map(|name| name.name);
    let keywords = KEYWORDS.iter().map(|keyword| keyword.word);
    Problem::Unknown { suggestion: suggest::nearest(text, names.chain(keywords)) }
}

fn add<'a>(
    settings: &mut Vec<Setting<'a>>,
    word: Word<'a>,
    name: Option<&'static Name>,
    value: u128,
    mask: u128,
) -> Result<(), ParseError> {
    let Some(name) = name else { return Err(word.error(unknown(word.text))) };
    let setting = Setting { word, name, value: value & mask, mask };
    let earlier = settings.iter().find(|earlier| {
        earlier.name.field == name.field
            // `nw_proto` of an ARP packet is its operation.
            || matches!(
                (earlier.name.field, name.field),
                (Field::NwProto, Field::ArpOp) | (Field::ArpOp, Field::NwProto)
            )
            || name.form == Form::VlanTag && earlier.name.field == Field::VlanPcp
            || earlier.name.form == Form::VlanTag && name.field == Field::VlanPcp
    });
    if let Some(earlier) = earlier {
        let type_field = matches!(name.field, Field::DlType | Field::NwProto);
        let same = (earlier.value, earlier.mask) == (setting.value, setting.mask);
        // `ip,tcp` says one thing twice, which does no harm.
        if type_field && same {
            return Ok(());
        }
        return Err(word.error(match name.field {
            Field::DlType => Problem::Contradiction { with: "the Ethernet type given before" },
            Field::NwProto => Problem::Contradiction { with: "the protocol given before" },
            _ => Problem::Repeated,
        }));
    }
    settings.push(setting);
    Ok(())
}

impl Setting<'_> {
    fn apply(&self, match_: &mut Match) -> Result<(), ParseError> {
        let name = self.name;
        if matches!(name.field, Field::VlanVid | Field::VlanPcp) {
            return self.apply_vlan(match_);
        }
        let field = match name.field {
            Field::NwProto if match_.is_arp() => Field::ArpOp,
            field => field,
        };
        if !name.needs.met_by(match_) || !match_.permits(field) {
            let needs = name.needs.advice();
            return Err(self.word.error(Problem::MissingPrerequisite { needs }));
        }
        let mask = if field == Field::ArpOp { field.full_mask() } else { self.mask };
        match_.assign(field, self.value, mask);
        Ok(())
    }

    fn apply_vlan(&self, match_: &mut Match) -> Result<(), ParseError> {
        let with = "the absence of a VLAN tag";
        match (self.name.form, self.name.field) {
            (Form::VlanTag, _) => {
                let (value, mask) = (self.value as u16, self.mask as u16);
                match_.value.words[VLAN_WORD] &= !VLAN_BITS;
                match_.value.words[VLAN_WORD] |= vlan_bits_from_tci(value);
                match_.mask.words[VLAN_WORD] &= !VLAN_BITS;
                match_.mask.words[VLAN_WORD] |= vlan_bits_from_tci(mask);
            }
            (_, Field::VlanPcp) if match_.is_untagged() => {
                return Err(self.word.error(Problem::Contradiction { with }));
            }
            (_, Field::VlanPcp) => *match_ = match_.with(Field::VlanPcp, self.value),
            _ => match_.assign(Field::VlanVid, self.value, self.mask),
        }
        if match_.settle_vlan() {
            return Ok(());
        }
        Err(self.word.error(Problem::Contradiction { with }))
    }
}

fn read_value(name: &Name, word: Word<'_>) -> Result<(u128, u128), ParseError> {
    let (value, mask) = word.split('/');
    let full = name.field.full_mask();
    let maskable = matches!(
        name.form,
        Form::MaskedNumber | Form::Ethernet | Form::Ipv4 | Form::Ipv6 | Form::VlanTag
    );
    if mask.is_some() && !maskable {
        return Err(word.error(Problem::NotMaskable));
    }
    match name.form {
        Form::Number | Form::MaskedNumber | Form::VlanTag => {
            let width = match name {
                Name { form: Form::VlanTag, .. } => 16,
                // ICMP types and codes are bytes in the place of a port.
                Name { form: Form::Number, field: Field::TpSrc | Field::TpDst, .. } => 8,
                Name { field: Field::NwProto, .. } => 8,
                _ => name.field.width(),
            };
            let all = if name.form == Form::VlanTag { 0xffff } else { full };
            let mask = mask.map_or(Ok(all), |mask| number(mask, width))?;
            Ok((number(value, width)?, mask))
        }
        Form::Port => Ok((u128::from(port(value)?), full)),
        Form::Ethernet => Ok((ethernet(value)?, mask.map_or(Ok(full), ethernet)?)),
        Form::Ipv4 => {
            let mask = mask.map_or(Ok(full), |mask| prefix_or(mask, 32, ipv4))?;
            Ok((ipv4(value)?, mask))
        }
        Form::Ipv6 => {
            let mask = mask.map_or(Ok(full), |mask| prefix_or(mask, 128, ipv6))?;
            Ok((ipv6(value)?, mask))
        }
        Form::Vlan => match number(value, 16)? {
            0xffff => Ok((0, full)),
            vid @ 0..=0xfff => Ok((vid | VLAN_PRESENT, full)),
            _ => Err(value.error(Problem::TooLarge { width: 12 })),
        },
        Form::TypeOfService => match number(value, 8)? {
            tos if tos & 3 == 0 => Ok((tos >> 2, full)),
            _ => Err(value.malformed("a multiple of 4 (the lower two bits are nw_ecn)")),
        },
    }
}

fn number(word: Word<'_>, width: u32) -> Result<u128, ParseError> {
    let expected = "a decimal or 0x… number";
    let (digits, radix) = match word.text.strip_prefix("0x").or(word.text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (word.text, 10),
    };
    // `from_str_radix` would take a sign.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(word.malformed(expected));
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(word.malformed("a number without leading zeros (ovs-ofctl reads it as octal)"));
    }
    match u128::from_str_radix(digits, radix) {
        Ok(value) if width >= 128 || value >> width == 0 => Ok(value),
        _ => Err(word.error(Problem::TooLarge { width })),
    }
}

/// Port numbers up to 0xffff are 1.0's, as in `ovs-ofctl`: 65534 is `LOCAL`.
fn port(word: Word<'_>) -> Result<u32, ParseError> {
    if let Some(&(_, port)) = PORTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.text)) {
        return Ok(port);
    }
    if word.text.starts_with(|c: char| c.is_ascii_digit()) {
        let port = number(word, 32)? as u32;
        return Ok(u16::try_from(port).map_or(port, port_from_v10));
    }
    let suggestion = suggest::nearest(word.text, PORTS.iter().map(|(name, _)| *name));
    Err(word.error(Problem::Malformed { expected: "a port number or name", suggestion }))
}

fn ethernet(word: Word<'_>) -> Result<u128, ParseError> {
    let error = || word.malformed("an Ethernet address such as 00:11:22:33:44:55");
    let mut address = 0;
    let mut count = 0;
    for part in word.text.split(':') {
        if part.is_empty() || part.len() > 2 || !part.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(error());
        }
        address = address << 8 | u128::from_str_radix(part, 16).map_err(|_| error())?;
        count += 1;
        if count > 6 {
            break;
        }
    }
    if count == 6 { Ok(address) } else { Err(error()) }
}

fn ipv4(word: Word<'_>) -> Result<u128, ParseError> {
    let address = word.text.parse::<Ipv4Addr>();
    address
        .map(|address| u128::from(address.to_bits()))
        .map_err(|_| word.malformed("an IPv4 address such as 10.0.0.1"))
}

fn ipv6(word: Word<'_>) -> Result<u128, ParseError> {
    let address = word.text.parse::<Ipv6Addr>();
    address.map(Ipv6Addr::to_bits).map_err(|_| word.malformed("an IPv6 address such as fe80::1"))
}

/// A mask as a prefix length, or in the form of an address.
fn prefix_or(
    word: Word<'_>,
    width: u32,
    address: impl Fn(Word<'_>) -> Result<u128, ParseError>,
) -> Result<u128, ParseError> {
    if !word.text.chars().all(|c| c.is_ascii_digit()) {
        return address(word);
    }
    match word.text.parse::<u32>() {
        Ok(length) if length <= width => {
            let ones = if length == 0 { 0 } else { u128::MAX << (128 - length) };
            Ok(ones >> (128 - width))
        }
        _ if width == 32 => Err(word.malformed("a prefix length from 0 to 32")),
        _ => Err(word.malformed("a prefix length from 0 to 128")),
    }
}
