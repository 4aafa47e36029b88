//! Tests of the parts that the case files do not cover: splitting of streams, negotiation, lists, texts, limits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use openflow::hello::{HelloElement, negotiate};
use openflow::text::{Name, Text};
use openflow::v13::{Oxm, OxmClass, OxmField};
use openflow::{
    DecodeError, ErrorCode, FrameError, Header, Hello, List, ListBuf, Part, TooLong, Version,
    VersionSet, error, frame, v10, v13,
};

#[test]
fn a_stream_is_split_into_frames_by_the_header_length() {
    let check = |bytes: &[u8], expected| assert_eq!(frame::next(bytes), expected, "{bytes:02x?}");
    check(&[], Ok(None));
    check(&[1, 0, 0], Ok(None));
    check(&[1, 0, 0, 8], Ok(None));
    check(&[1, 0, 0, 8, 0, 0, 0], Ok(None));
    check(&[1, 0, 0, 8, 0, 0, 0, 0], Ok(Some(8)));
    check(&[1, 0, 0, 8, 0, 0, 0, 0, 1, 2], Ok(Some(8)));
    check(&[1, 0, 0, 9, 0, 0, 0, 0], Ok(None));
    // A length below 8 is refused before the header is complete, so a peer cannot make the reader wait.
    check(&[1, 0, 0, 7], Err(FrameError { length: 7 }));
    check(&[1, 0, 0, 0, 0, 0, 0, 0], Err(FrameError { length: 0 }));
    let mut longest = vec![0; 65_535];
    longest[2..4].fill(0xff);
    check(&longest, Ok(Some(65_535)));
}

#[test]
fn the_negotiated_version_is_the_highest_common_version() {
    let set =
        |versions: &[u8]| versions.iter().map(|version| Version(*version)).collect::<VersionSet>();
    let check = |ours: &[u8], peer: u8, bitmap: Option<&[u8]>, expected: Option<u8>| {
        let chosen = negotiate(set(ours), peer, bitmap.map(set));
        assert_eq!(chosen, expected.map(Version), "{ours:?}, {peer}, {bitmap:?}");
    };
    // Without a bitmap: the smaller of the two versions.
    check(&[1, 4], 1, None, Some(1));
    check(&[1, 4], 4, None, Some(4));
    check(&[1, 4], 6, None, Some(4));
    check(&[1, 4], 3, None, None);
    check(&[1], 4, None, Some(1));
    check(&[4], 1, None, None);
    check(&[], 4, None, None);
    // With a bitmap, the version of the header has no effect.
    check(&[1, 4], 6, Some(&[1, 2, 6]), Some(1));
    check(&[1, 4], 4, Some(&[1, 4]), Some(4));
    check(&[1, 4], 1, Some(&[1, 4, 5]), Some(4));
    check(&[1, 4], 4, Some(&[2, 3]), None);
    check(&[1, 4], 4, Some(&[]), None);
    check(&[1, 4], 255, None, Some(4));
    assert!(!VersionSet::SUPPORTED.contains(Version(36)), "36 is not 4");
    assert_eq!(VersionSet::only(Version(200)), VersionSet::EMPTY);
}

#[test]
fn hello_offers_exactly_the_given_versions() {
    let check = |versions: VersionSet, expected: &[u8]| {
        let mut out = Vec::new();
        Hello::write_message(versions, 9, &mut out).unwrap();
        assert_eq!(out, expected);
        let (header, hello) = Hello::parse_frame(&out).unwrap();
        assert_eq!(header.xid, 9);
        assert_eq!(negotiate(versions, header.version.0, hello.versions()), versions.highest());
    };
    check(VersionSet::only(Version::V1_0), &[1, 0, 0, 8, 0, 0, 0, 9]);
    check(VersionSet::only(Version::V1_3), &[4, 0, 0, 16, 0, 0, 0, 9, 0, 1, 0, 8, 0, 0, 0, 0x10]);
    check(VersionSet::SUPPORTED, &[4, 0, 0, 16, 0, 0, 0, 9, 0, 1, 0, 8, 0, 0, 0, 0x12]);
}

