//! A type for each notification, which connects the method to its parameters.
//!
//! Notification types such as [`Progress`] have no values: each names a notification at compile time. Vendor
//! notifications are types that the program defines, like vendor [requests](super::request); their method is a
//! [`Method::vendor_notification`].

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cancel::CancelledParams;
use super::page::EmptyParams;
use super::progress::ProgressParams;
use super::subscription::SubscriptionParams;
use crate::feature::elicit::ElicitationCompleteParams;
use crate::feature::logging::LoggingMessageParams;
use crate::feature::resource::ResourceUriParams;
use crate::feature::task::DetailedTask;
use crate::method::Method;

/// A notification: its method and its parameters.
pub trait Notification: 'static {
    /// The method.
    const METHOD: Method;
    /// The type of the notification's parameters, which are a JSON object.
    type Params: Serialize + DeserializeOwned + Send + Sync + 'static;
}

macro_rules! notifications {
    ($($(#[$doc:meta])* $name:ident: $params:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Notification for $name {
            const METHOD: Method = Method::$name;
            type Params = $params;
        }
    )+

        /// The methods of all notification types, for the test that compares them with the method table.
        #[cfg(test)]
        const BOUND: &[Method] = &[$(Method::$name),+];
    };
}

notifications! {
    /// `notifications/initialized`
    Initialized: EmptyParams;
    /// `notifications/cancelled`
    Cancelled: CancelledParams;
    /// `notifications/progress`
    Progress: ProgressParams;
    /// `notifications/message`
    LoggingMessage: LoggingMessageParams;
    /// `notifications/tools/list_changed`
    ToolListChanged: EmptyParams;
    /// `notifications/prompts/list_changed`
    PromptListChanged: EmptyParams;
    /// `notifications/resources/list_changed`
    ResourceListChanged: EmptyParams;
    /// `notifications/resources/updated`
    ResourceUpdated: ResourceUriParams;
    /// `notifications/roots/list_changed`
    RootsListChanged: EmptyParams;
    /// `notifications/elicitation/complete`
    ElicitationComplete: ElicitationCompleteParams;
    /// `notifications/tasks/status`
    TaskStatus: DetailedTask;
    /// `notifications/tasks`
    TaskUpdated: DetailedTask;
    /// `notifications/subscriptions/acknowledged`
    SubscriptionAcknowledged: SubscriptionParams;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notification_of_the_table_has_its_types() {
        let table: Vec<_> = Method::ALL.iter().copied().filter(|method| method.is_notification()).collect();
        assert_eq!(BOUND, table);
    }
}
