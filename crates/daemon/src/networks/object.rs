//! Structures that JSON writes as objects, and as nothing else. What serde derives takes an array as well, its elements for
//! the fields in their order: an empty array would be a network in which nothing is.

/// Implements `Serialize` and `Deserialize` for structures that derive them with `#[serde(remote = "Self")]`, so for
/// themselves alone. The text is what errors call them.
macro_rules! objects {
    ($($name:ident: $what:literal),* $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // The derived one, which has precedence over this.
                $name::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                struct Object;

                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!($what, " as an object"))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        map: A,
                    ) -> Result<$name, A::Error> {
                        $name::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }
                }

                from.deserialize_map(Object)
            }
        }
    )*};
}

pub(super) use objects;