#[test]
fn hello_elements_are_read_up_to_the_first_malformed_element() {
    let elements =
        |body: &[u8]| -> String { format!("{:?}", Hello { body }.elements().collect::<Vec<_>>()) };
    assert_eq!(elements(&[]), "[]");
    assert_eq!(elements(&[0, 1, 0, 8, 0, 0, 0, 0x12]), "[VersionBitmap([18])]");
    // The list has an unknown element with padding, and then a bitmap with two words without the last padding.
    let two = [0, 9, 0, 5, 7, 0, 0, 0, 0, 1, 0, 12, 0, 0, 0, 2, 0, 0, 0, 1];
    assert_eq!(elements(&two), "[Unknown { type_: 9, body: [7] }, VersionBitmap([2, 1])]");
    assert_eq!(Hello { body: &two }.versions(), Some(VersionSet::only(Version::V1_0)));
    assert_eq!(elements(&[0, 1, 0, 3, 0, 0, 0, 0]), "[]");
    assert_eq!(elements(&[0, 1, 0, 9, 0, 0, 0, 0]), "[]");
    assert_eq!(elements(&[0, 1, 0, 7, 0, 0, 0, 0]), "[]", "three bytes are no bitmap");
    assert_eq!(elements(b"anything"), "[]");
    assert_eq!(
        Hello { body: &[0, 1, 0, 4] }.versions(),
        Some(VersionSet::EMPTY),
        "a bitmap of nothing is one"
    );

    let mut list = ListBuf::<HelloElement<'_>>::new();
    list.push(HelloElement::Unknown { type_: 9, body: &[7] });
    list.push(HelloElement::VersionBitmap(List::parse(&[0, 0, 0, 2]).unwrap()));
    assert_eq!(list.as_bytes(), [0, 9, 0, 5, 7, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 2]);
}

