//! Reads topology files.
//!
//! ```toml
//! [[switches]]
//! name = "s1"                          # dpid: the number in the name, unless given
//! dpid = "00:00:00:00:00:00:00:01"
//!
//! [[hosts]]
//! name = "h1"                          # addresses: by order, unless given
//! mac = "00:00:00:00:00:01"
//! ip = "10.0.0.1/8"
//!
//! [[links]]
//! ends = ["h1", "s1"]                  # ports: in the order of the links
//! rate = "10Mbit"
//! ```
//!
//! This module reads the document itself, without serde, so that every error message has its line.

use std::net::Ipv4Addr;
use std::ops::Range;

use fabric::Dpid;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::build::TopologyBuilder;
use super::model::Topology;
use super::units::{MacAddress, Rate};
use crate::error::{Error, Result};
use crate::names;

pub(super) fn parse(text: &str) -> Result<Topology> {
    let source = Source { text };
    let document = DeTable::parse(text).map_err(|error| Error::Topology {
        line: error.span().map(|span| source.line(&span)),
        message: error.message().to_owned(),
    })?;
    let root = document.get_ref();
    source.check_keys(root, &["switches", "hosts", "links"])?;
    let mut builder = TopologyBuilder::default();
    source.each(root, "switches", |table| source.switch(&mut builder, table))?;
    source.each(root, "hosts", |table| source.host(&mut builder, table))?;
    source.each(root, "links", |table| source.link(&mut builder, table))?;
    builder.build()
}

struct Source<'a> {
    text: &'a str,
}

type Table<'a> = Spanned<&'a DeTable<'a>>;

