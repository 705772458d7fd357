//! Encodes the parameters and results of any [`Request`] and [`Notification`], and finds what a client has to know of them to
//! cache and check results.
//!
//! The types of the specification are encoded for one protocol revision. The types of vendor methods are encoded as serde
//! writes them, in every revision. Whether a request is of the specification or of a vendor follows from its method and its
//! types at compile time, so the trait that programs implement for vendor requests has no methods for encoding.

use std::any::Any;

use super::{PerMessageMembers, RequestResult, params_text, to_object, write_result};
use crate::feature::resource::ReadResourceParams;
use crate::feature::tool::{CallToolParams, CallToolResult, ListToolsResult, Tool};
use crate::message::cache::CacheHints;
use crate::message::notification::{self, Notification};
use crate::message::page::PaginatedParams;
use crate::message::request::{self, Request};
use crate::method::Method;
use crate::revision::Revision;

/// The tool, resource or page that a request is about, which a client has to know to cache and check the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestSubject<'a> {
    /// The request is about no tool, resource or page.
    Unnamed,
    /// A page of a list: the page at this cursor, or the first page.
    Page(Option<&'a str>),
    /// A call of the tool with this name.
    Tool {
        /// Its name.
        name: &'a str,
        /// The client asked to run the call as a task, as defined in 2025-11-25.
        as_task: bool,
    },
    /// A read of the resource with this URI.
    Resource {
        /// Its URI.
        uri: &'a str,
        /// The request carries input responses or a request state, so that the result depends on more than the URI.
        answers: bool,
    },
}

impl<'a> RequestSubject<'a> {
    /// The tool, resource or page that the parameters of a request name.
    pub fn of<R: Request>(params: &'a R::Params) -> Self {
        if matches!(R::METHOD, Method::Vendor(_)) {
            return Self::Unnamed;
        }
        let any: &dyn Any = params;
        if let Some(params) = any.downcast_ref::<CallToolParams>() {
            Self::Tool { name: &params.name, as_task: params.task.is_some() }
        } else if let Some(params) = any.downcast_ref::<ReadResourceParams>() {
            let answers = params.input_responses.is_some() || params.request_state.is_some();
            Self::Resource { uri: &params.uri, answers }
        } else if let Some(params) = any.downcast_ref::<PaginatedParams>() {
            Self::Page(params.cursor.as_deref())
        } else {
            Self::Unnamed
        }
    }
}