#[test]
fn a_message_over_65535_bytes_is_refused_and_writes_no_bytes() {
    let data = vec![0; 65_535 - 8];
    let mut out = vec![1, 2, 3];
    v10::Message::EchoRequest(&data).write(1, &mut out).unwrap();
    assert_eq!(out.len(), 3 + 65_535);
    out.truncate(3);
    let data = vec![0; 65_535 - 7];
    assert_eq!(
        v13::Message::EchoRequest(&data).write(1, &mut out),
        Err(TooLong { length: 65_536 })
    );
    assert_eq!(out, [1, 2, 3]);
    // A message with an inner length that does not fit is also refused.
    let actions: ListBuf<v10::Action<'_>> = (0..9000).map(|_| v10::Action::StripVlan).collect();
    let packet_out = v10::PacketOut { actions: actions.as_list(), ..v10::PacketOut::default() };
    assert_eq!(packet_out.write_message(1, &mut out), Err(TooLong { length: 16 + 72_000 }));
    let instruction = v13::Action::Experimenter { experimenter: 1, body: &vec![0; 70_000] };
    let actions = ListBuf::from([instruction]);
    let packet_out = v13::PacketOut { actions: actions.as_list(), ..v13::PacketOut::default() };
    assert!(packet_out.write_message(1, &mut out).is_err());
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn malformed_lists_are_refused_at_parse_and_valid_lists_are_iterated() {
    let bad = List::<v10::Action<'_>>::parse(&[0, 3, 0, 8, 0, 0, 0, 0, 0, 0, 0, 4]);
    let expected =
        DecodeError::BadLength { part: Part::Action, offset: 10, length: 4, available: 4 };
    assert_eq!(bad, Err(expected));
    assert_eq!(expected.openflow_error(Version::V1_0), error::v10::BAD_ACTION_BAD_LEN);
    assert_eq!(expected.openflow_error(Version::V1_3), error::v13::BAD_ACTION_BAD_LEN);

    let mut list = ListBuf::<v10::Action<'_>>::new();
    assert!(list.is_empty() && list.as_list().is_empty());
    list.push(v10::Action::StripVlan);
    list.push(v10::Action::SetVlanPcp(3));
    assert_eq!(format!("{list:?}"), "[StripVlan, SetVlanPcp(3)]");
    assert_eq!(list.as_list().count(), 2);
    let mut iter = list.as_list().iter();
    assert_eq!(iter.next(), Some(v10::Action::StripVlan));
    assert_eq!(iter.as_bytes(), &list.as_bytes()[8..]);
    list.clear();
    assert!(list.is_empty());
}

#[test]
fn padding_in_a_list_is_kept_and_in_a_struct_is_zeroed() {
    let action = [0, 3, 0, 8, 1, 2, 3, 4];
    let list = List::<v10::Action<'_>>::parse(&action).unwrap();
    let packet_out = v10::PacketOut { actions: list, ..v10::PacketOut::default() };
    let mut out = Vec::new();
    packet_out.write(&mut out);
    assert_eq!(out[8..], action);
    let mut out = Vec::new();
    list.iter().next().unwrap().write(&mut out);
    assert_eq!(out, [0, 3, 0, 8, 0, 0, 0, 0]);
}

#[test]
fn names_end_at_the_first_nul_byte_and_keep_the_bytes_after_nul() {
    assert_eq!(Name::<16>::new("eth0").as_str(), "eth0");
    assert_eq!(Name::<4>::new("eth0").as_str(), "eth", "a NUL has to fit");
    assert_eq!(Name::<0>::new("eth0").as_str(), "");
    let mut name = Name::<8>(*b"ab\0cd\0\xff!");
    assert_eq!((name.as_bytes(), name.to_string().as_str()), (&b"ab"[..], "ab"));
    name.0[2] = 0xff;
    assert_eq!(name.as_str(), "ab", "what is not UTF-8 ends the text");
    assert_eq!(format!("{name:?}"), "\"ab\\xffcd\"");
    let text = Text::<4>(b"a\0b\0\0");
    assert_eq!(text.as_str(), "a");
}

#[test]
fn oxm_fields_convert_to_numeric_value_and_mask() {
    let check = |oxm: Oxm<'_>, number, mask| {
        assert_eq!((oxm.number(), oxm.mask_number()), (number, mask), "{oxm:?}");
    };
    check(Oxm::exact(OxmField::ETH_TYPE, &[8, 6]), Some(0x0806), Some(0xffff));
    check(
        Oxm::masked(OxmField::IPV4_SRC, &[10, 0, 0, 0], &[255, 0, 0, 0]),
        Some(0x0a00_0000),
        Some(0xff00_0000),
    );
    check(Oxm::exact(OxmField::IPV6_SRC, &[0xff; 16]), Some(u128::MAX), Some(u128::MAX));
    check(Oxm::exact(OxmField(99), &[]), Some(0), Some(0));
    check(Oxm::exact(OxmField(99), &[1; 17]), None, None);
    let experimenter = Oxm {
        class: OxmClass::EXPERIMENTER,
        experimenter: Some(0x2320),
        ..Oxm::masked(OxmField(3), &[1], &[3])
    };
    assert_eq!(format!("{experimenter:?}"), "EXPERIMENTER:0x2320:3=01/03");
    let mut out = Vec::new();
    experimenter.write(&mut out);
    assert_eq!(out, [0xff, 0xff, 7, 6, 0, 0, 0x23, 0x20, 1, 3]);
    assert_eq!(Oxm::parse(&out), Ok(experimenter));
}

