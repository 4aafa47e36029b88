//! The three macros that keep wire types to what the specification says about them: an open enumeration, a set of
//! flags, and the order of a structure's fields.

/// An open newtype over a wire integer, with named values. `Debug` prints the name, or the number where there is none.
macro_rules! open_enum {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident($int:ty) {
            $( $(#[$vdoc:meta])* $value:ident = $number:expr, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub $int);

        impl $name {
            $( $(#[$vdoc])* pub const $value: Self = Self($number); )*

            /// The value's name in the specification without its prefix, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                $( if self.0 == Self::$value.0 { return Some(stringify!($value)); } )*
                None
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => core::fmt::Debug::fmt(&self.0, f),
                }
            }
        }

        newtype_wire!($name($int));
    };
}

/// An open set of flags over a wire integer. Unknown bits are kept.
macro_rules! flags {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident($int:ty) {
            $( $(#[$vdoc:meta])* $value:ident = $number:expr, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub $int);

        impl $name {
            $( $(#[$vdoc])* pub const $value: Self = Self($number); )*

            /// No flag at all.
            pub const NONE: Self = Self(0);

            /// Whether every bit of `other` is set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any bit of `other` is set.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Whether no bit is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// These flags without those of `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl core::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut rest = self.0;
                let mut separator = "";
                $(
                    if $number != 0 && rest & $number == $number {
                        write!(f, "{separator}{}", stringify!($value))?;
                        rest &= !$number;
                        separator = "|";
                    }
                )*
                if rest != 0 || separator.is_empty() {
                    write!(f, "{separator}{rest:#x}")?;
                }
                Ok(())
            }
        }

        newtype_wire!($name($int));
    };
}

/// Reading and writing of a newtype over an integer.
macro_rules! newtype_wire {
    ($name:ident($int:ty)) => {
        impl<'a> crate::wire::Decode<'a> for $name {
            fn read(r: &mut crate::wire::Reader<'a>) -> Result<Self, crate::fault::DecodeError> {
                Ok(Self(crate::wire::Decode::read(r)?))
            }
        }

        impl crate::wire::Encode for $name {
            fn write(&self, out: &mut alloc::vec::Vec<u8>) {
                crate::wire::Encode::write(&self.0, out);
            }
        }

        impl crate::wire::Element for $name {
            type At<'x> = $name;
        }

        impl From<$int> for $name {
            fn from(number: $int) -> Self {
                Self(number)
            }
        }
    };
}

/// The order of a structure's fields on the wire; `[n]` is `n` bytes of padding. Generates reading and writing.
macro_rules! layout {
    ($name:ident: $part:ident { $( $($field:ident)? $([$pad:literal])? ),* }) => {
        impl<'a> crate::wire::Decode<'a> for $name {
            fn read(r: &mut crate::wire::Reader<'a>) -> Result<Self, crate::fault::DecodeError> {
                $( $( let $field = crate::wire::Decode::read(r)?; )? $( r.skip($pad)?; )? )*
                Ok(Self { $( $( $field, )? )* })
            }
        }

        impl crate::wire::Encode for $name {
            fn write(&self, out: &mut alloc::vec::Vec<u8>) {
                $( $( crate::wire::Encode::write(&self.$field, out); )? $( crate::wire::pad(out, $pad); )? )*
            }
        }

        standalone!($name: $part);
    };
    ($name:ident<'a>: $part:ident { $( $($field:ident)? $([$pad:literal])? ),* }) => {
        impl<'a> crate::wire::Decode<'a> for $name<'a> {
            fn read(r: &mut crate::wire::Reader<'a>) -> Result<Self, crate::fault::DecodeError> {
                $( $( let $field = crate::wire::Decode::read(r)?; )? $( r.skip($pad)?; )? )*
                Ok(Self { $( $( $field, )? )* })
            }
        }

        impl crate::wire::Encode for $name<'_> {
            fn write(&self, out: &mut alloc::vec::Vec<u8>) {
                $( $( crate::wire::Encode::write(&self.$field, out); )? $( crate::wire::pad(out, $pad); )? )*
            }
        }

        standalone!($name<'a>: $part);
    };
}

/// `parse` and `write` without the traits in scope, and membership in lists.
macro_rules! standalone {
    ($name:ident: $part:ident) => {
        impl $name {
            /// Reads the structure from exactly these bytes.
            ///
            /// # Errors
            /// The bytes are too few, too many, or contradict themselves.
            pub fn parse(bytes: &[u8]) -> Result<Self, crate::fault::DecodeError> {
                crate::wire::parse_all(bytes, crate::fault::Part::$part)
            }

            /// Appends the structure.
            pub fn write(&self, out: &mut alloc::vec::Vec<u8>) {
                crate::wire::Encode::write(self, out);
            }
        }

        impl crate::wire::Element for $name {
            type At<'x> = $name;
        }
    };
    ($name:ident<'a>: $part:ident) => {
        impl<'a> $name<'a> {
            /// Reads the structure from exactly these bytes.
            ///
            /// # Errors
            /// The bytes are too few, too many, or contradict themselves.
            pub fn parse(bytes: &'a [u8]) -> Result<Self, crate::fault::DecodeError> {
                crate::wire::parse_all(bytes, crate::fault::Part::$part)
            }

            /// Appends the structure.
            pub fn write(&self, out: &mut alloc::vec::Vec<u8>) {
                crate::wire::Encode::write(self, out);
            }
        }

        impl crate::wire::Element for $name<'_> {
            type At<'x> = $name<'x>;
        }
    };
}

/// `write_message` for bodies that belong to one message type.
macro_rules! message_body {
    ($version:ident: $( $name:ty => $type_:ident ),* $(,)?) => {
        $(
            impl $name {
                /// Appends a whole frame: header and body.
                ///
                /// # Errors
                /// The frame would be longer than 65,535 bytes; nothing was appended.
                pub fn write_message(
                    &self,
                    xid: u32,
                    out: &mut alloc::vec::Vec<u8>,
                ) -> Result<(), crate::fault::TooLong> {
                    crate::frame::write(crate::Version::$version, MessageType::$type_.0, xid, out, |out| {
                        crate::wire::Encode::write(self, out);
                    })
                }
            }
        )*
    };
}