/// What the result of a request contains about tools: a list of tools, the result of a tool call, or nothing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ToolsInResult<'a> {
    /// Nothing.
    None,
    /// The tools in the result of `tools/list`.
    List(&'a [Tool]),
    /// The result of a tool call.
    CallResult(&'a CallToolResult),
}

impl<'a> ToolsInResult<'a> {
    /// What this result of a request contains about tools.
    pub fn of<R: Request>(result: &'a R::Result) -> Self {
        if matches!(R::METHOD, Method::Vendor(_)) {
            return Self::None;
        }
        let any: &dyn Any = result;
        if let Some(result) = any.downcast_ref::<ListToolsResult>() {
            Self::List(&result.tools)
        } else if let Some(result) = any.downcast_ref::<CallToolResult>() {
            Self::CallResult(result)
        } else {
            Self::None
        }
    }
}

macro_rules! requests {
    ($($name:ident)+) => {
        /// Encodes the parameters of a request.
        pub fn request_params<R: Request>(
            revision: Revision,
            params: &R::Params,
            common_members: &PerMessageMembers,
        ) -> Result<Box<str>, serde_json::Error> {
            let any: &dyn Any = params;
            match R::METHOD {
                $(Method::$name => if let Some(params) = any.downcast_ref::<<request::$name as Request>::Params>() {
                    return params_text(revision, params, common_members);
                })+
                _ => {}
            }
            params_text(revision, &to_object(params)?, common_members)
        }

        /// Appends the encoded result of a request to the buffer, or nothing if the result cannot be encoded.
        pub fn request_result<R: Request>(
            revision: Revision,
            result: &R::Result,
            common_members: &PerMessageMembers,
            out: &mut Vec<u8>,
        ) -> Result<(), serde_json::Error> {
            let any: &dyn Any = result;
            match R::METHOD {
                $(Method::$name => if let Some(result) = any.downcast_ref::<<request::$name as Request>::Result>() {
                    return write_result(revision, result, common_members, out);
                })+
                _ => {}
            }
            write_result(revision, &to_object(result)?, common_members, out)
        }

        /// How long a result may be cached: `None` if results of this kind are never cached, an inner `None` if the result does
        /// not say.
        pub fn result_caching<R: Request>(result: &R::Result) -> Option<Option<CacheHints>> {
            let any: &dyn Any = result;
            match R::METHOD {
                $(Method::$name => any.downcast_ref::<<request::$name as Request>::Result>()?.caching(),)+
                _ => None,
            }
        }

        /// The methods of all requests of the specification, for the test that compares them with the method table.
        /// Requests of vendors are encoded as serde writes them.
        #[cfg(test)]
        const REQUESTS: &[Method] = &[$(Method::$name),+];
    };
}

macro_rules! notifications {
    ($($name:ident)+) => {
        /// Encodes the parameters of a notification.
        pub fn notification_params<N: Notification>(
            revision: Revision,
            params: &N::Params,
            common_members: &PerMessageMembers,
        ) -> Result<Box<str>, serde_json::Error> {
            let any: &dyn Any = params;
            match N::METHOD {
                $(Method::$name => {
                    if let Some(params) = any.downcast_ref::<<notification::$name as Notification>::Params>() {
                        return params_text(revision, params, common_members);
                    }
                })+
                _ => {}
            }
            params_text(revision, &to_object(params)?, common_members)
        }

        /// The methods of all notifications of the specification, for the test that compares them with the method
        /// table. Notifications of vendors are encoded as serde writes them.
        #[cfg(test)]
        const NOTIFICATIONS: &[Method] = &[$(Method::$name),+];
    };
}

requests! {
    Initialize Ping Discover ListTools CallTool ListPrompts GetPrompt ListResources ListResourceTemplates ReadResource Subscribe
    Unsubscribe Listen Complete SetLevel ListRoots CreateMessage Elicit GetTask GetTaskPayload ListTasks CancelTask UpdateTask
}

notifications! {
    Initialized Cancelled Progress LoggingMessage ToolListChanged PromptListChanged ResourceListChanged ResourceUpdated
    RootsListChanged ElicitationComplete TaskStatus TaskUpdated SubscriptionAcknowledged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_the_specification_has_its_encoding() {
        let (notifications, requests): (Vec<_>, Vec<_>) =
            Method::ALL.iter().copied().partition(|method| method.is_notification());
        assert_eq!(REQUESTS, requests);
        assert_eq!(NOTIFICATIONS, notifications);
    }

    /// A type of a program with the method of the specification, and parameters of its own.
    enum OwnParams {}

    impl Request for OwnParams {
        const METHOD: Method = Method::CallTool;
        type Params = std::collections::BTreeMap<String, u8>;
        type Result = ();
    }

    /// A request of a vendor with types of the specification.
    enum VendorSearch {}

    impl Request for VendorSearch {
        const METHOD: Method = Method::vendor_request("acme/search");
        type Params = PaginatedParams;
        type Result = ListToolsResult;
    }

    #[test]
    fn a_request_of_a_vendor_says_nothing_about_tools_and_pages() {
        let params = PaginatedParams::default();
        assert_eq!(RequestSubject::of::<VendorSearch>(&params), RequestSubject::Unnamed);
        assert!(matches!(ToolsInResult::of::<VendorSearch>(&ListToolsResult::default()), ToolsInResult::None));
        assert_eq!(RequestSubject::of::<request::ListTools>(&params), RequestSubject::Page(None));
    }

    #[test]
    fn other_types_for_a_method_of_the_specification_are_what_serde_writes() {
        let params = [("a".to_owned(), 1)].into();
        let text = request_params::<OwnParams>(Revision::V2025_06_18, &params, &PerMessageMembers::none()).unwrap();
        assert_eq!(&*text, r#"{"a":1}"#);
        assert_eq!(RequestSubject::of::<OwnParams>(&params), RequestSubject::Unnamed);
        let mut out = Vec::new();
        request_result::<OwnParams>(Revision::V2025_06_18, &(), &PerMessageMembers::none(), &mut out).unwrap();
        assert_eq!(out, b"{}");
    }
}
