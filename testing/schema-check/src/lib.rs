//! An independent check of `steadfast-model`: what it writes for a revision is held against the types that another crate
//! generated from that revision's schema.
//!
//! Each value of [`samples`] is written for the revision, read by the other crate, written by the other crate and read by
//! us again. On the way nothing may be refused, lost or changed.

pub mod samples;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use steadfast_model::wire::{self, PerMessageMembers, Encode, RequestResult};
use steadfast_model::{ClientCapabilities, ErrorObject, FormField, Implementation, Revision};

/// The revision that this build checks.
pub const REVISION: Revision = if cfg!(feature = "r2024_11_05") {
    Revision::V2024_11_05
} else if cfg!(feature = "r2025_03_26") {
    Revision::V2025_03_26
} else if cfg!(feature = "r2025_06_18") {
    Revision::V2025_06_18
} else if cfg!(feature = "r2025_11_25") {
    Revision::V2025_11_25
} else {
    Revision::V2026_07_28
};

/// Checks a result against its type in the other crate.
pub fn result<Theirs, Ours>(ours: &Ours)
where
    Theirs: Serialize + DeserializeOwned,
    Ours: RequestResult + DeserializeOwned + PartialEq + Debug,
{
    let server = PerMessageMembers::of_server(&samples::implementation());
    let mut out = Vec::new();
    wire::write_result(REVISION, ours, &server, &mut out).expect("it can be written");
    agree::<Theirs, Ours>(&text(out));
}

/// Checks the parameters of a request against their type in the other crate.
pub fn params<Theirs, Ours>(ours: &Ours)
where
    Theirs: Serialize + DeserializeOwned,
    Ours: Encode + DeserializeOwned + PartialEq + Debug,
{
    let client = PerMessageMembers::of_client(&Implementation::new("client", "1"), &ClientCapabilities::new());
    let mut out = Vec::new();
    wire::write_params(REVISION, ours, &client, &mut out).expect("they can be written");
    agree::<Theirs, Ours>(&text(out));
}

/// Checks the parameters of a notification against their type in the other crate.
pub fn notice<Theirs, Ours>(ours: &Ours)
where
    Theirs: Serialize + DeserializeOwned,
    Ours: Encode + DeserializeOwned + PartialEq + Debug,
{
    let mut out = Vec::new();
    wire::write_params(REVISION, ours, &PerMessageMembers::none(), &mut out).expect("they can be written");
    agree::<Theirs, Ours>(&text(out));
}

/// Checks a value inside a message against its type in the other crate.
pub fn value<Theirs, Ours>(ours: &Ours)
where
    Theirs: Serialize + DeserializeOwned,
    Ours: Encode + DeserializeOwned + PartialEq + Debug,
{
    let mut out = Vec::new();
    wire::write(REVISION, ours, &mut out).expect("it can be written");
    agree::<Theirs, Ours>(&text(out));
}

/// Checks a field of a form against its type in the other crate.
///
/// Fields have types of their own there only when they are read alone: inside a form the other crate takes every choice
/// for a plain text.
pub fn field<Theirs: Serialize + DeserializeOwned>(ours: &FormField) {
    agree::<Theirs, FormField>(&serde_json::to_string(ours).expect("it can be written"));
}

/// Checks an error against its type in the other crate.
pub fn error<Theirs: Serialize + DeserializeOwned>(ours: &ErrorObject) {
    let mut out = Vec::new();
    wire::write_error(REVISION, ours, &mut out).expect("it can be written");
    agree::<Theirs, ErrorObject>(&text(out));
}

/// Checks that the other crate takes a value in which it does not keep everything.
pub fn accepted<Theirs: DeserializeOwned, Ours: Encode>(ours: &Ours) {
    let mut out = Vec::new();
    wire::write(REVISION, ours, &mut out).expect("it can be written");
    let written = text(out);
    if let Err(error) = serde_json::from_str::<Theirs>(&written) {
        panic!("{REVISION}: the other crate refuses what we wrote: {error}\n{written}");
    }
}

/// Checks that a value cannot be encoded for the revision, and that the attempt writes nothing.
pub fn refused<Ours: Encode>(ours: &Ours) {
    let mut out = b"kept".to_vec();
    assert!(wire::write(REVISION, ours, &mut out).is_err(), "{REVISION} should not have a form for this");
    assert_eq!(out, b"kept");
}

fn agree<Theirs, Ours>(written: &str)
where
    Theirs: Serialize + DeserializeOwned,
    Ours: DeserializeOwned + PartialEq + Debug,
{
    let theirs: Theirs = match serde_json::from_str(written) {
        Ok(theirs) => theirs,
        Err(error) => panic!("{REVISION}: the other crate refuses what we wrote: {error}\n{written}"),
    };
    let back = serde_json::to_string(&theirs).expect("what was read can be written");
    assert_eq!(
        normal(serde_json::from_str(written).expect("we write JSON")),
        normal(serde_json::from_str(&back).expect("they write JSON")),
        "{REVISION}: something was lost or changed on the way\n{written}\n{back}"
    );
    let ours: Ours = serde_json::from_str(written).expect("we read what we wrote");
    let ours_back: Ours = serde_json::from_str(&back).expect("we read what they wrote");
    assert_eq!(ours, ours_back, "{REVISION}");
}

/// One form for numbers: `1` and `1.0` are the same to JSON.
fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(values) => values.into_iter().map(normal).collect(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, normal(value))).collect(),
        other => other,
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("JSON is UTF-8")
}
