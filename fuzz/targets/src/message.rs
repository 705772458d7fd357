//! Every message type: what can be read can be written, is read back as the same value, and can be written for each
//! revision in a form that can be read again and has no member twice.
//!
//! Input: JSON text. It is read as the parameters and as the result of every request, as the parameters of every
//! notification, and as what these are made of.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use steadfast_model::wire::{self, PerMessageMembers, Encode, RequestResult};
use steadfast_model::notification::{self, Notification};
use steadfast_model::request::{self, Request};
use steadfast_model::{
    DeferrableResult, CallToolParamsRef, CallToolResult, Content, CreateTaskResult, ErrorObject, FormSchema, Implementation,
    InputRequiredResult, Meta, Method, RequestMeta, Revision,
};

use crate::members::Members;

/// The methods whose messages are read.
pub fn methods() -> impl Iterator<Item = Method> {
    REQUESTS.iter().chain(NOTIFICATIONS).copied()
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return;
    }
    requests(text);
    notifications(text);
    parts(text);
}

macro_rules! requests {
    ($($name:ident)+) => {
        const REQUESTS: &[Method] = &[$(<request::$name as Request>::METHOD),+];

        fn requests(text: &str) {$(
            assert_params::<<request::$name as Request>::Params>(text);
            assert_result::<<request::$name as Request>::Result>(text);
        )+}
    };
}

macro_rules! notifications {
    ($($name:ident)+) => {
        const NOTIFICATIONS: &[Method] = &[$(<notification::$name as Notification>::METHOD),+];

        fn notifications(text: &str) {$(
            assert_params::<<notification::$name as Notification>::Params>(text);
        )+}
    };
}

requests! {
    Initialize Ping Discover ListTools CallTool ListPrompts GetPrompt ListResources ListResourceTemplates ReadResource
    Subscribe Unsubscribe Listen Complete SetLevel ListRoots CreateMessage Elicit GetTask GetTaskPayload ListTasks
    CancelTask UpdateTask
}

notifications! {
    Initialized Cancelled Progress LoggingMessage ToolListChanged PromptListChanged ResourceListChanged ResourceUpdated
    RootsListChanged ElicitationComplete TaskStatus TaskUpdated SubscriptionAcknowledged
}

/// What is read in places of its own.
fn parts(text: &str) {
    assert_result::<InputRequiredResult>(text);
    assert_result::<CreateTaskResult>(text);
    assert_round_trip::<Content>(text);
    assert_round_trip::<Meta>(text);
    assert_round_trip::<FormSchema>(text);
    if let Some(error) = assert_round_trip::<ErrorObject>(text) {
        for &revision in Revision::ALL {
            assert_readable::<ErrorObject>(revision, |out| wire::write_error(revision, &error, out));
        }
    }
    // Borrowed forms, and forms that are only read: they must not panic.
    let _ = serde_json::from_str::<CallToolParamsRef<'_>>(text);
    let _ = serde_json::from_str::<RequestMeta>(text);
    let _ = DeferrableResult::<CallToolResult>::from_json(text);
}

fn assert_params<T: Encode + Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) {
    let Some(params) = assert_round_trip::<T>(text) else { return };
    for &revision in Revision::ALL {
        assert_readable::<T>(revision, |out| wire::write_params(revision, &params, &PerMessageMembers::none(), out));
    }
}

fn assert_result<T: RequestResult + Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) {
    let Some(result) = assert_round_trip::<T>(text) else { return };
    let decoration = PerMessageMembers::of_server(&Implementation::new("fuzz", "0"));
    for &revision in Revision::ALL {
        assert_readable::<T>(revision, |out| wire::write_result(revision, &result, &decoration, out));
    }
}

/// What can be read is written, and read back as the same value.
fn assert_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) -> Option<T> {
    let value: T = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&value).unwrap_or_else(|error| panic!("{value:?} cannot be written: {error}"));
    match serde_json::from_str::<T>(&written) {
        Ok(again) => assert_eq!(again, value, "written as {written}"),
        Err(error) => panic!("{value:?}, written as {written}, cannot be read: {error}"),
    }
    Some(value)
}

/// What is written for a revision can be read.
fn assert_readable<T: DeserializeOwned>(
    revision: Revision,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) {
    let mut out = Vec::new();
    // A revision may have no form for a value; then nothing is written.
    if write(&mut out).is_err() {
        return assert!(out.is_empty(), "half of a value is left behind for {revision}");
    }
    let written = String::from_utf8(out).unwrap_or_else(|error| panic!("not UTF-8 for {revision}: {error}"));
    if let Err(error) = serde_json::from_str::<T>(&written) {
        panic!("written for {revision}: {written}: {error}");
    }
    assert_no_member_twice(&written);
}

fn assert_no_member_twice(text: &str) {
    if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
        for element in elements {
            assert_no_member_twice(element.get());
        }
        return;
    }
    let Ok(Members(members)) = serde_json::from_str(text) else { return };
    let mut names: Vec<_> = members.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "a member stands there twice: {text}");
    for (_, value) in members {
        assert_no_member_twice(value.get());
    }
}
