//! The type and code of an error, and how the files of both versions list theirs.

/// The type and code of an ERROR message. Which words they stand for depends on the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode {
    /// `OFPET_*`.
    pub type_: u16,
    /// The code within the type. With type 0xffff (1.3 experimenter) it is the experimenter's own.
    pub code: u16,
}

layout!(ErrorCode: Body { type_, code });

/// Defines the constants of one version and the table of their names.
macro_rules! codes {
    ($( $constant:ident = $type_:literal, $code:literal, $name:literal: $doc:literal; )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $doc)]
            pub const $constant: ErrorCode = ErrorCode { type_: $type_, code: $code };
        )*

        /// Every code of this version with its name.
        pub const NAMES: &[(ErrorCode, &str)] = &[ $( ($constant, $name), )* ];
    };
}
pub(super) use codes;
