//! Structures whose JSON form is an object only. The code that serde derives also accepts an array with the fields in
//! order, so an empty array would be an empty network.

/// Implements `Serialize` and `Deserialize` for structures that derive them with `#[serde(remote = "Self")]`. The text
/// is the name of the structure in errors.
macro_rules! objects {
    ($($name:ident: $what:literal),* $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // This calls the derived function, which has precedence over the trait's function.
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
