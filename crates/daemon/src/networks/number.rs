//! A port's number as JSON.

use std::fmt;

use fabric::PortNumber;
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::error::DocumentError;

/// A port's number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NumberDocument {
    /// A number.
    Number(u32),
    /// `LOCAL`: the port of the switch's own network stack, or a port that is mapped to LOCAL. Its number depends on
    /// the version.
    Name(String),
}

impl NumberDocument {
    /// A port's number as a document.
    pub fn new(number: u32) -> NumberDocument {
        match PortNumber::new(number) {
            Ok(PortNumber::LOCAL) => NumberDocument::Name(PortNumber::LOCAL.to_string()),
            _ => NumberDocument::Number(number),
        }
    }

    /// The number in the document.
    pub(super) fn number(&self) -> Result<u32, DocumentError> {
        match self {
            NumberDocument::Number(number) => Ok(*number),
            NumberDocument::Name(text) => match text.parse() {
                Ok(PortNumber::LOCAL) => Ok(PortNumber::LOCAL.get()),
                _ => Err(DocumentError(format!("number: \"{text}\": expected a number, or LOCAL"))),
            },
        }
    }
}

impl PartialSchema for NumberDocument {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .description(Some("By itself."))
            .minimum(Some(1))
            .maximum(Some(0xff00));
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "The port into the switch's own network stack, or what stands for it.",
            ))
            .pattern(Some("^[Ll][Oo][Cc][Aa][Ll]$"));
        OneOfBuilder::new().item(number).item(name).description(Some("A port's number.")).into()
    }
}

impl ToSchema for NumberDocument {}

impl fmt::Display for NumberDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberDocument::Number(number) => number.fmt(f),
            NumberDocument::Name(name) => name.fmt(f),
        }
    }
}