#[test]
fn error_codes_versions_and_flags_are_printed_with_names() {
    let code = error::v13::FLOW_MOD_FAILED_OVERLAP;
    assert_eq!(code.display(Version::V1_3).to_string(), "OFPFMFC_OVERLAP");
    assert_eq!(code.display(Version::V1_0).to_string(), "type 5, code 3");
    assert_eq!(
        ErrorCode { type_: 77, code: 3 }.display(Version::V1_0).to_string(),
        "type 77, code 3"
    );
    assert_eq!(format!("{:?} {:?}", Version::V1_3, Version(9)), "V1_3 9");
    let flags = v10::FlowModFlags::EMERG | v10::FlowModFlags(0x8000);
    assert_eq!(format!("{flags:?} {:?}", v10::FlowModFlags::NONE), "EMERG|0x8000 0x0");
    assert!(
        flags.contains(v10::FlowModFlags::EMERG)
            && !flags.contains(v10::FlowModFlags::SEND_FLOW_REM)
    );
    assert!(flags.without(v10::FlowModFlags::EMERG).intersects(v10::FlowModFlags(0x8000)));
}

#[test]
fn each_request_type_has_a_reply_type() {
    for type_ in 0..=255 {
        let (v10_type, v13_type) = (v10::MessageType(type_), v13::MessageType(type_));
        if let Some(reply) = v10_type.reply() {
            assert!(reply.is_reply() && !v10_type.is_reply(), "{v10_type:?}");
        }
        if let Some(reply) = v13_type.reply() {
            assert!(reply.is_reply() && !v13_type.is_reply(), "{v13_type:?}");
        }
    }
    let count = |is: fn(u8) -> bool| (0..=255).filter(|type_| is(*type_)).count();
    assert_eq!(count(|type_| v10::MessageType(type_).is_reply()), 6);
    assert_eq!(count(|type_| v10::MessageType(type_).reply().is_some()), 6);
    assert_eq!(count(|type_| v13::MessageType(type_).is_reply()), 8);
    assert_eq!(count(|type_| v13::MessageType(type_).reply().is_some()), 8);
}

#[test]
fn headers_with_wrong_length_or_version_are_refused() {
    let frame = [1, 18, 0, 9, 0, 0, 0, 7];
    assert_eq!(
        Header::parse(&frame),
        Ok(Header { version: Version::V1_0, type_: 18, length: 9, xid: 7 })
    );
    let expected =
        DecodeError::BadLength { part: Part::Header, offset: 2, length: 9, available: 8 };
    assert_eq!(Header::parse_whole(&frame), Err(expected));
    assert_eq!(v13::Message::parse(&frame), Err(expected));
    let frame = [1, 18, 0, 8, 0, 0, 0, 7];
    assert_eq!(v13::Message::parse(&frame), Err(DecodeError::Version { version: Version::V1_0.0 }));
}

/// `resubmit(9,252)`: an action of 16 bytes, with subtype 14 (`nicira-ext.h`, NXAST_RESUBMIT_TABLE), on either version.
#[test]
fn the_resubmit_action_of_open_vswitch_is_read_and_written() {
    use openflow::nicira::{NICIRA, Resubmit};
    const WIRE: [u8; 16] = *b"\xff\xff\x00\x10\x00\x00\x23\x20\x00\x0e\x00\x09\xfc\x00\x00\x00";
    let resubmit = Resubmit { in_port: 9, table: 252 };
    let body = &resubmit.body();
    let actions = ListBuf::from([v13::Action::Experimenter { experimenter: NICIRA, body }]);
    assert_eq!(actions.as_list().as_bytes(), WIRE);
    let read = List::<v13::Action<'_>>::parse(&WIRE).unwrap().iter().next().unwrap();
    assert_eq!(Resubmit::of_v13(&read), Some(resubmit));
    let read = List::<v10::Action<'_>>::parse(&WIRE).unwrap().iter().next().unwrap();
    assert_eq!(Resubmit::of_v10(&read), Some(resubmit));
    // Another action of Nicira, an action of another experimenter, and a truncated action are not read as `resubmit`.
    let others = [(NICIRA, &[0, 8, 0, 0, 0, 0, 0, 0][..]), (7, body), (NICIRA, &body[..7])];
    for (experimenter, body) in others {
        let action = v13::Action::Experimenter { experimenter, body };
        assert_eq!(Resubmit::of_v13(&action), None, "{body:?}");
    }
}
