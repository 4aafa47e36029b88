//! The part of JSON Schema that the document uses. The check is stricter: a property that a schema does not name is an
//! error, and an unknown keyword is an error, too.

use std::collections::BTreeMap;

use serde_json::Value;

/// Keywords without an effect on values.
const TALK: &[&str] =
    &["description", "format", "default", "title", "pattern", "propertyNames", "examples"];

/// The error in a value, with its place.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    Walker { document }.value(schema, value, "body")
}

struct Walker<'a> {
    document: &'a Value,
}

impl<'a> Walker<'a> {
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(to) => {
                let found = self.document.pointer(to.trim_start_matches('#'));
                self.resolve(found.unwrap_or_else(|| panic!("{to} is nowhere")))
            }
            None => schema,
        }
    }

    fn value(&self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = self.resolve(schema);
        let wrong = |what: String| Err(format!("{at}: {what}: {value}"));
        let number = value.as_f64();
        let items = value.as_array();
        for (keyword, rule) in schema.as_object().unwrap_or_else(|| panic!("{at}: no schema")) {
            let rules = || rule.as_array().unwrap().iter();
            let fine = match keyword.as_str() {
                "type" if rule.is_array() => rules().any(|kind| is(kind, value)),
                "type" => is(rule, value),
                "enum" => rules().any(|it| it == value),
                "minimum" => number.is_none_or(|it| it >= rule.as_f64().unwrap()),
                "maximum" => number.is_none_or(|it| it <= rule.as_f64().unwrap()),
                "minItems" => items.is_none_or(|it| it.len() as u64 >= rule.as_u64().unwrap()),
                "maxItems" => items.is_none_or(|it| it.len() as u64 <= rule.as_u64().unwrap()),
                "oneOf" => {
                    let all: Vec<_> = rules().map(|it| self.value(it, value, at)).collect();
                    if all.iter().filter(|it| it.is_ok()).count() != 1 {
                        return wrong(format!("not one of {all:?}"));
                    }
                    true
                }
                "items" => {
                    let all = items.into_iter().flatten().enumerate();
                    for (number, item) in all {
                        self.value(rule, item, &format!("{at}[{number}]"))?;
                    }
                    true
                }
                "properties" | "required" | "allOf" | "additionalProperties" => true,
                other if TALK.contains(&other) => true,
                other => panic!("{at}: {other} is not known here"),
            };
            if !fine {
                return wrong(format!("{keyword} is {rule}"));
            }
        }
        self.object(schema, value, at)
    }

    fn object(&self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let (mut fields, mut required) = (BTreeMap::new(), Vec::new());
        self.fields(schema, &mut fields, &mut required);
        let Some(object) = value.as_object() else { return Ok(()) };
        if let Some(missing) = required.iter().find(|name| !object.contains_key(**name)) {
            return Err(format!("{at}: {missing} is missing"));
        }
        // An object without named properties may have any contents.
        for (name, value) in object.iter().filter(|_| !fields.is_empty()) {
            let Some(field) = fields.get(name.as_str()) else {
                return Err(format!("{at}: {name} is not said"));
            };
            self.value(field, value, &format!("{at}.{name}"))?;
        }
        Ok(())
    }

    /// The properties of a schema, and of all its parts.
    fn fields(
        &self,
        schema: &'a Value,
        fields: &mut BTreeMap<&'a str, &'a Value>,
        required: &mut Vec<&'a str>,
    ) {
        let schema = self.resolve(schema);
        let named = schema["properties"].as_object().into_iter().flatten();
        fields.extend(named.map(|(name, field)| (name.as_str(), field)));
        let names = schema["required"].as_array().into_iter().flatten();
        required.extend(names.filter_map(Value::as_str));
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.fields(part, fields, required);
        }
    }
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}