impl Source<'_> {
    fn switch(&self, builder: &mut TopologyBuilder, table: &Table<'_>) -> Result<()> {
        self.check_keys(table.get_ref(), &["name", "dpid"])?;
        let name = self.required(table, "name")?;
        let added = match self.string(table.get_ref(), "dpid")? {
            Some((dpid, span)) => {
                builder.switch_with_dpid(name, parse_dpid(dpid).map_err(self.at(&span))?)
            }
            None => builder.switch(name),
        };
        added.map(drop).map_err(self.at(&table.span()))
    }

    fn host(&self, builder: &mut TopologyBuilder, table: &Table<'_>) -> Result<()> {
        self.check_keys(table.get_ref(), &["name", "mac", "ip"])?;
        let name = self.required(table, "name")?;
        let (mut mac, mut ip, mut prefix) =
            builder.next_addresses().map_err(self.at(&table.span()))?;
        if let Some((text, span)) = self.string(table.get_ref(), "mac")? {
            mac = text.parse::<MacAddress>().map_err(self.at(&span))?;
        }
        if let Some((text, span)) = self.string(table.get_ref(), "ip")? {
            (ip, prefix) = parse_address(text).map_err(self.at(&span))?;
        }
        builder.host_with(name, mac, ip, prefix).map(drop).map_err(self.at(&table.span()))
    }

    fn link(&self, builder: &mut TopologyBuilder, table: &Table<'_>) -> Result<()> {
        self.check_keys(table.get_ref(), &["ends", "rate"])?;
        let rate = match self.string(table.get_ref(), "rate")? {
            Some((text, span)) => Some(text.parse::<Rate>().map_err(self.at(&span))?),
            None => None,
        };
        let ends = table.get_ref().get("ends");
        let names: Option<Vec<&str>> = ends
            .and_then(|ends| ends.get_ref().as_array())
            .and_then(|array| array.iter().map(|end| end.get_ref().as_str()).collect());
        let span = ends.map_or_else(|| table.span(), Spanned::span);
        let Some(&[a, b]) = names.as_deref() else {
            return Err(self.wrong(&span, "a link needs ends = [\"h1\", \"s1\"], two names"));
        };
        builder.link(a, b, rate).map(drop).map_err(self.at(&span))
    }

    /// Calls `visit` for each table of the array of tables `key`, if there is one.
    fn each<'t>(
        &self,
        root: &'t DeTable<'t>,
        key: &str,
        mut visit: impl FnMut(&Table<'t>) -> Result<()>,
    ) -> Result<()> {
        let Some(value) = root.get(key) else { return Ok(()) };
        let wrong = |span: &Range<usize>| {
            self.wrong(span, format!("{key} must be written as [[{key}]] tables"))
        };
        let array = value.get_ref().as_array().ok_or_else(|| wrong(&value.span()))?;
        for item in array {
            let table = item.get_ref().as_table().ok_or_else(|| wrong(&item.span()))?;
            visit(&Spanned::new(item.span(), table))?;
        }
        Ok(())
    }

    fn check_keys(&self, table: &DeTable<'_>, known: &[&str]) -> Result<()> {
        // The keys of the table are in alphabetical order, but the error must name the first
        // unknown key in the file.
        let unknown = table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        let hint = names::suggestion(key.get_ref(), known.iter().copied());
        let (unknown, known) = (key.get_ref(), known.join(", "));
        Err(self.wrong(&key.span(), format!("unknown key {unknown:?}{hint} (known here: {known})")))
    }

    fn required<'t>(&self, table: &Table<'t>, key: &str) -> Result<&'t str> {
        let text = self.string(table.get_ref(), key)?.map(|(text, _)| text);
        text.ok_or_else(|| self.wrong(&table.span(), format!("{key} is missing")))
    }

    fn string<'t>(
        &self,
        table: &'t DeTable<'t>,
        key: &str,
    ) -> Result<Option<(&'t str, Range<usize>)>> {
        let Some(value) = table.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some((text, value.span()))),
            other => {
                let kind = other.type_str();
                let message = format!("{key} must be a string in quotes, not {kind}");
                Err(self.wrong(&value.span(), message))
            }
        }
    }

    fn wrong(&self, span: &Range<usize>, message: impl Into<String>) -> Error {
        Error::Topology { line: Some(self.line(span)), message: message.into() }
    }

    /// Adds this place's line to an error of the model.
    fn at(&self, span: &Range<usize>) -> impl FnOnce(Error) -> Error + use<> {
        let here = self.line(span);
        move |error| match error {
            Error::Topology { line: None, message } => {
                Error::Topology { line: Some(here), message }
            }
            other => other,
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or(self.text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Sixteen hexadecimal digits, with or without colons, or `0x` and fewer.
fn parse_dpid(text: &str) -> Result<u64> {
    text.parse().map(|Dpid(dpid)| dpid).map_err(|_| {
        Error::topology(format!("{text:?} is not a dpid such as 00:00:00:00:00:00:00:01"))
    })
}

fn parse_address(text: &str) -> Result<(Ipv4Addr, u8)> {
    let wrong = || Error::topology(format!("{text:?} is not an address such as 10.0.0.1/8"));
    let (ip, prefix) = text.split_once('/').ok_or_else(wrong)?;
    let prefix = if prefix.starts_with('+') { None } else { prefix.parse().ok() };
    Ok((ip.parse().map_err(|_| wrong())?, prefix.ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_topology_file_is_read() {
        let topology = parse(
            r#"
            [[switches]]
            name = "s1"
            [[switches]]
            name = "edge"
            dpid = "00:00:00:00:00:00:ab:cd"
            [[hosts]]
            name = "h1"
            [[hosts]]
            name = "web"
            mac = "02:00:00:00:00:07"
            ip = "192.0.2.7/24"
            [[links]]
            ends = ["h1", "s1"]
            rate = "10Mbit"
            [[links]]
            ends = ["s1", "edge"]
            [[links]]
            ends = ["edge", "web"]
            "#,
        )
        .unwrap();
        let mut expected = Topology::builder();
        expected.switch("s1").unwrap().switch_with_dpid("edge", 0xabcd).unwrap();
        expected.host("h1").unwrap();
        expected
            .host_with("web", MacAddress([2, 0, 0, 0, 0, 7]), Ipv4Addr::new(192, 0, 2, 7), 24)
            .unwrap();
        expected.link("h1", "s1", Some("10Mbit".parse().unwrap())).unwrap();
        expected.link("s1", "edge", None).unwrap().link("edge", "web", None).unwrap();
        assert_eq!(topology, expected.build().unwrap());
    }

    #[test]
    fn errors_in_a_topology_file_are_reported_with_the_line() {
        let cases = [
            ("", None, "neither a switch nor a host"),
            ("[[switches]]\nname = 's1'\nname = 's2'", Some(3), "duplicate key"),
            (
                "[[switchs]]\nname = 's1'",
                Some(1),
                "unknown key \"switchs\"; did you mean \"switches\"?",
            ),
            (
                "\n[[switches]]\nname = 's1'\ndipd = '1'",
                Some(4),
                "unknown key \"dipd\"; did you mean \"dpid\"?",
            ),
            (
                "[[switches]]\nname = 's1'\nzz = 1\naa = 1",
                Some(3),
                "unknown key \"zz\" (known here: name, dpid)",
            ),
            ("[[switches]]\ndpid = '1'", Some(1), "name is missing"),
            ("[[switches]]\nname = 1", Some(2), "name must be a string in quotes, not integer"),
            ("[[switches]]\nname = 'edge'", Some(1), "give its dpid"),
            ("[[switches]]\nname = 's0'", Some(1), "dpid 0"),
            ("[[switches]]\nname = 's1'\n[[switches]]\nname = 't1'", Some(3), "have the same dpid"),
            ("[[switches]]\nname = 's1'\ndpid = 'zz'", Some(3), "is not a dpid"),
            ("[[switches]]\nname = 'control'\ndpid = '1'", Some(1), "taken by the lab itself"),
            ("[[switches]]\nname = 's-1'", Some(1), "is not a name"),
            ("[[switches]]\nname = 's1'\n[[hosts]]\nname = 's1'", Some(3), "is given twice"),
            ("[[hosts]]\nname = 'h1'", None, "host \"h1\" has no link"),
            ("[[hosts]]\nname = 'h1'\nip = '10.0.0.1'", Some(3), "is not an address"),
            ("[[hosts]]\nname = 'h1'\nip = '10.0.0.1/33'", Some(1), "cannot be a host's address"),
            (
                "[[hosts]]\nname = 'h1'\nmac = '01:00:00:00:00:00'",
                Some(1),
                "cannot be a host's address",
            ),
            (
                "[[hosts]]\nname = 'h1'\n[[hosts]]\nname = 'h2'\nip = '10.0.0.1/8'",
                Some(3),
                "have the same address",
            ),
            ("switches = 1", Some(1), "must be written as [[switches]] tables"),
            ("switches = [1]", Some(1), "must be written as [[switches]] tables"),
            ("[[switches]]\nname = 's1'\n[[links]]\nends = ['s1']", Some(4), "two names"),
            ("[[switches]]\nname = 's1'\n[[links]]\nrate = '1Mbit'", Some(3), "two names"),
            ("[[switches]]\nname = 's1'\n[[links]]\nends = ['s1', 's1']", Some(4), "to itself"),
            (
                "[[switches]]\nname = 'sw1'\n[[links]]\nends = ['sw1', 'sv1']",
                Some(4),
                "did you mean \"sw1\"?",
            ),
            (
                "[[switches]]\nname = 's1'\n[[links]]\nends = ['s1', 's1']\nrate = '1'",
                Some(5),
                "is not a rate",
            ),
            (
                "[[switches]]\nname = 'switch12345'\n[[hosts]]\nname='h1'\n[[links]]\nends = ['h1', 'switch12345']",
                Some(6),
                "longer than 15 characters",
            ),
        ];
        for (text, expected_line, expected) in cases {
            match parse(text) {
                Err(Error::Topology { line, message }) => {
                    assert_eq!(line, expected_line, "{text}\n{message}");
                    assert!(message.contains(expected), "{text}\n{message}");
                }
                other => panic!("{text}\n{other:?}"),
            }
        }
    }

    proptest::proptest! {
        /// For any text the result is a topology or an error.
        #[test]
        fn arbitrary_text_is_parsed_without_a_panic(text in r#"(\[\[(switches|hosts|links)\]\]|name|dpid|ends|ip|=|'[sh]1'|\[|\]|,|\n| |\PC){0,40}"#) {
            let _ = parse(&text);
        }
    }
}
